"""Let two files of one folder change places, so that nobody's bytes are lost, whoever writes there meanwhile.

Linux does it in one step (``renameat2`` with RENAME_EXCHANGE); many network filesystems lack that. There the file is
taken away and the other one put in its place only as long as the name is free: for a moment the name is missing, but a
file that an editor saves in that moment is never overwritten, as it would be by a plain rename.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import os
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

_EXCHANGE = 2
#: What a kernel, a C library or a filesystem says that cannot do it.
_LACKING = {errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}
_NO_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK}

#: (folder, name, other name): raises OSError.
Atomic = Callable[[int, str, str], None]


class Exchange(Protocol):
    """How files change places; all names are in one open folder."""

    def swap(self, folder: int, name: str, spare: str, aside: str) -> None:
        """Let ``name`` and ``spare`` change places; ``aside`` is free, and may be used on the way.

        Raises:
            FileNotFoundError: one of them is not there.
            FileExistsError: somebody else put a file under ``name`` meanwhile; what was there is under ``aside``.
        """
        ...

    def place(self, folder: int, name: str, spare: str) -> None:
        """Move ``spare`` to ``name``, which is free.

        Raises:
            FileExistsError: it is not; ``spare`` stays.
        """
        ...


class FileExchange:
    """The exchange of this machine: in one step where the filesystem can, else in several.

    Args:
        atomic: the step; another one in tests.
    """

    def __init__(self, atomic: Atomic | None = None) -> None:
        self._atomic = atomic or renameat2

    def swap(self, folder: int, name: str, spare: str, aside: str) -> None:
        """Let two files change places; see ``Exchange``."""
        try:
            self._atomic(folder, spare, name)
        except OSError as error:
            if error.errno not in _LACKING:
                raise
            self._in_steps(folder, name, spare, aside)

    def place(self, folder: int, name: str, spare: str) -> None:
        """Move a file to a name that is free; see ``Exchange``."""
        try:
            os.link(spare, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            # Without links nothing is exclusive for a file: this is as near as it gets.
            with suppress(FileNotFoundError):
                os.stat(name, dir_fd=folder, follow_symlinks=False)
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name) from error
            os.rename(spare, name, src_dir_fd=folder, dst_dir_fd=folder)
        else:
            os.unlink(spare, dir_fd=folder)

    def _in_steps(self, folder: int, name: str, spare: str, aside: str) -> None:
        os.stat(spare, dir_fd=folder, follow_symlinks=False)  # before anything is taken away
        os.rename(name, aside, src_dir_fd=folder, dst_dir_fd=folder)
        self.place(folder, name, spare)
        os.rename(aside, spare, src_dir_fd=folder, dst_dir_fd=folder)


def renameat2(folder: int, one: str, other: str) -> None:
    """Exchange two names of an open folder in one step.

    Raises:
        OSError: they cannot be; ENOSYS where the C library lacks the call.
    """
    call = _call()
    if call is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    if call(folder, os.fsencode(one), folder, os.fsencode(other), _EXCHANGE) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), one)


@functools.cache
def _call() -> Callable[..., int] | None:
    try:
        found = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError):
        return None
    found.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
    found.restype = ctypes.c_int
    return found
