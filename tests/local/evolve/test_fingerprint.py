"""What a candidate may do to its own files while it runs, none of which may be taken for a fault of the disk."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from outerloop_hpc.evolve.bodies.fingerprint import changed, fingerprint

pytestmark = pytest.mark.local


def _loop(place: Path) -> None:
    place.unlink()
    place.parent.rmdir()
    place.parent.symlink_to(place.parent.name)


def _link(place: Path) -> None:
    place.rename(place.with_name("kept"))
    place.symlink_to("kept")


def _fifo(place: Path) -> None:
    place.unlink()
    os.mkfifo(place)


def _folder(place: Path) -> None:
    place.unlink()
    place.mkdir()


@pytest.mark.parametrize(
    "do",
    [
        lambda place: place.write_text("y"),
        lambda place: place.unlink(),
        lambda place: os.truncate(place, 1 << 42),
        _link,
        _loop,
        _fifo,
        _folder,
    ],
    ids=["text", "gone", "sparse", "link", "loop", "fifo", "folder"],
)
def test_every_change_is_seen_and_none_hangs_or_raises(tmp_path: Path, do: Callable[[Path], object]) -> None:
    place = tmp_path / "src" / "a.py"
    place.parent.mkdir()
    place.write_text("x", encoding="utf-8")
    paths = ["src/a.py", "src/new.py"]
    before = fingerprint(tmp_path, paths)
    assert changed(before, fingerprint(tmp_path, paths)) == ""
    do(place)
    assert changed(before, fingerprint(tmp_path, paths)).startswith("'src/a.py'")


def test_a_folder_in_which_files_were_made_is_still_the_same(tmp_path: Path) -> None:
    (tmp_path / "checker").mkdir()
    before = fingerprint(tmp_path, ["checker"])
    for number in range(300):
        (tmp_path / "checker" / f"{number:0>100}.pyc").touch()
    assert not changed(before, fingerprint(tmp_path, ["checker"]))
