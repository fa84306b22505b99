"""Keep the end of a stream and a capped log of it, whatever floods in: bounded memory, bounded disk, no secrets."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

#: What stands in the place of a secret.
MASK: Final = b"[redacted]"


class Sink(Protocol):
    """Takes a stream piece by piece."""

    def add(self, chunk: bytes) -> None:
        """Take the next bytes of the stream."""
        ...


class Redacted:
    """Hands a stream on with every occurrence of a secret masked, also one that comes in two pieces."""

    def __init__(self, sinks: Sequence[Sink], secrets: Sequence[bytes]) -> None:
        longest_first = sorted(filter(None, secrets), key=len, reverse=True)
        self._sinks = sinks
        self._pattern = re.compile(b"|".join(map(re.escape, longest_first)) or b"(?!)")
        self._longest = max(map(len, longest_first), default=1)
        self._held = b""

    def add(self, chunk: bytes) -> None:
        """Take the next bytes; the last few wait, since a secret may begin in them."""
        data = self._pattern.sub(MASK, self._held + chunk)
        keep = max(len(data) - self._longest + 1, 0)
        self._held = data[keep:]
        self._hand_on(data[:keep])

    def flush(self) -> None:
        """Hand on what waited; the stream is over."""
        data, self._held = self._held, b""
        self._hand_on(data)

    def _hand_on(self, data: bytes) -> None:
        if data:
            for sink in self._sinks:
                sink.add(data)


class Tail:
    """The last ``cap`` bytes of a stream, and how many there were in all; holds at most twice as many."""

    def __init__(self, cap: int) -> None:
        self._cap = cap
        self._kept = bytearray()
        self.total = 0

    def add(self, chunk: bytes) -> None:
        """Take the next bytes of the stream."""
        self.total += len(chunk)
        self._kept += chunk
        if len(self._kept) > 2 * self._cap:
            del self._kept[: len(self._kept) - self._cap]

    @property
    def cut(self) -> bool:
        """Whether the beginning is gone."""
        return self.total > self._cap

    def value(self) -> bytes:
        """Return the bytes that were kept, at most ``cap``."""
        return bytes(self._kept[max(0, len(self._kept) - self._cap) :])


class CappedLog:
    """A log file that holds the first and the last half of ``cap`` bytes, with a marker between them.

    A log that cannot be written never ends a measurement: ``problem`` says why, and the rest is dropped.
    """

    def __init__(self, path: Path | None, cap: int) -> None:
        self._room = cap // 2
        self._end = Tail(cap - self._room)
        self._descriptor: int | None = None
        self.problem: str | None = None
        if path is not None:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                # O_NOFOLLOW: a command that guessed the name must not choose the file.
                flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
                self._descriptor = os.open(path, flags, 0o666)
            except OSError as error:
                self._fail(error)

    def add(self, chunk: bytes) -> None:
        """Write what fits into the first half now; remember the rest for the second."""
        head, rest = chunk[: self._room], chunk[self._room :]
        self._room -= len(head)
        self._write(head)
        if rest:
            self._end.add(rest)

    def close(self, last_words: bytes = b"") -> None:
        """Write the marker, the second half and ``last_words``, and close the file."""
        end = self._end.value()
        left_out = self._end.total - len(end)
        if left_out:
            self._write(b"\n[... %d bytes left out here ...]\n" % left_out)
        self._write(end + last_words)
        if self._descriptor is not None:
            with suppress(OSError):
                os.close(self._descriptor)
            self._descriptor = None

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        try:
            while view and self._descriptor is not None:
                view = view[os.write(self._descriptor, view) :]
        except OSError as error:
            self._fail(error)

    def _fail(self, error: OSError) -> None:
        self.problem = f"the log could not be written: {error.strerror}"
        if self._descriptor is not None:
            with suppress(OSError):
                os.close(self._descriptor)
            self._descriptor = None
