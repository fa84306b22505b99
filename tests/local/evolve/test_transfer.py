from __future__ import annotations

import errno
import os
import socket
import stat
from pathlib import Path

import pytest

from outerloop_hpc.errors import TryLater
from outerloop_hpc.evolve.overlays import descent
from outerloop_hpc.evolve.overlays.overlay import InvalidOverlay, Overlay, content_digest
from outerloop_hpc.evolve.overlays.transfer import collect, differing, lay, read
from outerloop_hpc.evolve.work import OverlayRules

_RULES = OverlayRules(allow=("src/**",), max_files=3, max_bytes=100)
_BASE = {"src/solver.py": content_digest(b"old"), "src/deep/part.py": content_digest(b"old")}


def _write(path: Path, data: bytes = b"new") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


@pytest.fixture
def proposed(tmp_path: Path) -> Path:
    folder = tmp_path / "overlay"
    _write(folder / "src/solver.py")
    return folder


def test_files_are_collected_with_their_repository_paths(proposed: Path) -> None:
    _write(proposed / "src/deep/part.py", b"other")
    found = collect(proposed, _RULES, _BASE)
    assert dict(found.files) == {"src/deep/part.py": b"other", "src/solver.py": b"new"}


def test_a_proposer_that_wrote_no_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidOverlay, match="is not there"):
        collect(tmp_path / "overlay", _RULES, _BASE)


def test_a_link_as_the_folder_itself_is_not_followed(proposed: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(proposed)
    with pytest.raises(InvalidOverlay, match="link"):
        collect(tmp_path / "link", _RULES, _BASE)


def test_a_link_to_a_file_outside_is_not_read(proposed: Path, tmp_path: Path) -> None:
    (proposed / "src/deep").mkdir()
    (proposed / "src/deep/part.py").symlink_to(_write(tmp_path / "secret"))
    with pytest.raises(InvalidOverlay, match=r"'src/deep/part\.py' is a symbolic link"):
        collect(proposed, _RULES, _BASE)


def test_a_link_to_a_folder_outside_is_not_entered(proposed: Path, tmp_path: Path) -> None:
    _write(tmp_path / "outside/part.py")
    (proposed / "src/deep").symlink_to(tmp_path / "outside")
    with pytest.raises(InvalidOverlay, match="'src/deep' is a symbolic link"):
        collect(proposed, _RULES, _BASE)


def test_a_pipe_does_not_hang_the_collection(proposed: Path) -> None:
    os.mkfifo(proposed / "src/pipe")
    with pytest.raises(InvalidOverlay, match="'src/pipe' is no regular file"):
        collect(proposed, _RULES, _BASE)


def test_a_socket_is_refused(proposed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(proposed / "src")  # a socket's path is short
    with socket.socket(socket.AF_UNIX) as plug:
        plug.bind("plug")
        with pytest.raises(InvalidOverlay, match="'src/plug' is no regular file"):
            collect(proposed, _RULES, _BASE)


def test_a_file_that_never_ends_is_not_read_whole(proposed: Path) -> None:
    with (proposed / "src/solver.py").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(InvalidOverlay, match="more than the 100 bytes"):
        collect(proposed, _RULES, _BASE)


def test_a_folder_of_very_many_entries_is_not_walked(proposed: Path) -> None:
    for number in range(20):
        (proposed / f"d{number}").mkdir()
    with pytest.raises(InvalidOverlay, match="more than 12 files and folders"):
        collect(proposed, _RULES, _BASE)


def test_the_rules_hold_for_what_was_collected(proposed: Path) -> None:
    _write(proposed / "README.md")
    with pytest.raises(InvalidOverlay, match="README"):
        collect(proposed, _RULES, _BASE)


def test_a_laid_file_keeps_the_mode_that_the_checkout_gave_it(tmp_path: Path) -> None:
    program = _write(tmp_path / "work/src/solver.py", b"old")
    program.chmod(0o755)
    lay(Overlay({"src/solver.py": b"new"}), tmp_path / "work")
    assert program.read_bytes() == b"new"
    assert stat.S_IMODE(program.stat().st_mode) == 0o755
    assert [path.name for path in program.parent.iterdir()] == ["solver.py"]


def test_a_new_file_is_laid_with_its_folders(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    overlay = Overlay({"src/deep/new.py": b"new"})
    lay(overlay, tmp_path / "work")
    assert (tmp_path / "work/src/deep/new.py").read_bytes() == b"new"
    assert differing(overlay, tmp_path / "work") == ()


def test_laying_changes_no_other_name_of_the_same_file(tmp_path: Path) -> None:
    original = _write(tmp_path / "original", b"old")
    _write(tmp_path / "work/src/keep", b"")
    os.link(original, tmp_path / "work/src/solver.py")
    lay(Overlay({"src/solver.py": b"new"}), tmp_path / "work")
    assert original.read_bytes() == b"old"


@pytest.mark.parametrize("kind", ["link to a file", "link to a folder", "folder", "file for a folder"])
def test_what_is_in_the_way_in_a_checkout_is_refused_and_nothing_outside_is_written(tmp_path: Path, kind: str) -> None:
    work, outside = tmp_path / "work", tmp_path / "outside"
    _write(outside / "solver.py", b"old")
    work.mkdir()
    match kind:
        case "link to a file":
            (work / "src").mkdir()
            (work / "src/solver.py").symlink_to(outside / "solver.py")
        case "link to a folder":
            (work / "src").symlink_to(outside)
        case "folder":
            (work / "src/solver.py").mkdir(parents=True)
        case _:
            (work / "src").write_bytes(b"")
    with pytest.raises(InvalidOverlay, match="src"):
        lay(Overlay({"src/solver.py": b"new"}), work)
    assert (outside / "solver.py").read_bytes() == b"old"
    assert [path.name for path in outside.iterdir()] == ["solver.py"]


def test_an_overlay_that_was_never_checked_cannot_leave_the_checkout(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    with pytest.raises(InvalidOverlay, match=r"'\.\.'"):
        lay(Overlay({"../escaped": b"new"}), tmp_path / "work")
    assert not (tmp_path / "escaped").exists()


def test_a_checkout_that_is_gone_is_the_machines_fault(tmp_path: Path) -> None:
    with pytest.raises(TryLater, match="cannot be laid"):
        lay(Overlay({"src/solver.py": b"new"}), tmp_path / "work")


def test_a_candidate_that_changed_its_own_files_is_noticed(tmp_path: Path) -> None:
    overlay = Overlay({"a": b"1", "b": b"2", "c": b"3"})
    (tmp_path / "work").mkdir()
    lay(overlay, tmp_path / "work")
    (tmp_path / "work/a").write_bytes(b"9")
    (tmp_path / "work/b").unlink()
    (tmp_path / "work/b").symlink_to("c")
    assert differing(overlay, tmp_path / "work") == ("a", "b")


def test_a_file_that_its_proposer_closed_is_the_proposers_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was tried again as if a disk had failed, until the sweep stood still for a person."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a/f").write_bytes(b"x")

    def closed(*_args: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", "f")

    monkeypatch.setattr(descent, "content", closed)
    with pytest.raises(InvalidOverlay, match="'f' cannot be opened: its rights"):
        read(tmp_path / "a", OverlayRules(allow=("**",)))
