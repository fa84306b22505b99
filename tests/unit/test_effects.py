"""Every durable write and command passes one seam, in order."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from outerloop_hpc import effects, fsio
from outerloop_hpc.process import run_command

pytestmark = pytest.mark.unit


@pytest.fixture
def seen() -> Iterator[list[tuple[str, str]]]:
    log: list[tuple[str, str]] = []

    def around(what: str, subject: str, action: Callable[[], Any]) -> Any:
        log.append((what, Path(subject).name))
        result = action()
        log.append((f"{what} done", Path(subject).name))
        return result

    effects.install(around)
    yield log
    effects.install(None)


def test_effects_pass_the_seam_in_their_order(seen: list[tuple[str, str]], tmp_path: Path) -> None:
    fsio.publish(tmp_path / "intent", b"1")
    run_command([sys.executable, "-c", ""], timeout=60)
    fsio.replace(tmp_path / "snapshot", b"2")
    fsio.remove(tmp_path / "intent")
    kinds = ["publish", "command", "replace", "remove"]
    assert [what for what, _ in seen] == [word for kind in kinds for word in (kind, f"{kind} done")]
    assert [subject for _, subject in seen[::2]] == ["intent", Path(sys.executable).name, "snapshot", "intent"]


def test_an_effect_that_is_refused_does_not_happen(tmp_path: Path) -> None:
    class KilledError(Exception):
        pass

    def refuse(_what: str, _subject: str, _action: Callable[[], Any]) -> Any:
        raise KilledError

    effects.install(refuse)
    try:
        with pytest.raises(KilledError):
            fsio.publish(tmp_path / "intent", b"1")
    finally:
        effects.install(None)
    assert list(tmp_path.iterdir()) == []
    assert fsio.publish(tmp_path / "intent", b"1")
