"""Room on a disk, found out by writing to it: an exceeded quota does not show in what a filesystem says of itself."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from outerloop_hpc.errors import NodeUnfit, TryLater

_PROBE_BYTES = 64 * 1024
_LEAST_FILES = 1_000
#: What a home must take: sessions, caches and git write there whatever else is said.
HOME_BYTES = 100 * 10**6


class NoRoom(TryLater, NodeUnfit):
    """A disk is full, or its quota is used up; on another node scratch may have room."""


def require_room(folder: Path, wanted_bytes: int) -> None:
    """Make sure that a folder's disk has so much room, and takes a file.

    Raises:
        NoRoom: it has not, or does not; the text names folder and figures.
    """
    if lack := lacking(folder, wanted_bytes):
        raise NoRoom(lack)


def lacking(folder: Path, wanted_bytes: int, *, write: bool = True) -> str:
    """Say what a folder's disk lacks; empty when it has room, files are left, and it takes one.

    Without ``write`` no file is tried, and an exceeded quota does not show.
    """
    try:
        found = os.statvfs(folder)
        free = found.f_bavail * found.f_frsize
        if free < wanted_bytes:
            return f"{folder}: {free / 10**9:.1f} GB free, {wanted_bytes / 10**9:.1f} wanted"
        # Filesystems without a table of files say 0 of 0.
        if found.f_files and found.f_favail < _LEAST_FILES:
            return f"{folder}: {found.f_favail} more files can be made, {_LEAST_FILES} wanted"
        if write:
            _take_a_file(folder)
    except OSError as error:
        return f"{folder}: cannot be written: {error.strerror}"
    return ""


def _take_a_file(folder: Path) -> None:
    # Where a file cannot be made without a name it has one for a moment: housekeeping knows it by this beginning.
    with tempfile.TemporaryFile(dir=folder, prefix=".tmp-room-") as file:
        file.write(b"\0" * _PROBE_BYTES)
        file.flush()
        os.fsync(file.fileno())
