from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from outerloop_hpc import effects
from outerloop_hpc.errors import ConfigError, OuterloopError, TryLater, UsageError
from outerloop_hpc.target.export import export
from outerloop_hpc.target.git import require_modern
from outerloop_hpc.target.repository import Repository
from outerloop_hpc.target.tree import FILE, PROGRAM, SYMLINK, Change
from tests.local.scratch import commit, git, marker_command, new_source

pytestmark = pytest.mark.local


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return new_source(tmp_path / "so urce'\"ü")


def test_nothing_in_a_hostile_repository_is_run(source: Path, tmp_path: Path) -> None:
    marker, script = marker_command(tmp_path)
    (source / "f").write_text("1")
    first = commit(source)
    (source / "f").write_text("2")
    second = commit(source)
    hooks = source / ".git" / "hooks"
    for name in ("post-checkout", "reference-transaction", "post-index-change", "pre-auto-gc", "fsmonitor-watchman"):
        (hooks / name).write_text(f"#!/bin/sh\n{script}\n")
        (hooks / name).chmod(0o755)
    for key, value in {
        "core.fsmonitor": script,
        "core.pager": script,
        "core.sshCommand": script,
        "core.alternateRefsCommand": script,
        "core.editor": script,
        "diff.external": script,
        "gpg.program": script,
        "log.showSignature": "true",
        "uploadpack.packObjectsHook": script,
        "credential.helper": f"!{script}",
        "alias.rev-parse": f"!{script}",
        "alias.cat-file": f"!{script}",
        "interactive.diffFilter": script,
    }.items():
        git(source, "config", key, value)
    repository = Repository(source)

    assert repository.resolve("main") == second
    assert repository.changes(first, second) == (Change("f", FILE, FILE, "M"),)
    assert [entry.commit for entry in repository.log(first, second)] == [second]
    assert repository.read(second, "f") == b"2"
    export(repository, second, tmp_path / "out")
    assert not marker.exists()


def test_the_callers_git_variables_do_not_reach_git(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (source / "f").write_text("1")
    head = commit(source)
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "--quiet", "-b", "main")
    commit(other)
    for name, value in {
        "GIT_DIR": str(other / ".git"),
        "GIT_OBJECT_DIRECTORY": str(tmp_path / "none"),
        "GIT_INDEX_FILE": str(tmp_path / "index"),
        "GIT_NAMESPACE": "x",
        "GIT_CONFIG_PARAMETERS": "'core.bare=maybe'",
        "GIT_CONFIG_COUNT": "1000",
        "GIT_REPLACE_REF_BASE": "refs/heads",
        "GIT_TRACE": str(tmp_path / "trace"),
        "GIT_TERMINAL_PROMPT": "1",
    }.items():
        monkeypatch.setenv(name, value)
    assert Repository(source).resolve("HEAD") == head
    assert not (tmp_path / "trace").exists()


def test_a_repository_of_another_user_is_readable(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (source / "f").write_text("1")
    head = commit(source)
    monkeypatch.setattr("outerloop_hpc.target.git._KEPT", frozenset({"GIT_TEST_ASSUME_DIFFERENT_OWNER"}))
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    assert Repository(source).read(head, "f") == b"1"


def test_replaced_and_grafted_objects_are_not_believed(source: Path) -> None:
    (source / "f").write_text("true")
    head = commit(source)
    (source / "f").write_text("forged")
    forged = commit(source)
    git(source, "replace", head, forged)
    (source / ".git/info/grafts").write_text(f"{forged}\n")
    repository = Repository(source)
    assert repository.read(head, "f") == b"true"
    assert repository.tree(head) != repository.tree(forged)
    assert len(repository.log(head, forged)) == 1


def test_names_resolve_to_full_commits_and_nonsense_is_refused(source: Path) -> None:
    (source / "f").write_text("1")
    head = commit(source)
    git(source, "tag", "-a", "v1", "-m", "x")
    git(source, "branch", "ünï/x")
    repository = Repository(source)
    for ref in ("main", "HEAD", "v1", "ünï/x", head[:10], head, f"{head}^0"):
        assert repository.resolve(ref) == head
    for ref in ("nope", "", "-h", "--all", "a b", "x\n", "HEAD:f", "0" * 40, "main..main"):
        with pytest.raises(UsageError):
            repository.resolve(ref)
    for broken in ("main", "-", head[:39], "0" * 40):
        with pytest.raises(UsageError, match=r"full commit id|ended with status"):
            repository.tree(broken)
    blob = git(source, "rev-parse", "HEAD:f")
    assert [repository.has(text) for text in (head, "0" * 40, "main", blob)] == [True, False, False, False]


def test_changes_tell_modes_additions_and_deletions(source: Path) -> None:
    for name in ("keep", "gone", "moved", "mode", "type", "dir/was"):
        (source / name).parent.mkdir(exist_ok=True)
        (source / name).write_text(f"{name}\n" * 50)
    old = commit(source)
    (source / "gone").unlink()
    (source / "moved").rename(source / "mo\nved ü")
    (source / "mode").chmod(0o755)
    (source / "type").unlink()
    (source / "type").symlink_to("keep")
    (source / "dir/was").unlink()
    (source / "dir").rmdir()
    (source / "dir").write_text("now a file")
    new = commit(source)
    seen = Repository(source).changes(old, new)
    assert {(change.path, change.old_mode, change.new_mode, change.status) for change in seen} == {
        ("gone", FILE, 0, "D"),
        ("moved", FILE, 0, "D"),
        ("mo\nved ü", 0, FILE, "A"),
        ("mode", FILE, PROGRAM, "M"),
        ("type", FILE, SYMLINK, "T"),
        ("dir/was", FILE, 0, "D"),
        ("dir", 0, FILE, "A"),
    }  # fmt: skip


def test_the_log_tells_who_moved_the_branch_newest_first(source: Path) -> None:
    old = commit(source, "one")
    middle = commit(source, "two: \x1b[31m ü\n\nbody")
    new = commit(source, "three")
    entries = Repository(source).log(old, new)
    assert [entry.commit for entry in entries] == [new, middle]
    assert [entry.author for entry in entries] == ["A Ü", "A Ü"]
    assert entries[1].subject.startswith("two:")
    assert Repository(source).log(new, new) == ()
    assert len(Repository(source).log(old, new, limit=1)) == 1


def test_reading_refuses_what_is_no_regular_file(source: Path) -> None:
    (source / "d").mkdir()
    (source / "d/f").write_bytes(b"x" * 100)
    (source / "link").symlink_to("/etc/passwd")
    head = commit(source)
    repository = Repository(source)
    for path in ("link", "d", "nope", "d/", "/d/f", "./d/f", "d/../d/f", "", "*", "-h", "d/f\0", ":(top)d/f"):
        with pytest.raises(UsageError):
            repository.read(head, path)
    assert repository.read(head, "d/f", limit=100) == b"x" * 100
    with pytest.raises(UsageError, match="has 100 bytes, at most 99"):
        repository.read(head, "d/f", limit=99)


def test_digests_are_of_the_committed_bytes_of_regular_files_alone(source: Path) -> None:
    (source / ".gitattributes").write_text("* text eol=crlf\n")
    (source / "f").write_bytes(b"a\r\nb" + bytes(3_000_000))
    (source / "link").symlink_to("f")
    at = commit(source)
    (source / "f").write_bytes(b"later")
    committed = Repository(source).read(at, "f")
    digest = hashlib.sha256(committed).hexdigest()
    assert Repository(source).digests(at, ["f", "link", "gone"]) == {"f": digest}


def test_what_is_no_repository_is_said_and_an_enclosing_one_is_not_used(source: Path, tmp_path: Path) -> None:
    commit(source)
    (source / "sub").mkdir()
    for folder in (source / "sub", tmp_path / "nowhere"):
        with pytest.raises(UsageError, match="no git repository here"):
            Repository(folder)


@pytest.mark.parametrize("part", [".git", ".git/HEAD", ".git/objects", ".git/refs", ".git/config", ".git/info"])
def test_metadata_replaced_by_links_is_refused(source: Path, tmp_path: Path, part: str) -> None:
    commit(source)
    (source / part).rename(tmp_path / "moved")
    (source / part).symlink_to(tmp_path / "moved")
    with pytest.raises(UsageError, match="is a symbolic link; git metadata must be real"):
        Repository(source)


def test_a_linked_worktree_is_a_repository(source: Path, tmp_path: Path) -> None:
    (source / "f").write_text("1")
    head = commit(source)
    git(source, "worktree", "add", "--quiet", "--detach", str(tmp_path / "tree"))
    assert Repository(tmp_path / "tree").read(Repository(tmp_path / "tree").resolve("HEAD"), "f") == b"1"
    assert Repository(tmp_path / "tree").has(head)


def test_a_git_that_hangs_is_ended_and_said_so(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    head = commit(source)
    slow = tmp_path / "bin" / "git"
    slow.parent.mkdir()
    slow.write_text(f"#!/bin/sh\necho $$ > '{tmp_path}/new'; mv '{tmp_path}/new' '{tmp_path}/pid'\nsleep 600\n")
    slow.chmod(0o755)
    for limit_s in (0.5, 5, 50):  # on a busy machine it grows until that program got so far
        repository = Repository(source, timeout_s=limit_s)
        with monkeypatch.context() as changed:
            changed.setenv("PATH", f"{slow.parent}:{os.environ['PATH']}")
            with pytest.raises(TryLater, match=rf"git rev-parse did not answer in {limit_s} s"):
                repository.tree(head)
        if (tmp_path / "pid").exists():
            break
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_every_git_passes_the_effects_seam(source: Path) -> None:
    head = commit(source)
    repository = Repository(source)
    seen: list[tuple[str, str]] = []

    def around(what: str, subject: str, action: Callable[[], object]) -> object:
        seen.append((what, subject))
        return action()

    effects.install(around)
    try:
        repository.tree(head)
    finally:
        effects.install(None)
    assert seen == [("command", "git")]


def test_a_refusal_carries_gits_own_words(source: Path) -> None:
    commit(source)
    with pytest.raises(OuterloopError, match=r"git rev-parse ended with status 128: fatal: "):
        Repository(source).tree("0" * 40)


def test_a_git_that_would_ignore_the_hardening_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = tmp_path / "git"
    old.write_text("#!/bin/sh\necho git version 2.18.4\n")
    old.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    require_modern.cache_clear()
    try:
        with pytest.raises(ConfigError, match=r"'git version 2\.18\.4' cannot be used: 2\.31 or newer"):
            Repository(tmp_path)
    finally:
        require_modern.cache_clear()
