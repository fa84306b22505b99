"""The log of a cell: one file for several commands, bounded, and live for the one that runs."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from outerloop_hpc.supervision.capture import CappedLog

#: Of one command, in bytes; also what is kept of its output, of which the last object must be whole.
PER_COMMAND = 512 * 1024


class CellLog:
    """Gathers what each command said.

    Args:
        path: where the command that runs writes, and in the end everything is.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._parts: list[bytes] = []

    def keep(self, title: str) -> None:
        """Take in what the command that has just ended said; the next one begins the file anew."""
        said = b""
        with suppress(OSError):
            said = self.path.read_bytes()
        self._parts.append(b"== %s ==\n%s\n" % (title.encode(), said.rstrip(b"\n")))

    def close(self) -> None:
        """Write all of it. A log that cannot be written ends no cell."""
        whole = b"".join(self._parts)
        log = CappedLog(self.path, max(2 * len(whole), 1))
        log.add(whole)
        log.close()
