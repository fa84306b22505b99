"""A session's workspace: a clone to work in, and afterwards a commit of what lies in it.

Nothing of the clone's own git folder is believed or used again: what was changed is found with a repository beside it
that the session never saw, file by file, without filters, attributes or links.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from outerloop_hpc.target.compose import Signature
from outerloop_hpc.target.git import answer, environment
from outerloop_hpc.target.mirror import Mirror
from outerloop_hpc.target.repository import Repository, create_bare
from outerloop_hpc.target.scope import Territory, Violation, folded, violations
from outerloop_hpc.target.tree import FILE, PROGRAM, SYMLINK, Change, Entry, algorithm_of, object_hash

#: A candidate is source code; what is larger has no business in it.
MOST_FILES = 5_000
MOST_BYTES = 100 * 1024 * 1024
_BRANCH = "session"
_BASE = "refs/outerloop/base"


@dataclass(frozen=True, slots=True)
class Captured:
    """What lies in a workspace.

    Attributes:
        commit: on top of the base; the base itself when nothing was changed, empty when ``strays`` forbid one.
        tree: its tree.
        changes: every path that differs from the base.
        strays: what must not be there.
    """

    commit: str
    tree: str
    changes: tuple[Change, ...]
    strays: tuple[Violation, ...] = ()


class Workspace:
    """One session's folder, and the repository beside it.

    Args:
        folder: an empty place for both; node-local.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.path = folder, folder / "work"
        self._beside = folder / "beside.git"

    def make(self, mirror: Mirror, commit: str) -> None:
        """Make a clone of the exported files in ``path``: with their history, and no way back to where they came from.

        Raises:
            TryLater: disk or mirror do not answer.
        """
        beside = create_bare(self._beside, _BRANCH)
        beside.borrow(mirror.path)
        beside.set_ref(f"refs/heads/{_BRANCH}", commit)
        self._git("init", "--quiet", "--template=", f"--initial-branch={_BRANCH}")
        inner = Repository(self.path)
        # Git fetches into no branch that is checked out; with its history here the branch is only a name.
        inner.fetch(str(self._beside), f"refs/heads/{_BRANCH}:{_BASE}")
        inner.set_ref(f"refs/heads/{_BRANCH}", commit)
        inner.drop_ref(_BASE)
        self._git("read-tree", "HEAD")

    def capture(
        self,
        base: str,
        territory: Territory,
        *,
        message: str,
        signature: Signature,
        secrets: Sequence[bytes] = (),
    ) -> Captured:
        """Commit what lies in the workspace on top of ``base``, unless something in it must not be there.

        Args:
            base: full id of the commit that the session began with.
            territory: where it may write.
            message: of the commit.
            signature: whom the commit names.
            secrets: what no name and no content may hold.

        Raises:
            TryLater: the disk is full, or files cannot be read.
        """
        beside = Repository(self._beside)
        found = list(self._differences(beside, base))
        changes = tuple(change for change, _, _ in found)
        strays = tuple(stray for _, _, stray in found if stray is not None)
        strays += tuple(
            Violation(change.path, "holds a secret of the session")
            for change, content, stray in found
            if stray is None and any(s in content or s in os.fsencode(change.path) for s in secrets)
        )
        strays += tuple(v for v in violations(changes, territory) if v.path not in {s.path for s in strays})
        strays += tuple(v for v in _twins(beside.entries(base), changes) if v.path not in {s.path for s in strays})
        if strays:
            return Captured("", "", changes, tuple(sorted(strays, key=lambda one: one.path)))
        if not changes:
            return Captured(base, beside.tree(base), ())
        files = ((change.path, change.new_mode, content) for change, content, _ in found)
        tree = beside.tree_with(base, files, index=self._beside / "candidate-index")
        commit = beside.commit_tree(tree, base, message=message, variables=signature.variables())
        made = beside.changes(base, commit)
        if {(c.path, c.new_mode) for c in made} != {(c.path, c.new_mode) for c in changes}:
            lost = sorted({c.path for c in changes} ^ {c.path for c in made})
            return Captured("", "", changes, tuple(Violation(path, "cannot be committed") for path in lost))
        return Captured(commit, tree, made)

    def hand_over(self, commit: str, mirror: Mirror, ref: str) -> None:
        """Bring a captured commit into the mirror as ``ref``."""
        Repository(self._beside).set_ref("refs/heads/candidate", commit)
        mirror.take(self._beside, "refs/heads/candidate", ref)

    def _differences(self, beside: Repository, base: str) -> Iterator[tuple[Change, bytes, Violation | None]]:
        """Yield every path that differs: the change, its content, and what is wrong with it."""
        known = {entry.path: entry for entry in beside.entries(base)}
        room = MOST_BYTES
        names = sorted({*known, *self._others(beside, base)})
        for count, path in enumerate(names):
            old = known.get(path)
            new = self._look(path)
            if new is None:
                if old is not None:
                    yield _change(path, old, 0), b"", None
                continue
            mode, content = new
            if old is not None and mode == old.mode and content is not None and _blob(content, old) == old.object_id:
                continue
            change = _change(path, old, mode)
            room -= len(content or b"")
            if content is None:
                yield change, b"", Violation(path, "is not a regular file, is too large, or cannot be read")
            elif count > MOST_FILES + len(known) or room < 0:
                yield change, b"", Violation(path, f"is more than {MOST_FILES} files or {MOST_BYTES} bytes of changes")
                return
            elif path.endswith("/"):
                yield change, b"", Violation(path, "is a repository of its own")
            else:
                yield change, content, None

    def _others(self, beside: Repository, base: str) -> Sequence[str]:
        """Return the paths that the base has not and that its or the session's ignore rules do not leave out."""
        return beside.untracked(self.path, base, index=self._beside / "base-index")

    def _look(self, path: str) -> tuple[int, bytes | None] | None:
        """Return mode and content of a path in the workspace, following no link; None when it is not there."""
        parts = path.rstrip("/").split("/")
        place = self.path
        try:
            for part in parts[:-1]:
                place /= part
                if not stat.S_ISDIR(place.lstat().st_mode):
                    return None
            place /= parts[-1]
            status = place.lstat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError:
            return FILE, None
        return _content(place, status, folder=path.endswith("/"))

    def _git(self, *arguments: str) -> bytes:
        return answer(self.path, arguments, environment(self.path), 600.0, b"")


def _content(place: Path, status: os.stat_result, *, folder: bool) -> tuple[int, bytes | None] | None:
    if stat.S_ISDIR(status.st_mode):
        return (FILE, b"") if folder else None
    if stat.S_ISLNK(status.st_mode):
        return SYMLINK, os.fsencode(place.readlink())
    if not stat.S_ISREG(status.st_mode):
        return FILE, None
    mode = PROGRAM if status.st_mode & stat.S_IXUSR else FILE
    if status.st_size > MOST_BYTES:
        return mode, None
    try:
        descriptor = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            return mode, file.read(MOST_BYTES + 1)
    except OSError:
        return mode, None


def _twins(base: Iterable[Entry], changes: Sequence[Change]) -> Iterator[Violation]:
    """Yield the new paths that some filesystems could not tell from one that stays as it was."""
    changed = {change.path for change in changes}
    spelled = {folded(place): place for entry in base if entry.path not in changed for place in _places(entry.path)}
    for change in changes:
        for place in () if change.deleted else _places(change.path):
            other = spelled.get(folded(place), place)
            if other != place:
                yield Violation(change.path, f"differs from {other!r} only in letter case or Unicode form")
                break


def _places(path: str) -> Iterator[str]:
    """Yield a path and the folders that it lies in."""
    parts = path.split("/")
    return ("/".join(parts[:depth]) for depth in range(1, len(parts) + 1))


def _blob(content: bytes, like: Entry) -> str:
    """Return the id that git would give to a content, in the format of another object."""
    return object_hash("blob", len(content), algorithm_of(like.object_id), content).hexdigest()


def _change(path: str, old: Entry | None, mode: int) -> Change:
    status = "A" if old is None else "M" if mode else "D"
    return Change(path=path, old_mode=0 if old is None else old.mode, new_mode=mode, status=status)
