from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from outerloop_hpc.clock import SystemClock
from outerloop_hpc.errors import OuterloopError, TryLater, UsageError
from outerloop_hpc.target import git as git_module
from outerloop_hpc.target.mirror import Mirror, address_of, checked_branch
from outerloop_hpc.target.repository import Repository, create_bare
from tests.local.scratch import commit, contents, git, marker_command, new_source

pytestmark = pytest.mark.local


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return new_source(tmp_path / "so urce'\"ü")


@pytest.fixture
def mirror(tmp_path: Path) -> Mirror:
    return Mirror(tmp_path / "state ü" / "mirrors" / "iris.git", clock=Hasty())


class Hasty(SystemClock):
    """A clock that does not make tests wait."""

    def sleep(self, seconds: float) -> None:
        time.sleep(min(seconds, 0.02))


def listing(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def grown(source: Path, text: str) -> str:
    (source / "f").write_text(text)
    return commit(source)


def test_a_mirror_is_made_then_follows_its_source(source: Path, mirror: Mirror, tmp_path: Path) -> None:
    first = grown(source, "1")
    assert not mirror.exists()
    assert not mirror.has(first)
    assert mirror.sync(str(source), "main") == first
    second = grown(source, "2")
    assert mirror.head("main") == first
    assert mirror.sync(str(source), "main") == second == mirror.head("main")
    assert mirror.read(first, "f") == b"1"
    assert [entry.commit for entry in mirror.log(first, second)] == [second]
    assert [change.path for change in mirror.changes(first, second)] == ["f"]
    assert mirror.export(first, tmp_path / "out") == mirror.tree(first)
    assert contents(tmp_path / "out") == {"f": b"1"}
    assert listing(mirror.path.parent) == ["iris.git"]


def test_several_branches_share_a_mirror(source: Path, mirror: Mirror) -> None:
    main = grown(source, "1")
    git(source, "switch", "--quiet", "-c", "ünï/x.y")
    other = grown(source, "2")
    assert mirror.sync(f"file://{source}".replace(" ", "%20"), "ünï/x.y") == other
    assert mirror.sync(str(source), "main") == main
    assert (mirror.head("ünï/x.y"), mirror.resolve("ünï/x.y")) == (other, other)


def test_rewritten_history_is_followed_and_the_old_commits_stay(source: Path, mirror: Mirror) -> None:
    old = grown(source, "1")
    mirror.sync(str(source), "main")
    (source / "f").write_text("rewritten")
    git(source, "commit", "--quiet", "--all", "--amend", "-m", "again")
    new = git(source, "rev-parse", "HEAD")
    assert mirror.sync(str(source), "main") == new
    assert mirror.read(old, "f") == b"1"


def test_candidates_are_left_alone(source: Path, mirror: Mirror) -> None:
    grown(source, "1")
    mirror.sync(str(source), "main")
    candidate = grown(source, "candidate")
    git(source, "push", "--quiet", str(mirror.path), f"{candidate}:refs/outerloop/cand/r1/s/1")
    git(source, "update-ref", "refs/outerloop/cand/r1/s/1", "HEAD~1")
    git(source, "reset", "--quiet", "--hard", "HEAD~1")
    mirror.sync(str(source), "main")
    assert mirror.resolve("refs/outerloop/cand/r1/s/1") == candidate
    assert mirror.has(candidate)


def test_tags_and_other_branches_of_the_source_do_not_come_along(source: Path, mirror: Mirror) -> None:
    grown(source, "1")
    git(source, "tag", "v1")
    git(source, "branch", "refs-heads-trick")
    mirror.sync(str(source), "main")
    assert git(mirror.path, "for-each-ref", "--format=%(refname)") == "refs/heads/main"


def test_a_mirror_keeps_few_files(source: Path, mirror: Mirror) -> None:
    grown(source, "1")
    mirror.sync(str(source), "main")
    for number in range(10):
        (source / f"f{number}").write_text("x")
    commit(source)
    mirror.sync(str(source), "main")
    names = [path.relative_to(mirror.path) for path in mirror.path.rglob("*") if path.is_file()]
    assert len([name for name in names if name.parts[0] == "objects"]) == 4
    assert not [name for name in names if name.parts[0] in {"hooks", "logs", "FETCH_HEAD"}]


def test_the_groups_rights_are_kept(source: Path, mirror: Mirror) -> None:
    grown(source, "1")
    old = os.umask(0o007)
    try:
        mirror.sync(str(source), "main")
    finally:
        os.umask(old)
    assert stat.S_IMODE((mirror.path / "refs/heads/main").stat().st_mode) == 0o660
    assert stat.S_IMODE((mirror.path / "objects").stat().st_mode) & 0o770 == 0o770


@pytest.mark.parametrize(
    "source_text",
    ["/nowhere/at/all", "./nowhere", "file:///nowhere"],
)
def test_a_source_that_is_not_there_leaves_no_mirror(mirror: Mirror, source_text: str) -> None:
    with pytest.raises(UsageError):
        mirror.sync(source_text, "main")
    assert not mirror.exists()
    assert listing(mirror.path.parent) == []


def test_a_branch_that_is_not_there_is_said(source: Path, mirror: Mirror) -> None:
    with pytest.raises(UsageError, match="find remote ref"):
        mirror.sync(str(source), "main")
    grown(source, "1")
    with pytest.raises(UsageError, match="couldn't find remote ref refs/heads/nope"):
        mirror.sync(str(source), "nope")
    mirror.sync(str(source), "main")
    with pytest.raises(UsageError, match="no commit 'refs/heads/nope'"):
        mirror.head("nope")


def test_reading_before_the_first_sync_says_what_to_do(mirror: Mirror) -> None:
    for read in (lambda: mirror.head("main"), lambda: mirror.read("0" * 40, "f")):
        with pytest.raises(UsageError, match="no mirror yet; sync"):
            read()


def test_a_source_of_another_user_can_be_mirrored(
    source: Path, mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = grown(source, "1")
    bare = source.parent / 'bare \\ "q".git'
    git(source.parent, "clone", "--quiet", "--bare", str(source), str(bare))
    monkeypatch.setattr("outerloop_hpc.target.git._KEPT", frozenset({"GIT_TEST_ASSUME_DIFFERENT_OWNER"}))
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    assert mirror.sync(str(source), "main") == head
    assert mirror.sync(str(bare), "main") == head


def test_nothing_of_a_hostile_source_or_mirror_is_run(source: Path, mirror: Mirror, tmp_path: Path) -> None:
    marker, script = marker_command(tmp_path)
    head = grown(source, "1")
    git(source, "switch", "--quiet", "-c", "two")
    second = grown(source, "2")
    for key in ("core.fsmonitor", "core.sshCommand", "core.alternateRefsCommand", "uploadpack.packObjectsHook"):
        git(source, "config", key, script)
    write_hooks(source / ".git/hooks", script)
    assert mirror.sync(str(source), "main") == head
    write_hooks(mirror.path / "hooks", script)
    git(mirror.path, "config", "gc.auto", "1")
    assert mirror.sync(str(source), "two") == second
    assert mirror.read(second, "f") == b"2"
    assert not marker.exists()
    git(mirror.path, "update-ref", "refs/heads/main", second)
    assert marker.exists(), "the trap would not have closed"


def write_hooks(folder: Path, script: str) -> None:
    folder.mkdir(exist_ok=True)
    for name in ("post-checkout", "reference-transaction", "post-update", "pre-auto-gc"):
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)


def test_a_mirror_whose_metadata_was_replaced_is_refused(source: Path, mirror: Mirror, tmp_path: Path) -> None:
    grown(source, "1")
    mirror.sync(str(source), "main")
    (mirror.path / "objects").rename(tmp_path / "elsewhere")
    (mirror.path / "objects").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match="symbolic link; git metadata"):
        mirror.sync(str(source), "main")


def test_a_lock_of_somebody_else_is_waited_for_and_never_removed(
    source: Path, mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert int(git_module._CONFIG["core.filesRefLockTimeout"]) >= 1000
    monkeypatch.setitem(git_module._CONFIG, "core.filesRefLockTimeout", "60000")  # however busy this machine is
    grown(source, "1")
    mirror.sync(str(source), "main")
    head = grown(source, "2")
    lock = mirror.path / "refs/heads/main.lock"
    lock.write_text("")
    done: list[str] = []
    worker = threading.Thread(target=lambda: done.append(mirror.sync(str(source), "main")))
    worker.start()
    time.sleep(0.3)
    assert lock.exists()
    lock.unlink()
    worker.join(120)
    assert done == [head]


def test_a_lock_that_stays_is_reported_with_its_path(
    source: Path, mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = grown(source, "1")
    mirror.sync(str(source), "main")
    grown(source, "2")
    lock = mirror.path / "refs/heads/main.lock"
    lock.write_text("")
    monkeypatch.setitem(git_module._CONFIG, "core.filesRefLockTimeout", "20")
    with pytest.raises(TryLater, match=r"main\.lock.*locks of others are left alone"):
        mirror.sync(str(source), "main")
    assert lock.exists()
    assert mirror.head("main") == first


SYNC = """
import sys
from pathlib import Path
from outerloop_hpc.target.mirror import Mirror
print(Mirror(Path(sys.argv[1])).sync(sys.argv[2], "main"))
"""


def start(mirror: Mirror, source: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", SYNC, str(mirror.path), str(source)],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "TMPDIR": str(source.parent)},  # what is killed cannot tidy up
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def answers(processes: list[subprocess.Popen[str]]) -> list[str]:
    found = []
    for process in processes:
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        found.append(out.strip())
    return found


def test_many_hosts_may_make_and_update_a_mirror_at_once(source: Path, mirror: Mirror) -> None:
    head = grown(source, "1")
    assert answers([start(mirror, source) for _ in range(4)]) == [head] * 4
    assert listing(mirror.path.parent) == ["iris.git"]
    for number in range(3):
        head = grown(source, f"more {number}")
        assert answers([start(mirror, source) for _ in range(3)]) == [head] * 3
    git(mirror.path, "fsck", "--strict", "--connectivity-only")


def test_who_loses_the_race_to_make_the_mirror_uses_the_winners(
    source: Path, mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = grown(source, "1")
    other = Mirror(mirror.path)

    def slow(folder: Path, branch: str) -> Repository:
        monkeypatch.setattr("outerloop_hpc.target.mirror.create_bare", create_bare)
        other.sync(str(source), branch)
        (mirror.path / "of-the-winner").write_text("")
        return create_bare(folder, branch)

    monkeypatch.setattr("outerloop_hpc.target.mirror.create_bare", slow)
    assert mirror.sync(str(source), "main") == head
    assert (mirror.path / "of-the-winner").exists()
    assert listing(mirror.path.parent) == ["iris.git"]


@pytest.mark.parametrize("delay_s", [0.05, 0.2, 0.3, 0.4])
def test_a_sync_killed_at_any_point_leaves_a_mirror_that_the_next_one_completes(
    source: Path, mirror: Mirror, delay_s: float
) -> None:
    (source / "big").write_bytes(os.urandom(4_000_000))
    head = grown(source, "1")
    process = start(mirror, source)
    time.sleep(delay_s)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert mirror.sync(str(source), "main") == head
    git(mirror.path, "fsck", "--strict")


@pytest.mark.parametrize(
    "branch",
    ["", "-x", "a..b", "a b", "a\n", "a~1", "a^", "a:b", "a?", "a*", "a[b", "a\\b", "/a", "a/", "a//b", "a.", ".a",
     "a/.b", "a.lock", "a.lock/b", "@", "a@{1}", "a\x7f", "a\u202eb"],
)  # fmt: skip
def test_names_that_git_would_not_take_are_no_branches(branch: str) -> None:
    with pytest.raises(UsageError, match="not a branch name"):
        checked_branch(branch)


@pytest.mark.parametrize("branch", ["main", "feat/x-1", "ünï", "a.b", "a@b", "x.lockx"])
def test_names_that_git_takes_are(branch: str, tmp_path: Path) -> None:
    assert checked_branch(branch) == branch
    assert git(tmp_path, "check-ref-format", "--branch", branch) == branch


@pytest.mark.parametrize(
    ("source_text", "message"),
    [
        ("", "not the address"),
        ("--upload-pack=touch x", "not the address"),
        ("a\nb", "not the address"),
        ("ext::sh -c touch% x", "does not appear|no git repository|not allowed|absolute"),
        ("https://user:secret@host/x", "holds a user name or password"),
        ("https://ghp_token@host/x", "holds a user name or password"),
        ("ssh://git:secret@host/x", "holds a user name or password"),
        ("http://host/x", "http:// repositories are not read"),
        ("git://host/x", "git:// repositories are not read"),
        ("ext://sh", "ext:// repositories are not read"),
        ("https:///x", "are not read"),
        ("https://[::1/x", "cannot be read"),
    ],
)
def test_addresses_that_run_something_or_show_a_secret_are_refused(
    mirror: Mirror, source_text: str, message: str
) -> None:
    with pytest.raises(OuterloopError, match=message) as refused:
        mirror.sync(source_text, "main")
    assert "secret" not in str(refused.value)
    assert "ghp_token" not in str(refused.value)


def test_addresses_reach_git_as_paths_or_urls(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    expectations: dict[str, Callable[[], str]] = {
        str(source): lambda: str(source),
        source.name: lambda: str(source),
        "./x": lambda: str(tmp_path / "x"),
        "https://host/me/x.git": lambda: "https://host/me/x.git",
        "ssh://git@host/x": lambda: "ssh://git@host/x",
        "git@host:me/x.git": lambda: "git@host:me/x.git",
        "file:///a%20b": lambda: "/a b",
    }
    for text, expected in expectations.items():
        assert address_of(text) == expected()
