from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import IO

import pytest

from outerloop_hpc.errors import TryLater, UsageError
from outerloop_hpc.target.export import NoRoom, export, folder_tree_id
from outerloop_hpc.target.repository import BlobStream, Repository
from outerloop_hpc.target.tree import FILE, PROGRAM, SYMLINK, Entry, tree_id
from tests.local.scratch import commit, commit_tree, contents, git, marker_command, new_source

pytestmark = pytest.mark.local


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return new_source(tmp_path / "so urce'\"ü")


WEIRD = [
    "plain.txt",
    "a b/c d",
    "quo'te\"d",
    "new\nline",
    "tab\tx",
    "ünï/ço\u0308de",
    "-rf",
    "--help",
    "$(touch x)",
    "`id`;&|",
    "*",
    "a/:(top)b",
    ".hidden/.deep/.file",
    "back\\slash",
]


def test_weird_names_arrive_byte_for_byte(source: Path, tmp_path: Path) -> None:
    for number, name in enumerate(WEIRD):
        path = source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"\r\n\0\xff%d" % number)
    Path(os.fsdecode(os.fsencode(source) + b"/\xff\xfe")).write_bytes(b"not UTF-8")
    (source / "run").write_text("#!/bin/sh\n")
    (source / "run").chmod(0o755)
    (source / "in").symlink_to("a b/c d")
    (source / "ünï" / "up").symlink_to("../plain.txt")
    (source / "dangling").symlink_to("not/there")
    head = commit(source)
    repository = Repository(source)

    tree = export(repository, head, tmp_path / "out")

    assert tree == git(source, "rev-parse", "HEAD^{tree}") == repository.tree(head)
    assert contents(tmp_path / "out") == {k: v for k, v in contents(source).items() if not k.startswith(".git/")}
    assert stat.S_IMODE((tmp_path / "out/run").stat().st_mode) & 0o111
    assert not stat.S_IMODE((tmp_path / "out/plain.txt").stat().st_mode) & 0o111
    assert folder_tree_id(tmp_path / "out") == tree
    modes = {entry.path: entry.mode for entry in repository.entries(head)}
    assert (modes["run"], modes["in"], modes["plain.txt"]) == (PROGRAM, SYMLINK, FILE)
    assert len(modes) == len(WEIRD) + 5
    assert [repository.read(head, name)[:4] for name in WEIRD] == [b"\r\n\0\xff"] * len(WEIRD)


def test_attributes_of_the_tree_alter_and_hide_nothing(source: Path, tmp_path: Path) -> None:
    marker, script = marker_command(tmp_path)
    (source / ".gitattributes").write_text(
        "secret.txt export-ignore\n*.py export-subst ident text eol=crlf filter=evil diff=evil\n"
        "*.txt working-tree-encoding=UTF-16\n.gitattributes export-ignore\n"
    )
    (source / "secret.txt").write_bytes("text ü\n".encode("utf-16"))
    (source / "a.py").write_bytes(b"# $Id$ $Format:%H$\nx = 1\n")
    head = commit(source)
    for key in ("filter.evil.smudge", "filter.evil.clean", "filter.evil.process", "diff.evil.textconv"):
        git(source, "config", key, script)
    for key, value in (("core.autocrlf", "true"), ("core.eol", "crlf"), ("diff.external", script)):
        git(source, "config", key, value)

    tree = export(Repository(source), head, tmp_path / "out")

    assert (tmp_path / "out/a.py").read_bytes() == b"# $Id$ $Format:%H$\nx = 1\n"
    assert sorted(contents(tmp_path / "out")) == [".gitattributes", "a.py", "secret.txt"]
    assert folder_tree_id(tmp_path / "out") == tree == git(source, "rev-parse", f"{head}^{{tree}}")
    assert not marker.exists()


def test_links_that_leave_are_refused_and_nothing_stays(source: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    for target in ("/etc/passwd", "../outside", "a/../../outside", str(tmp_path / "out" / "a")):
        head = commit_tree(source, [("100644", "x", "a"), ("120000", target, "link")])
        with pytest.raises(UsageError, match="'link' is a symbolic link that leaves"):
            export(Repository(source), head, tmp_path / "out")
        assert not (tmp_path / "out").exists()


def test_a_chain_of_links_that_leaves_only_together_is_refused(source: Path, tmp_path: Path) -> None:
    inner = git(source, "mktree", "-z", stdin=(
        f"120000 blob {git(source, 'hash-object', '-w', '--stdin', stdin=b'../..')}\tup\0"
        f"120000 blob {git(source, 'hash-object', '-w', '--stdin', stdin=b'up/../outside')}\tleak\0"
    ).encode())  # fmt: skip
    outer = git(source, "mktree", "-z", stdin=f"040000 tree {inner}\tq\0".encode())
    head = commit_tree(source, [("040000", outer, "p")])
    with pytest.raises(UsageError, match="leaves the tree"):
        export(Repository(source), head, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", [".git", ".GIT", ".Git"])
def test_a_forged_tree_with_a_git_folder_is_refused(source: Path, tmp_path: Path, name: str) -> None:
    inner = git(
        source,
        "mktree",
        stdin=f"100644 blob {git(source, 'hash-object', '-w', '--stdin', stdin=b'x')}\tconfig\n".encode(),
    )
    head = commit_tree(source, [("040000", inner, name)])
    with pytest.raises(UsageError, match="no path that may be written"):
        export(Repository(source), head, tmp_path / "out")


def test_a_forged_tree_cannot_write_through_its_own_link(source: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    blob = git(source, "hash-object", "-w", "--stdin", stdin=b"../outside")
    inner = git(source, "mktree", stdin=f"120000 blob {blob}\tescaped\n".encode())
    body = b"120000 x\0" + bytes.fromhex(blob) + b"40000 x\0" + bytes.fromhex(inner)
    tree = git(source, "hash-object", "-w", "-t", "tree", "--literally", "--stdin", stdin=body)
    head = git(source, "commit-tree", "-m", "forged", tree)
    with pytest.raises(UsageError, match="beneath a symbolic link"):
        export(Repository(source), head, tmp_path / "out")
    assert list((tmp_path / "outside").iterdir()) == []


def test_a_submodule_is_refused_by_name(source: Path, tmp_path: Path) -> None:
    head = commit_tree(source, [("160000", "1" * 40, "vendored")])
    with pytest.raises(UsageError, match="'vendored' is a submodule"):
        export(Repository(source), head, tmp_path / "out")


def test_a_tree_that_cannot_be_proven_is_refused_before_anything_is_written(source: Path, tmp_path: Path) -> None:
    blob = git(source, "hash-object", "-w", "--stdin", stdin=b"old")
    body = b"100664 f\0" + bytes.fromhex(blob)
    tree = git(source, "hash-object", "-w", "-t", "tree", "--literally", "--stdin", stdin=body)
    head = git(source, "commit-tree", "-m", "as git wrote it in 2005", tree)
    with pytest.raises(UsageError, match="modes that git no longer writes"):
        export(Repository(source), head, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert Repository(source).read(head, "f") == b"old"


def test_export_wants_an_empty_folder_and_leaves_others_alone(source: Path, tmp_path: Path) -> None:
    (source / "f").write_text("1")
    head = commit(source)
    (tmp_path / "used").mkdir()
    (tmp_path / "used/mine").write_text("kept")
    (tmp_path / "file").write_text("kept")
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to("empty")
    for name in ("used", "file", "link"):
        with pytest.raises(UsageError, match="not an empty folder"):
            export(Repository(source), head, tmp_path / name)
    assert (tmp_path / "used/mine").read_text() == "kept"
    export(Repository(source), head, tmp_path / "empty")
    assert (tmp_path / "empty/f").read_text() == "1"


def test_an_empty_commit_exports_an_empty_folder(source: Path, tmp_path: Path) -> None:
    head = commit(source)
    assert export(Repository(source), head, tmp_path / "out") == tree_id([], "sha1")
    assert list((tmp_path / "out").iterdir()) == []


def test_sha256_repositories_work_too(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    folder.mkdir()
    git(folder, "init", "--quiet", "--object-format=sha256", "-b", "main")
    (folder / "f").write_text("1")
    head = commit(folder)
    assert len(head) == 64
    assert len(export(Repository(folder), head, tmp_path / "out")) == 64


def test_a_tampered_export_has_another_tree_id(source: Path, tmp_path: Path) -> None:
    for name in ("f", "d/g"):
        (source / name).parent.mkdir(exist_ok=True)
        (source / name).write_text(name)
    out = tmp_path / "out"
    tree = export(Repository(source), commit(source), out)
    changes: list[Callable[[], object]] = [
        lambda: (out / "f").write_text("F"),
        lambda: (out / "new").write_text(""),
        lambda: (out / "d/g").chmod(0o755),
        (out / "d/g").unlink,
    ]
    seen = {tree}
    for change in changes:
        change()
        seen.add(folder_tree_id(out))
    assert len(seen) == 5
    os.mkfifo(out / "pipe")
    with pytest.raises(UsageError, match="neither file, folder nor link"):
        folder_tree_id(out)


def test_a_full_disk_says_try_later_and_leaves_nothing(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (source / "f").write_text("1")
    head = commit(source)

    def full(_self: BlobStream, _object_id: str, out: IO[bytes]) -> None:
        out.write(b"h")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(BlobStream, "copy", full)
    with pytest.raises(NoRoom, match="No space left on device; free space"):
        export(Repository(source), head, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_filesystem_that_loses_a_byte_is_noticed(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (source / "f").write_text("12345")
    head = commit(source)

    def lossy(_folder: Path, _algorithm: str) -> list[Entry]:
        return [Entry("f", FILE, "0" * 40)]

    monkeypatch.setattr("outerloop_hpc.target.export._found", lossy)
    with pytest.raises(UsageError, match="did not arrive unchanged"):
        export(Repository(source), head, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_missing_object_is_not_an_empty_file(source: Path, tmp_path: Path) -> None:
    (source / "f").write_text("1")
    head = commit(source)
    blob = git(source, "rev-parse", "HEAD:f")
    (source / ".git/objects" / blob[:2] / blob[2:]).unlink()
    with pytest.raises(TryLater, match="cannot be read; is the repository complete"):
        export(Repository(source), head, tmp_path / "out")
    assert not (tmp_path / "out").exists()
