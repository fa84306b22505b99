"""Remove what is in a folder, piece by piece and never beside it: a link is removed as a link, a mount is not entered.

Between any two pieces the caller may say that it is enough; what is left is the next one's.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

_FOLDER = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
#: Deeper ones are left: each level holds an open folder, and a process has a thousand.
_DEEPEST = 250


@dataclass(frozen=True, slots=True)
class Cleared:
    """What was removed.

    Attributes:
        bytes: of the files that are gone, as far as no other name holds them.
        whole: nothing that was to go is left.
        trouble: the first thing that could not be removed, and why; empty when that was only the caller's word.
    """

    bytes: int = 0
    whole: bool = True
    trouble: str = ""

    def plus(self, other: Cleared) -> Cleared:
        """Return both together."""
        return Cleared(self.bytes + other.bytes, self.whole and other.whole, self.trouble or other.trouble)


def clear(folder: Path, enough: Callable[[], bool], *, keep: str = "") -> Cleared:
    """Remove everything in a folder, except the entry ``keep``; a folder that is not there is clear.

    Folders that lack their owner's rights get them first. Nothing is raised for what cannot be removed.
    """
    try:
        with _opened(str(folder), None) as opened:
            return _Clearing(os.fstat(opened).st_dev, enough).inside(opened, str(folder), keep=keep)
    except FileNotFoundError:
        return Cleared()
    except OSError as error:
        return _trouble(str(folder), error)


def remove(path: Path, enough: Callable[[], bool]) -> Cleared:
    """Remove a file, a link, or a folder with everything in it; gone already is fine."""
    try:
        found = path.lstat()
        if not stat.S_ISDIR(found.st_mode):
            path.unlink()
            return Cleared(_size(found))
        cleared = clear(path, enough)
        if cleared.whole:
            path.rmdir()
    except FileNotFoundError:
        return Cleared()
    except OSError as error:
        return _trouble(str(path), error)
    return cleared


@dataclass(frozen=True, slots=True)
class _Clearing:
    device: int
    enough: Callable[[], bool]

    def inside(self, folder: int, name: str, *, keep: str = "", depth: int = 0) -> Cleared:
        if os.fstat(folder).st_dev != self.device or depth > _DEEPEST:
            why = "something is mounted there" if depth <= _DEEPEST else "too deep to be removed by a program"
            return Cleared(whole=False, trouble=f"{name}: {why}")
        with os.scandir(folder) as entries:
            found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries if entry.name != keep]
        done = Cleared()
        for entry, is_folder in found:
            if self.enough():
                return replace(done, whole=False)
            inner = f"{name}/{entry}"
            try:
                done = done.plus(self._entry(folder, entry, inner, depth) if is_folder else _file(folder, entry))
            except FileNotFoundError:
                continue
            except OSError as error:
                done = done.plus(_trouble(inner, error))
        return done

    def _entry(self, parent: int, entry: str, name: str, depth: int) -> Cleared:
        with _opened(entry, parent) as opened:
            done = self.inside(opened, name, depth=depth + 1)
        if done.whole:
            os.rmdir(entry, dir_fd=parent)
        return done


@contextmanager
def _opened(name: str, parent: int | None) -> Iterator[int]:
    """Open a folder, not what a link of that name leads to, and make sure that its entries can be removed."""
    handle = os.open(name, os.O_PATH | _FOLDER, dir_fd=parent)
    try:
        found = os.fstat(handle)
        if found.st_mode & stat.S_IRWXU != stat.S_IRWXU and found.st_uid == os.geteuid():
            with suppress(OSError):  # opening it then says what is wrong
                Path(f"/proc/self/fd/{handle}").chmod(0o700)
        opened = os.open(".", os.O_RDONLY | _FOLDER, dir_fd=handle)
    finally:
        os.close(handle)
    try:
        yield opened
    finally:
        os.close(opened)


def _file(folder: int, name: str) -> Cleared:
    size = _size(os.stat(name, dir_fd=folder, follow_symlinks=False))
    os.unlink(name, dir_fd=folder)
    return Cleared(size)


def _size(found: os.stat_result) -> int:
    return found.st_size if found.st_nlink == 1 else 0


def _trouble(name: str, error: OSError) -> Cleared:
    return Cleared(whole=False, trouble=f"{name}: cannot be removed: {error.strerror}")
