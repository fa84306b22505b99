"""A file that a command left, and that nobody vouches for."""

from __future__ import annotations

import os
import stat
from pathlib import Path

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


def content_of(file: Path, most: int) -> bytes | None:
    """Return its first ``most`` bytes; nothing of one that is no regular file or cannot be read, None where none is.

    Its folder must be one that the command could not put a link in the place of.
    """
    try:
        descriptor = os.open(file, _READ)
    except FileNotFoundError:
        return None
    except OSError:
        return b""
    # Not fdopen at once: that refuses a folder, and leaves it open.
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        return b""
    with os.fdopen(descriptor, "rb") as opened:
        return opened.read(most)
