"""Removing trees piece by piece: within a budget, and never beside them."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from outerloop_hpc.engine.clearing import Cleared, clear, remove

pytestmark = pytest.mark.unit


def after(count: int) -> Callable[[], bool]:
    """Say that it is enough after so many questions."""
    asked = iter(range(count))
    return lambda: next(asked, None) is None


def tree(root: Path) -> Path:
    for number in range(3):
        (root / str(number)).mkdir(parents=True)
        (root / str(number) / "file").write_bytes(b"x" * 10)
    return root


def test_what_was_not_reached_stays_for_the_next_time(tmp_path: Path) -> None:
    folder = tree(tmp_path / "tree")
    first = remove(folder, after(2))
    assert not first.whole
    assert not first.trouble
    assert folder.is_dir()
    second = remove(folder, lambda: False)
    assert second.whole
    assert first.bytes + second.bytes == 30
    assert not folder.exists()


def test_folders_without_rights_are_removed_too(tmp_path: Path) -> None:
    folder = tree(tmp_path / "tree")
    (folder / "1").chmod(0o000)
    folder.chmod(0o555)
    assert not remove(folder, after(0)).whole
    assert folder.stat().st_mode & 0o777 == 0o700, "root needs no rights, everybody else does"
    assert remove(folder, lambda: False).whole
    assert not folder.exists()


def test_a_link_is_removed_and_what_it_leads_to_is_not(tmp_path: Path) -> None:
    folder = tree(tmp_path / "tree")
    for target in (folder, tmp_path / "nowhere"):
        (tmp_path / "link").symlink_to(target)
        assert remove(tmp_path / "link", lambda: False).whole
    assert (folder / "1" / "file").exists()
    (tmp_path / "link").symlink_to(folder)
    assert not clear(tmp_path / "link", lambda: False).whole
    assert (folder / "1" / "file").exists()


def test_what_is_gone_already_is_fine(tmp_path: Path) -> None:
    assert remove(tmp_path / "gone", lambda: False) == clear(tmp_path / "gone", lambda: False) == Cleared()


def test_a_file_that_has_another_name_frees_nothing(tmp_path: Path) -> None:
    (tmp_path / "one").write_bytes(b"x" * 10)
    (tmp_path / "two").hardlink_to(tmp_path / "one")
    assert remove(tmp_path / "one", lambda: False) == Cleared(0)
    assert remove(tmp_path / "two", lambda: False) == Cleared(10)


def test_a_tree_that_is_too_deep_is_left_and_said(tmp_path: Path) -> None:
    folder = tmp_path / "tree"
    here = folder
    for _ in range(300):
        here = here / "d"
    here.mkdir(parents=True)
    done = remove(folder, lambda: False)
    assert not done.whole
    assert "too deep" in done.trouble


def test_what_is_mounted_in_a_tree_is_not_entered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tree(tmp_path / "tree")
    mounted = (folder / "1").stat().st_ino
    real = os.fstat

    def fstat(opened: int) -> os.stat_result:
        found = real(opened)
        values = list(found)
        values[stat.ST_DEV] += found.st_ino == mounted
        return os.stat_result(values)

    monkeypatch.setattr(os, "fstat", fstat)
    done = remove(folder, lambda: False)
    assert done.trouble == f"{folder}/1: something is mounted there"
    assert [str(path.relative_to(folder)) for path in sorted(folder.rglob("*"))] == ["1", "1/file"]


def test_one_that_cannot_be_removed_does_not_keep_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tree(tmp_path / "tree")
    (folder / "1" / "stuck").write_bytes(b"x")
    unlink = os.unlink

    def refuse(name: str, **where: int) -> None:
        if name == "stuck":
            raise PermissionError(1, "Operation not permitted")
        unlink(name, **where)

    monkeypatch.setattr(os, "unlink", refuse)
    done = remove(folder, lambda: False)
    assert done.trouble == f"{folder}/1/stuck: cannot be removed: Operation not permitted"
    assert [str(path.relative_to(folder)) for path in sorted(folder.rglob("*"))] == ["1", "1/stuck"]
