"""What lies at some paths of a checkout, to see later whether it is still the same."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path

from outerloop_hpc.errors import TryLater

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_SHOWN = 5


def fingerprint(checkout: Path, paths: Iterable[str]) -> dict[str, str]:
    """Return the sha256 of each regular file; a word for what is none, or is not there.

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
    except PermissionError:
        return "closed"
    except OSError as error:
        if path.is_symlink():
            return "link"
        raise TryLater(f"{path}: cannot be read: {error.strerror}; run again") from error
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return "special"
        return hashlib.file_digest(file, "sha256").hexdigest()
