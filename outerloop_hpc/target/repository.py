"""One git repository, used through plumbing commands; refs and paths from outside are data, never options."""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from outerloop_hpc.errors import TryLater, UsageError
from outerloop_hpc.target.git import GitRefused, answer, environment, require_modern, started, stop, trusting
from outerloop_hpc.target.tree import FILE, PROGRAM, Change, Entry, is_object_id, parse_changes, parse_entries

_METADATA = ("HEAD", "config", "objects", "refs", "packed-refs", "info", "shallow")
_REGULAR = {FILE, PROGRAM}


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One commit of a history.

    Attributes:
        commit: full hex id.
        committed: committer's time in epoch seconds, as the commit claims.
        author: the author's name, as the commit claims.
        subject: first line of its message; foreign text.
    """

    commit: str
    committed: int
    author: str
    subject: str


class NoSuchFile(UsageError):  # noqa: N818 - states the finding
    """A commit has nothing under a path."""


class Repository:
    """One repository, bare or not. Nothing here touches a working folder.

    Args:
        folder: the working folder or the bare repository itself; enclosing repositories are not looked for.
        timeout_s: seconds that one git command may take.

    Raises:
        UsageError: there is no repository, or parts of its metadata are symbolic links.
    """

    def __init__(self, folder: Path, *, timeout_s: float = 600.0) -> None:
        require_modern()
        self.folder = folder.absolute()
        self.git_dir = _git_dir(self.folder)
        self._timeout_s = timeout_s

    def resolve(self, ref: str) -> str:
        """Return the full id of the commit that ``ref`` (branch, tag, id, ``HEAD``) names.

        Raises:
            UsageError: no such commit.
        """
        if not ref or ref.startswith("-") or not ref.isprintable() or " " in ref:
            raise UsageError(f"{ref!a} cannot name a commit of {self.folder}; give a branch, a tag or an id")
        try:
            return self._line("rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}")
        except GitRefused as failed:
            raise UsageError(f"{self.folder}: there is no commit {ref!r}; was it pushed here?") from failed

    def tree(self, commit: str) -> str:
        """Return the full id of a commit's tree."""
        return self._line("rev-parse", "--verify", f"{_known(commit)}^{{tree}}")

    def has(self, commit: str) -> bool:
        """Whether the commit is here; ``commit`` is a full id, anything else is not here."""
        if not is_object_id(commit):
            return False
        # The answer is a line, not an exit status: a failure of git is never "not here".
        answer = self._text("cat-file", "--batch-check=%(objecttype)", stdin=f"{commit}\n".encode())
        return answer.strip() == "commit"

    def entries(self, commit: str) -> tuple[Entry, ...]:
        """Return every leaf of a commit's tree."""
        return parse_entries(self._bytes("ls-tree", "-r", "-z", "--full-tree", _known(commit)))

    def read(self, commit: str, path: str, *, limit: int = 16 * 1024 * 1024) -> bytes:
        """Return the bytes of one regular file at a commit.

        Args:
            commit: full id.
            path: from the root of the repository.
            limit: how many bytes are accepted.

        Raises:
            NoSuchFile: nothing is there.
            UsageError: it is not a regular file, or longer than ``limit``.
        """
        found = [entry for entry in self._look_up(commit, path) if entry.path == path]
        if not found:
            raise NoSuchFile(f"{path!a} does not exist at commit {commit[:12]} of {self.folder}")
        if found[0].mode not in _REGULAR:
            raise UsageError(f"{path!a} is not a regular file at commit {commit[:12]} of {self.folder}")
        size = int(self._line("cat-file", "-s", found[0].object_id))
        if size > limit:
            raise UsageError(f"{path!a} at commit {commit[:12]} has {size} bytes, at most {limit} are read")
        return self._bytes("cat-file", "blob", found[0].object_id)

    def _look_up(self, commit: str, path: str) -> tuple[Entry, ...]:
        if "\0" in path or any(part in {"", ".", ".."} for part in path.split("/")):
            return ()
        return parse_entries(self._bytes("ls-tree", "-z", "--full-tree", _known(commit), "--", path))

    def digests(self, commit: str, paths: Collection[str]) -> dict[str, str]:
        """Return the sha256 of each of these files at a commit; a path that is no regular file there has none."""
        wanted = set(paths)
        found: dict[str, str] = {}
        with self.blobs() as blobs:
            for entry in self.entries(commit):
                if entry.path in wanted and entry.mode in _REGULAR:
                    sink = _Hashing()
                    blobs.copy(entry.object_id, sink)
                    found[entry.path] = sink.digest.hexdigest()
        return found

    def changes(self, old: str, new: str) -> tuple[Change, ...]:
        """Return every path that differs between two commits; renames as deletion and addition."""
        return parse_changes(
            self._bytes(
                *("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-ext-diff", "--no-textconv"),
                *("--no-commit-id", "--full-index", "--ignore-submodules=none", _known(old), _known(new)),
            )
        )

    def log(self, since: str, until: str, *, limit: int = 1000) -> tuple[LogEntry, ...]:
        """Return the commits that ``until`` has and ``since`` has not, newest first; empty means it has not moved."""
        output = self._text(
            *("rev-list", f"--max-count={limit}", "--format=%H%x00%ct%x00%an%x00%s"),
            *(_known(until), f"^{_known(since)}"),
        )
        rows = [line.split("\0") for line in output.split("\n") if "\0" in line]
        return tuple(LogEntry(row[0], int(row[1]), row[2], row[3]) for row in rows)

    def fetch(self, source: str, refspec: str) -> None:
        """Bring one ref here from ``source``, a URL or a local repository's absolute path."""
        with trusting(source) as config:
            self._bytes(
                *("fetch", "--quiet", "--no-progress", "--no-tags", "--no-write-fetch-head"),
                *("--no-recurse-submodules", "--", source, refspec),
                env={"GIT_CONFIG_GLOBAL": str(config)},
            )

    def tree_with(self, commit: str, files: Iterable[tuple[str, int, bytes]], *, index: Path) -> str:
        """Write the tree of a commit with other files in it, and return its id.

        Git leaves out paths that it does not like, and lets a folder take the place of a file: look at what it made.

        Args:
            commit: full id.
            files: path, mode and content of each; the mode 0 removes the path.
            index: a file to work in.
        """
        env = {"GIT_INDEX_FILE": str(index)}
        self._bytes("read-tree", _known(commit), env=env)
        lines = []
        for path, mode, content in files:
            blob = "0" * len(commit)
            if mode:
                blob = self._bytes("hash-object", "-w", "--no-filters", "--stdin", stdin=content).decode().strip()
            lines.append(f"{mode:06o} {blob}\t".encode() + os.fsencode(path) + b"\0")
        self._bytes("update-index", "-z", "--index-info", stdin=b"".join(lines), env=env)
        return self._bytes("write-tree", env=env).decode().strip()

    def untracked(self, folder: Path, commit: str, *, index: Path) -> list[str]:
        """Return the paths in a folder that a commit has not and that no ignore file there leaves out.

        A folder that is a repository of its own is one path with a slash behind it.
        """
        env = {"GIT_INDEX_FILE": str(index), "GIT_WORK_TREE": str(folder)}
        self._bytes("read-tree", _known(commit), env=env)
        said = self._bytes("ls-files", "-z", "--others", "--exclude-standard", "--full-name", env=env, cwd=folder)
        return [os.fsdecode(path) for path in said.split(b"\0") if path]

    def borrow(self, other: Path) -> None:
        """Use the objects of another local repository as if they were here."""
        alternates = self.git_dir / "objects" / "info" / "alternates"
        alternates.parent.mkdir(parents=True, exist_ok=True)
        alternates.write_bytes(os.fsencode(other / "objects") + b"\n")

    def commit_tree(self, tree: str, *parents: str, message: str, variables: Mapping[str, str]) -> str:
        """Write a commit and return its id; ``variables`` name author, committer and dates."""
        named = (part for parent in parents for part in ("-p", _known(parent)))
        return self._bytes("commit-tree", _known(tree), *named, stdin=message.encode(), env=variables).decode().strip()

    def merged_tree(self, one: str, other: str) -> str | None:
        """Merge two commits without a working folder and return the tree's id; None when they conflict.

        Raises:
            GitRefused: this git is older than 2.38, which cannot do that.
        """
        # The tree comes first also where there are conflicts; only the exit status tells, and that is 1 for them.
        said = self._bytes("merge-tree", "--write-tree", "-z", _known(one), _known(other), fine=(0, 1))
        tree, _, conflicts = said.decode("utf-8", errors="replace").partition("\0")
        return None if conflicts.strip("\0\n") else tree.strip()

    def is_ancestor(self, one: str, other: str) -> bool:
        """Whether ``other`` has ``one`` in its history, or is it."""
        return not self._text("rev-list", "--max-count=1", _known(one), f"^{_known(other)}").strip()

    def ref(self, name: str) -> str | None:
        """Return the id that a full reference name stands for, or None."""
        said = self._text("for-each-ref", "--format=%(objectname) %(refname)", name).splitlines()
        found = [line.partition(" ")[0] for line in said if line.partition(" ")[2] == name]
        return found[0] if found else None

    def set_ref(self, name: str, commit: str) -> None:
        """Let a full reference name stand for a commit, whatever it was before."""
        self._bytes("update-ref", "--no-deref", name, _known(commit))

    def drop_ref(self, name: str) -> None:
        """Remove a reference; gone already is fine."""
        self._bytes("update-ref", "--no-deref", "-d", name)

    def push(self, address: str, commit: str, branch: str, *, expected: str) -> None:
        """Move a branch of another repository to a commit, as long as it is still at ``expected``.

        Raises:
            TryLater: it has moved, or the repository does not answer.
            GitRefused: the repository takes no push (its branch is checked out, or we may not write).
        """
        ref = f"refs/heads/{branch}"
        lease = f"--force-with-lease={ref}:{_known(expected)}"
        try:
            with trusting(address) as config:
                env = {"GIT_CONFIG_GLOBAL": str(config)}
                self._bytes("push", "--quiet", lease, "--", address, f"{_known(commit)}:{ref}", env=env)
        except GitRefused as refused:
            if "stale info" in str(refused):
                raise TryLater(f"{address}: {branch} moved meanwhile; nothing was changed, run again") from refused
            raise

    @contextmanager
    def blobs(self) -> Iterator[BlobStream]:
        """Open a stream that hands out the contents of objects one after the other."""
        with started(self.folder, ("cat-file", "--batch"), self._settings()) as process:
            watchdog = threading.Timer(self._timeout_s, stop, (process,))
            watchdog.daemon = True
            watchdog.start()
            try:
                yield BlobStream(process, str(self.folder))
            finally:
                watchdog.cancel()

    def _line(self, *arguments: str) -> str:
        return self._text(*arguments).strip()

    def _text(self, *arguments: str, stdin: bytes = b"") -> str:
        return self._bytes(*arguments, stdin=stdin).decode("utf-8", errors="replace")

    def _bytes(
        self,
        *arguments: str,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        fine: Sequence[int] = (0,),
        cwd: Path | None = None,
    ) -> bytes:
        settings = {**self._settings(), **(env or {})}
        return answer(cwd or self.folder, arguments, settings, self._timeout_s, stdin, fine=fine)

    def _settings(self) -> dict[str, str]:
        return {**environment(self.folder, self.git_dir), "GIT_DIR": str(self.git_dir)}


class _Hashing(io.BytesIO):
    """Takes a file of any size and keeps its digest alone."""

    def __init__(self) -> None:
        super().__init__()
        self.digest = hashlib.sha256()

    def write(self, piece: Any, /) -> int:
        self.digest.update(piece)
        return len(piece)


class BlobStream:
    """Contents of objects, in the order in which they are asked for."""

    def __init__(self, process: subprocess.Popen[bytes], where: str) -> None:
        self._process = process
        self._where = where

    def content(self, object_id: str) -> bytes:
        """Return the content of one blob; for small ones."""
        buffer = io.BytesIO()
        self.copy(object_id, buffer)
        return buffer.getvalue()

    def copy(self, object_id: str, out: IO[bytes]) -> None:
        """Write the content of one blob to ``out``.

        Raises:
            TryLater: the object cannot be read now, or git stopped.
        """
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None:
            raise TryLater(f"{self._where}: git cat-file has no pipes; run again")
        try:
            stdin.write(f"{object_id}\n".encode())
            stdin.flush()
        except BrokenPipeError as error:
            raise TryLater(f"{self._where}: git stopped before object {object_id[:12]} was read; run again") from error
        header = stdout.readline().split()
        if len(header) != 3 or header[1] != b"blob":  # noqa: PLR2004 - id, kind, size
            raise TryLater(f"{self._where}: object {object_id[:12]} cannot be read; is the repository complete?")
        left = int(header[2]) + 1  # the newline after the content
        while left:
            piece = stdout.read(min(left, 1 << 20))
            if not piece:
                raise TryLater(f"{self._where}: git stopped in the middle of object {object_id[:12]}; run again")
            left -= len(piece)
            out.write(piece if left else piece[:-1])


def create_bare(folder: Path, branch: str) -> Repository:
    """Make an empty bare repository, without the hooks and samples of a template."""
    require_modern()
    arguments = ("init", "--quiet", "--bare", "--template=", f"--initial-branch={branch}", str(folder))
    answer(folder.parent, arguments, environment(folder), 60.0, b"")
    return Repository(folder)


def _git_dir(folder: Path) -> Path:
    for candidate in (folder / ".git", folder):
        if candidate.name == ".git" and candidate.is_symlink():
            raise UsageError(f"{candidate} is a symbolic link; git metadata must be real files here")
        if candidate.name == ".git" and candidate.is_file():
            return candidate  # a linked worktree's pointer, which git follows
        if (candidate / "HEAD").is_file() and (candidate / "objects").is_dir():
            for name in _METADATA:
                if (candidate / name).is_symlink():
                    raise UsageError(f"{candidate / name} is a symbolic link; git metadata must be real files here")
            return candidate
    raise UsageError(f"{folder}: there is no git repository here")


def _known(commit: str) -> str:
    if not is_object_id(commit):
        raise UsageError(f"{commit!a} is not a full commit id; resolve names first")
    return commit
