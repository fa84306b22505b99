from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from outerloop_hpc import effects
from outerloop_hpc.errors import TryLater
from outerloop_hpc.evolve.overlays.frozen import freeze, load
from outerloop_hpc.evolve.overlays.overlay import IntegrityFault, Overlay

_OVERLAY = Overlay({"src/solver.py": b"new", "params.json": b"{}"})


@pytest.fixture
def seam() -> Iterator[None]:
    yield
    effects.install(None)


def _open_up(folder: Path) -> None:
    for inner, _, _ in os.walk(folder):
        Path(inner).chmod(0o700)


def test_a_frozen_overlay_is_named_by_its_digest_and_nobody_may_write_it(tmp_path: Path) -> None:
    place = freeze(_OVERLAY, tmp_path / "candidates")
    assert place == tmp_path / "candidates" / _OVERLAY.digest
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in [place, *place.rglob("*")]}
    assert modes == {_OVERLAY.digest: 0o500, "src": 0o500, "solver.py": 0o400, "params.json": 0o400}
    assert load(place) == _OVERLAY


def test_freezing_once_more_keeps_what_is_there(tmp_path: Path) -> None:
    place = freeze(_OVERLAY, tmp_path)
    before = place.stat().st_ino
    assert freeze(_OVERLAY, tmp_path) == place
    assert place.stat().st_ino == before
    assert [path.name for path in tmp_path.iterdir()] == [_OVERLAY.digest]


def test_who_comes_second_in_the_same_moment_keeps_the_others(tmp_path: Path, seam: None) -> None:
    def other_first(what: str, _subject: str, action: Callable[[], Any]) -> Any:
        effects.install(None)
        if what == "freeze":
            freeze(_OVERLAY, tmp_path)
        return action()

    effects.install(other_first)
    place = freeze(_OVERLAY, tmp_path)
    assert load(place) == _OVERLAY
    assert [path.name for path in tmp_path.iterdir()] == [_OVERLAY.digest]


def test_a_frozen_file_that_was_changed_is_a_fault_that_names_the_overlay(tmp_path: Path) -> None:
    place = freeze(_OVERLAY, tmp_path)
    (place / "params.json").chmod(0o600)
    (place / "params.json").write_bytes(b"[]")
    with pytest.raises(IntegrityFault, match=f"{_OVERLAY.digest[:16]} now has the digest"):
        load(place)
    with pytest.raises(IntegrityFault):
        freeze(_OVERLAY, tmp_path)


@pytest.mark.parametrize("kind", ["added", "removed", "link", "elsewhere"])
def test_every_other_change_of_a_frozen_overlay_is_a_fault(tmp_path: Path, kind: str) -> None:
    place = freeze(_OVERLAY, tmp_path)
    _open_up(place)
    match kind:
        case "added":
            (place / "src/more.py").write_bytes(b"")
        case "removed":
            (place / "params.json").unlink()
        case "link":
            (tmp_path / "same").write_bytes(b"{}")
            (place / "params.json").unlink()
            (place / "params.json").symlink_to(tmp_path / "same")
        case _:
            (place / "params.json").rename(place / "src/params.json")
    with pytest.raises(IntegrityFault, match=_OVERLAY.digest[:16]):
        load(place)


def test_an_overlay_under_anothers_name_is_a_fault(tmp_path: Path) -> None:
    place = freeze(_OVERLAY, tmp_path)
    with pytest.raises(IntegrityFault):
        load(place, "0" * 64)


def test_a_frozen_overlay_that_is_not_to_be_seen_here_proves_nothing(tmp_path: Path) -> None:
    with pytest.raises(TryLater, match="cannot be read here"):
        load(tmp_path / _OVERLAY.digest)


def test_nothing_is_frozen_when_it_is_refused(tmp_path: Path, seam: None) -> None:
    class KilledError(Exception):
        pass

    def refuse(_what: str, _subject: str, _action: Callable[[], Any]) -> Any:
        raise KilledError

    effects.install(refuse)
    with pytest.raises(KilledError):
        freeze(_OVERLAY, tmp_path)
    assert list(tmp_path.iterdir()) == []
