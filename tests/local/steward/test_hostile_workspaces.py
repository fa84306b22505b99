"""What a session may leave in its workspace to trick git, the filesystem or a reader: refused by name, or nothing."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from outerloop_hpc.target.compose import Signature
from outerloop_hpc.target.mirror import Mirror
from outerloop_hpc.target.scope import Role, Territory
from outerloop_hpc.target.workspace import MOST_FILES, Captured, Workspace
from tests.local.scratch import commit, contents, git, marker_command, new_source

pytestmark = pytest.mark.local

TERRITORY = Territory(Role.STEWARD, ("checks", "evaluate.py"), (".git", ".outerloop.yaml", "solver.py"))
SIGNATURE = Signature("outerloop", "noreply@localhost", datetime(2026, 11, 29, tzinfo=UTC))


@dataclass(frozen=True)
class Desk:
    """A session's workspace, and what is around it."""

    root: Path
    base: str
    mirror: Mirror
    workspace: Workspace

    @property
    def work(self) -> Path:
        return self.workspace.path

    def capture(self) -> Captured:
        return self.workspace.capture(self.base, TERRITORY, message="m\n", signature=SIGNATURE)

    def strays(self) -> dict[str, str]:
        return {stray.path: stray.reason for stray in self.capture().strays}


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    source = new_source(tmp_path / "source")
    (source / "checks" / "data").mkdir(parents=True)
    for name in ("checks/data/one", "checks/two", "evaluate.py", "solver.py", "lib"):
        (source / name).write_text(f"{name}\n", encoding="utf-8")
    base = commit(source)
    mirror = Mirror(tmp_path / "mirror.git")
    mirror.sync(str(source), "main")
    workspace = Workspace(tmp_path / "session")
    workspace.path.parent.mkdir()
    mirror.export(base, workspace.path)
    workspace.make(mirror, base)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("of the host", encoding="utf-8")
    return Desk(tmp_path, base, mirror, workspace)


def put(desk: Desk, name: str, data: bytes = b"x") -> Path:
    path = desk.work / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def strange(name: bytes) -> Callable[[Desk], object]:
    """Return a trick: a file of this name among the checks."""
    return lambda desk: Path(os.fsdecode(os.fsencode(desk.work / "checks") + b"/" + name)).write_bytes(b"x")


def linked(name: str, target: str) -> Callable[[Desk], object]:
    return lambda desk: (desk.work / name).symlink_to(target)


def folder_out(desk: Desk) -> None:
    shutil.rmtree(desk.work / "checks" / "data")
    (desk.work / "checks" / "data").symlink_to(desk.root / "outside")


def nested(desk: Desk) -> None:
    inner = new_source(desk.work / "checks" / "inner")
    (inner / "f").write_text("x", encoding="utf-8")
    commit(inner)


def nested_without_history(desk: Desk) -> None:
    (new_source(desk.work / "checks" / "inner") / "f").write_text("x", encoding="utf-8")


def huge(desk: Desk) -> None:
    with (desk.work / "checks" / "huge").open("wb") as file:
        file.truncate(1 << 40)


def deep(desk: Desk) -> None:
    here = os.open(desk.work / "checks", os.O_RDONLY)
    for _ in range(40):
        os.mkdir("d" * 200, dir_fd=here)
        inner = os.open("d" * 200, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(os.open("file", os.O_WRONLY | os.O_CREAT, dir_fd=here))
    os.close(here)


#: A trick, and the paths that are named with a word of the reason.
REFUSED: dict[str, tuple[Callable[[Desk], object], dict[str, str]]] = {
    "a new line in a name": (strange(b"a\nb"), {"checks/a\nb": "control"}),
    "an escape in a name": (strange(b"\x1b[2J"), {"checks/\x1b[2J": "control"}),
    "a name that is not UTF-8": (strange(b"\xff\xfe"), {"checks/\udcff\udcfe": "undecodable"}),
    "a name in the other direction": (strange("a\u202eb".encode()), {"checks/a\u202eb": "invisible"}),
    "a name with a backslash": (strange(b"..\\..\\x"), {"checks/..\\..\\x": "backslash"}),
    "a name with a colon": (strange(b"x:y"), {"checks/x:y": "colon"}),
    "a name that ends with a dot": (strange(b"x."), {"checks/x.": "dot"}),
    "names that differ in letter case": (strange(b"TWO"), {"checks/TWO": "letter case"}),
    "a folder that differs in letter case": (lambda desk: put(desk, "checks/DATA/x"), {"checks/DATA/x": "letter case"}),
    "attributes": (strange(b".gitattributes"), {"checks/.gitattributes": "treats"}),
    "attributes in capitals": (strange(b".GitAttributes"), {"checks/.GitAttributes": "treats"}),
    "modules": (strange(b".gitmodules"), {"checks/.gitmodules": "treats"}),
    "the git folder by its short name": (strange(b"git~1"), {"checks/git~1": "git folder"}),
    "a link to a file of the host": (linked("checks/x", "/etc/passwd"), {"checks/x": "symbolic link"}),
    "a link to nowhere": (linked("checks/x", "/nowhere/\n"), {"checks/x": "symbolic link"}),
    "a link to itself": (linked("checks/x", "x"), {"checks/x": "symbolic link"}),
    "a link to a folder of the host": (linked("checks/x", "/etc"), {"checks/x": "symbolic link"}),
    "a folder of the base that leads out": (folder_out, {"checks/data": "symbolic link"}),
    "a nested repository": (nested, {"checks/inner/": "repository of its own|part"}),
    "a nested repository without history": (nested_without_history, {"checks/inner/": "repository of its own|part"}),
    "a file larger than the disk": (huge, {"checks/huge": "too large"}),
    "the judged side": (lambda desk: put(desk, "solver.py"), {"solver.py": "closed"}),
    "the contract": (lambda desk: put(desk, ".outerloop.yaml"), {".outerloop.yaml": "closed"}),
    "the contract in capitals": (lambda desk: put(desk, ".OuterLoop.YAML"), {".OuterLoop.YAML": "closed"}),
    "the allowed side in capitals": (lambda desk: put(desk, "CHECKS/x"), {"CHECKS/x": "letter case"}),
    "an option at the root": (lambda desk: put(desk, "-rf"), {"-rf": "outside"}),
    "an ignore file at the root": (lambda desk: put(desk, ".gitignore", b"*.pyc\n"), {".gitignore": "outside"}),
    "a deleted file of others": (lambda desk: (desk.work / "lib").unlink(), {"lib": "outside"}),
    "a program that was none": (lambda desk: (desk.work / "lib").chmod(0o755), {"lib": "outside"}),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_trick_is_refused_with_its_path(desk: Desk, name: str) -> None:
    trick, expected = REFUSED[name]
    trick(desk)
    before = contents(desk.root / "outside")
    found = desk.capture()
    reasons = {stray.path: stray.reason for stray in found.strays}
    assert found.commit == ""
    for path, words in expected.items():
        assert any(word in reasons.get(path, "") for word in words.split("|")), reasons
    assert contents(desk.root / "outside") == before


def fifo(desk: Desk) -> None:
    os.mkfifo(desk.work / "checks" / "fifo")


def listening(desk: Desk) -> None:
    here = Path.cwd()
    os.chdir(desk.work / "checks")
    try:
        with socket.socket(socket.AF_UNIX) as one:
            one.bind("socket")
    finally:
        os.chdir(here)


def git_is_a_link(desk: Desk) -> None:
    shutil.rmtree(desk.work / ".git")
    (desk.work / ".git").symlink_to(desk.root / "outside")


def git_is_a_file(desk: Desk) -> None:
    shutil.rmtree(desk.work / ".git")
    (desk.work / ".git").write_text(f"gitdir: {desk.root / 'outside'}\n", encoding="utf-8")


def git_borrows(desk: Desk) -> None:
    (desk.work / ".git/objects/info").mkdir(exist_ok=True)
    (desk.work / ".git/objects/info/alternates").write_text(f"{desk.root / 'outside'}\n", encoding="utf-8")
    (desk.work / ".git/info").mkdir(exist_ok=True)
    (desk.work / ".git/info/exclude").write_text("*\n", encoding="utf-8")


def commits(desk: Desk) -> None:
    (desk.work / "solver.py").write_text("cheated", encoding="utf-8")
    commit(desk.work)
    git(desk.work, "tag", "v1")
    (desk.work / "solver.py").write_text("solver.py\n", encoding="utf-8")


IGNORED: dict[str, Callable[[Desk], object]] = {
    "a pipe": fifo,
    "a socket": listening,
    "an empty folder": lambda desk: (desk.work / "checks" / "empty").mkdir(),
    "a git folder that is a link": git_is_a_link,
    "a git folder that is a file": git_is_a_file,
    "no git folder": lambda desk: shutil.rmtree(desk.work / ".git"),
    "borrowed objects and an exclude file": git_borrows,
    "commits and tags of its own": commits,
    "a lock on the index": lambda desk: put(desk, ".git/index.lock"),
    "a corrupt index": lambda desk: put(desk, ".git/index", b"DIRC\xff"),
}


@pytest.mark.parametrize("name", IGNORED)
def test_what_is_no_file_is_not_looked_at(desk: Desk, name: str) -> None:
    put(desk, "checks/new", b"new\n")
    IGNORED[name](desk)
    found = desk.capture()
    assert [(change.path, change.status) for change in found.changes] == [("checks/new", "A")]
    assert found.strays == ()
    assert git(desk.root / "session/beside.git", "show", f"{found.commit}:checks/new") == "new"


ALLOWED: dict[str, tuple[Callable[[Desk], object], set[tuple[str, str]]]] = {
    "a name like an option": (strange(b"-rf"), {("checks/-rf", "A")}),
    "a name like a mention": (strange(b"@ada <!-- x --> [l](x) `|`"), {("checks/@ada <!-- x --> [l](x) `|`", "A")}),
    "a name like a ref": (strange(b"HEAD^{tree}"), {("checks/HEAD^{tree}", "A")}),
    "a hard link, whose content is a file's": (
        lambda desk: os.link(desk.root / "outside" / "secret", desk.work / "checks" / "x"),
        {("checks/x", "A")},
    ),
}


@pytest.mark.parametrize("name", ALLOWED)
def test_what_only_looks_dangerous_is_a_file_like_any(desk: Desk, name: str) -> None:
    trick, expected = ALLOWED[name]
    trick(desk)
    found = desk.capture()
    assert ({(change.path, change.status) for change in found.changes}, found.strays) == (expected, ())
    desk.workspace.hand_over(found.commit, desk.mirror, "refs/outerloop/cand/r/s/1")
    assert desk.mirror.resolve("refs/outerloop/cand/r/s/1") == found.commit
    desk.mirror.export(found.commit, desk.root / "export")
    assert contents(desk.root / "export").keys() >= {path for path, _ in expected}


def test_a_file_in_the_place_of_a_folder_and_a_folder_in_the_place_of_a_file(desk: Desk) -> None:
    shutil.rmtree(desk.work / "checks" / "data")
    put(desk, "checks/data")
    (desk.work / "checks" / "two").unlink()
    put(desk, "checks/two/inner")
    found = desk.capture()
    assert {(c.path, c.status) for c in found.changes} == {
        ("checks/data", "A"),
        ("checks/data/one", "D"),
        ("checks/two", "D"),
        ("checks/two/inner", "A"),
    }
    assert found.strays == ()
    desk.mirror.take(desk.root / "session/beside.git", "refs/heads/session", "refs/outerloop/cand/r/s/1")


def test_an_ignore_file_hides_nothing_but_itself_and_what_is_new(desk: Desk) -> None:
    put(desk, ".gitignore", b"*\n")
    put(desk, "checks/new")
    put(desk, "solver.py", b"cheated")
    assert list(desk.strays()) == ["solver.py"]


def test_a_very_deep_path_is_refused_or_cannot_be_seen(desk: Desk) -> None:
    deep(desk)
    found = desk.capture()
    assert found.commit in {"", desk.base}
    assert all("longer" in stray.reason or "cannot be read" in stray.reason for stray in found.strays)


def test_too_many_files_are_refused_without_reading_them_all(desk: Desk) -> None:
    folder = desk.work / "checks" / "many"
    folder.mkdir()
    for number in range(20_000):
        (folder / str(number)).touch()
    (reason,) = desk.strays().values()
    assert str(MOST_FILES) in reason


def test_a_pipe_in_the_place_of_a_file_is_refused_and_never_opened(desk: Desk) -> None:
    (desk.work / "checks" / "two").unlink()
    os.mkfifo(desk.work / "checks" / "two")
    assert "not a regular file" in desk.strays()["checks/two"]


def test_a_folder_that_may_not_be_written_is_captured_like_any(desk: Desk) -> None:
    put(desk, "checks/closed/x").chmod(0o400)
    (desk.work / "checks" / "closed").chmod(0o500)
    try:
        assert [change.path for change in desk.capture().changes] == ["checks/closed/x"]
    finally:
        (desk.work / "checks" / "closed").chmod(0o700)


@pytest.mark.parametrize(
    "settings",
    [
        "[core]\n\tfsmonitor = {command}\n\thooksPath = {folder}\n\tsshCommand = {command}\n\teditor = {command}\n",
        '[filter "x"]\n\tclean = {command}\n\tsmudge = {command}\n\tprocess = {command}\n\trequired = true\n',
        "[core]\n\tworktree = {folder}\n\tbare = true\n\tattributesFile = {folder}/attributes\n",
        '[include]\n\tpath = {folder}/more\n[alias]\n\tls-files = "!{command}"\n',
        "[uploadpack]\n\tpackObjectsHook = {command}\n[transfer]\n\tfsckObjects = false\n",
    ],
)
def test_no_command_of_the_workspaces_git_is_run(desk: Desk, settings: str) -> None:
    marker, command = marker_command(desk.root)
    (desk.root / "attributes").write_text("* filter=x\n", encoding="utf-8")
    (desk.root / "more").write_text(f"[core]\n\tfsmonitor = {command}\n", encoding="utf-8")
    with (desk.work / ".git/config").open("a", encoding="utf-8") as file:
        file.write(settings.format(command=command, folder=desk.root))
    for hook in ("post-index-change", "pre-commit", "reference-transaction", "post-checkout", "fsmonitor-watchman"):
        hooks = desk.work / ".git/hooks"
        hooks.mkdir(exist_ok=True)
        shutil.copy(command, hooks / hook)
    put(desk, ".git/info/attributes", b"* filter=x\n")
    put(desk, "checks/new")
    found = desk.capture()
    assert [change.path for change in found.changes] == ["checks/new"]
    desk.workspace.hand_over(found.commit, desk.mirror, "refs/outerloop/cand/r/s/1")
    assert not marker.exists()
