"""Go down into a folder that others wrote: part by part, by descriptors, and through no link.

A path that was looked at and then opened by name may be another one by then; what is open stays what it was.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_PIECE = 1 << 20
#: Of a file that is only compared, in bytes; a sparse one of any length is made in no time.
_LARGEST = 1 << 32


class Strange(Exception):  # noqa: N818 - states the finding
    """Something in the folder is not what it must be; ``reason`` follows the path in a sentence."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path!a} {reason}")
        self.path, self.reason = path, reason


@contextmanager
def opened(root: Path) -> Iterator[int]:
    """Open the folder to go down from; where it lies is the caller's to trust, it may not be a link itself.

    Raises:
        FileNotFoundError: it is not there.
        Strange: it is no folder.
    """
    with _closing(_open_folder(os.fspath(root), None, str(root))) as descriptor:
        yield descriptor


@contextmanager
def folder_of(root: int, path: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
    """Open the folder that a path lies in, and return it with the path's last name.

    Args:
        root: an open folder.
        path: relative, its parts already checked (no ``..``, not empty).
        make: make folders that are missing.

    Raises:
        FileNotFoundError: a folder is missing.
        Strange: a part of the way is no folder, or a link.
    """
    *folders, name = path.split("/")
    descriptor = os.dup(root)
    try:
        for depth, part in enumerate(folders, 1):
            if make:
                with suppress(FileExistsError):
                    os.mkdir(part, dir_fd=descriptor)
            deeper = _open_folder(part, descriptor, "/".join(folders[:depth]))
            os.close(descriptor)
            descriptor = deeper
        yield descriptor, name
    finally:
        os.close(descriptor)


def files(root: int, most_entries: int) -> Iterator[str]:
    """Yield the path of everything beneath an open folder that is no folder, in order.

    Raises:
        Strange: there are more entries than ``most_entries``.
    """
    seen = 0
    pending = [""]
    while pending:
        prefix = pending.pop()
        for name, is_folder in _entries(root, prefix):
            seen += 1
            if seen > most_entries:
                raise Strange(".", f"holds more than {most_entries} files and folders")
            if is_folder:
                pending.append(f"{prefix}{name}/")
            else:
                yield f"{prefix}{name}"


def content(parent: int, name: str, path: str, most: int) -> tuple[bytes, os.stat_result]:
    """Return the bytes of a regular file in an open folder, and what it is.

    Args:
        parent: the open folder.
        name: of the file in it.
        path: what to call it in messages.
        most: bytes that are accepted.

    Raises:
        FileNotFoundError: it is not there.
        Strange: it is a link or no regular file, too large, or it changed while it was read.
    """
    pieces: list[bytes] = []
    found = _read(parent, name, path, most, "are left for it", pieces.append)
    return b"".join(pieces), found


def digest(parent: int, name: str, path: str) -> str:
    """Return the sha256 of a regular file in an open folder, which may be larger than what a candidate may bring.

    Raises:
        FileNotFoundError: it is not there.
        Strange: it is a link or no regular file, too large, or it changed while it was read.
    """
    summed = hashlib.sha256()
    _read(parent, name, path, _LARGEST, "are read", summed.update)
    return summed.hexdigest()


def _read(parent: int, name: str, path: str, most: int, bound: str, take: Callable[[bytes], object]) -> os.stat_result:
    """Hand over the bytes of a regular file, piece by piece, and return what it is; ``bound`` says what ``most`` is."""
    with _closing(_open_file(name, parent, path)) as descriptor:
        before, length = os.fstat(descriptor), 0
        if not stat.S_ISREG(before.st_mode):
            raise Strange(path, "is no regular file")
        if before.st_size > most:
            raise Strange(path, f"holds more than the {most} bytes that {bound}")
        # One byte more than it has is enough to see that it grows.
        while length <= before.st_size and (piece := os.read(descriptor, min(before.st_size - length + 1, _PIECE))):
            take(piece)
            length += len(piece)
        after = os.fstat(descriptor)
    if (before.st_size, before.st_mtime_ns) != (length, after.st_mtime_ns):
        raise Strange(path, "changed while it was read")
    return after


def _entries(root: int, prefix: str) -> Sequence[tuple[str, bool]]:
    with folder_of(root, f"{prefix}.") as (descriptor, _), os.scandir(descriptor) as found:
        return sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in found)


def _open_folder(name: str, parent: int | None, path: str) -> int:
    try:
        return os.open(name, _FOLDER, dir_fd=parent)
    except OSError as error:
        raise _explained(error, path, "is no folder") from error


def _open_file(name: str, parent: int, path: str) -> int:
    try:
        return os.open(name, _FILE, dir_fd=parent)
    except OSError as error:
        raise _explained(error, path, "is no regular file") from error


def _explained(error: OSError, path: str, otherwise: str) -> Exception:
    """Tell what a name is from what a disk cannot do: links give ELOOP (or ENOTDIR), sockets ENXIO."""
    if error.errno == errno.ELOOP:
        return Strange(path, "is a symbolic link")
    if error.errno in {errno.ENOTDIR, errno.ENXIO}:
        return Strange(path, f"{otherwise} (or a symbolic link)" if error.errno == errno.ENOTDIR else otherwise)
    return error


@contextmanager
def _closing(descriptor: int) -> Iterator[int]:
    try:
        yield descriptor
    finally:
        os.close(descriptor)
