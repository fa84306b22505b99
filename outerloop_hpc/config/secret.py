"""Secrets: settings name files of mode 0600; the text in them is read here and nowhere else."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

from outerloop_hpc.errors import ConfigError

_LARGEST_SECRET: Final = 65536


def read_secret(path: Path) -> str:
    """Read a secret from its file. Settings name such files; they never hold the secret.

    Raises:
        ConfigError: not a regular file, not ours, readable by group or world, empty, or not readable.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise ConfigError(f"{path}: the secret cannot be read: {error.strerror}") from None
    try:
        # Checked on what was opened, not on the name: the name may lead elsewhere a moment later.
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise ConfigError(f"{path}: a secret must be a regular file")
        if status.st_mode & 0o077:
            raise ConfigError(f"{path}: others can read this secret; run `chmod 600 {path}` and consider it leaked")
        if status.st_uid not in {os.geteuid(), 0}:
            raise ConfigError(f"{path}: this secret belongs to another user (uid {status.st_uid})")
        text = os.read(descriptor, _LARGEST_SECRET).decode("utf-8", errors="replace").strip()
    finally:
        os.close(descriptor)
    if not text:
        raise ConfigError(f"{path}: the secret is empty")
    return text
