"""The lock is politeness: whoever cannot have one goes on without, and what goes wrong meanwhile is not hidden."""

from __future__ import annotations

from pathlib import Path

import filelock
import pytest

from outerloop_hpc.cli.polite import polite_lock
from outerloop_hpc.engine.layout import Layout
from outerloop_hpc.errors import TryLater

pytestmark = pytest.mark.unit


def test_a_second_pass_comes_back_later_and_the_first_leaves_the_lock(tmp_path: Path) -> None:
    with (
        polite_lock(Layout(tmp_path)),
        pytest.raises(TryLater, match="another pass is under way"),
        polite_lock(Layout(tmp_path)),
    ):
        pass
    with polite_lock(Layout(tmp_path)):
        pass


@pytest.mark.parametrize("refusal", [NotImplementedError("no flock here"), PermissionError(13, "Permission denied")])
def test_a_filesystem_without_locks_holds_no_pass_and_hides_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refusal: Exception
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise refusal

    monkeypatch.setattr(filelock.FileLock, "acquire", refuse)
    with pytest.raises(OSError, match="of the pass itself") as seen, polite_lock(Layout(tmp_path)):
        raise OSError("of the pass itself")
    assert seen.value.__context__ is None
