"""The ends of the logs of cells, for evidence: read through no link, bounded, and without what looks like a key."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Mapping
from typing import Any

from outerloop_hpc.agents.redact import without_keys
from outerloop_hpc.engine.layout import RunFolder, element_file
from outerloop_hpc.engine.records import LOG
from outerloop_hpc.errors import TryLater
from outerloop_hpc.evolve.overlays import descent

#: Of one log, in bytes.
MOST = 32 * 1024
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,254}")


def outputs_of(rows: Iterable[Mapping[str, Any]], run: RunFolder) -> tuple[bytes | None, ...]:
    """Return the end of each row's log; None where there is none that is a regular file.

    Raises:
        TryLater: a disk does not answer.
    """
    return tuple(_output(place, run) if (place := _place(row)) else None for row in rows)


def _place(row: Mapping[str, Any]) -> str:
    """Return where a row's log is below the run; empty when it does not say so."""
    log = row.get("log")
    submission, index = (log.get("submission"), log.get("index")) if isinstance(log, dict) else (None, None)
    if not isinstance(submission, str) or not isinstance(index, int) or index < 0 or not _NAME.fullmatch(submission):
        return ""
    return f"tries/{submission}/{element_file(index, LOG)}"


def _output(place: str, run: RunFolder) -> bytes | None:
    try:
        with descent.opened(run.path) as root, descent.folder_of(root, place) as (folder, name):
            data, cut = _end(folder, name)
    except (FileNotFoundError, descent.Strange):
        return None
    except OSError as error:
        raise TryLater(f"{run.path / place}: cannot be read: {error.strerror}; run again") from error
    if cut:
        # A line without its beginning could be taken for another one, and a key without it would not look like one.
        data = data.partition(b"\n")[2]
    text = without_keys(data.decode("utf-8", errors="replace"))
    return f"[the first {cut} bytes and the rest of their line are left out]\n{text}".encode() if cut else text.encode()


def _end(folder: int, name: str) -> tuple[bytes, int]:
    """Return the last bytes of a file, and how many are before them."""
    try:
        descriptor = os.open(name, _FLAGS, dir_fd=folder)
    except OSError as error:
        if isinstance(error, FileNotFoundError):
            raise
        raise descent.Strange(name, "cannot be opened as a regular file") from error
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise descent.Strange(name, "is no regular file")
        cut = max(0, found.st_size - MOST)
        return os.pread(descriptor, MOST, cut), cut
    finally:
        os.close(descriptor)
