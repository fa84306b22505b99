"""What lies at some paths of a checkout, to see later whether it is still the same."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path

from outerloop_hpc.errors import TryLater

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_SHOWN = 5
#: Errors of a disk, a mount or a node; they say nothing about the file.
_PASSING = {errno.EIO, errno.ESTALE, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.EINTR, errno.ETIMEDOUT}
#: No file that a candidate may bring is larger; a sparse one of any length is made in no time.
_LARGEST = 256 * 1024 * 1024


def fingerprint(checkout: Path, paths: Iterable[str]) -> dict[str, str]:
    """Return the sha256 of each regular file; a word for what is none, is not there, or is too large to be read.

    Raises:
        TryLater: the disk does not answer.
    """
    return {path: _digest(checkout / path) for path in paths}


def changed(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """Name the paths that differ, for a message; empty when none does (pure)."""
    found = [path for path in sorted(before.keys() | after.keys()) if before.get(path) != after.get(path)]
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return ", ".join(ascii(path) for path in found[:_SHOWN]) + more


def _digest(path: Path) -> str:
    try:
        descriptor = os.open(path, _READ)
    except (FileNotFoundError, NotADirectoryError):
        return "absent"
    except OSError as error:
        if error.errno in _PASSING:
            raise TryLater(f"{path}: cannot be read: {error.strerror}; run again") from error
        # A link, a loop of links, a file without rights: whoever ran there made it.
        return "closed"
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        # How large a folder is says only how much was ever made in it: a cache of compiled files is no change.
        return stat.filemode(status.st_mode)
    if status.st_size > _LARGEST:
        os.close(descriptor)
        return f"{stat.filemode(status.st_mode)}, {status.st_size} bytes"
    with os.fdopen(descriptor, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
