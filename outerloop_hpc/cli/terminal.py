"""What the stream at hand is: a terminal or not, how wide, with colour or not; and progress for people only."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self, TextIO

from outerloop_hpc.cli.cells import harmless, width
from outerloop_hpc.clock import Clock, SystemClock

_DEFAULT_COLUMNS: Final = 80
_REDRAW_S: Final = 0.1


@dataclass(frozen=True, slots=True)
class Terminal:
    """What can be done with a stream.

    Attributes:
        tty: whether a person looks at it.
        colour: whether escape sequences are welcome (NO_COLOR, FORCE_COLOR, TERM=dumb).
        columns: its width (COLUMNS first).
        moves: whether a line can be drawn over.
    """

    tty: bool = False
    colour: bool = False
    columns: int = _DEFAULT_COLUMNS
    moves: bool = False

    def bold(self, text: str) -> str:
        """Set text in bold, where that is welcome."""
        return f"\x1b[1m{text}\x1b[0m" if self.colour else text


def terminal(stream: TextIO, environ: Mapping[str, str]) -> Terminal:
    """Look at a stream and its environment."""
    tty = _is_tty(stream)
    dumb = environ.get("TERM", "") in {"dumb", ""}
    colour = (tty and not dumb) or environ.get("FORCE_COLOR", "") not in {"", "0"}
    if environ.get("NO_COLOR"):
        colour = False
    return Terminal(tty, colour, _columns(stream, environ), moves=tty and not dumb)


def _is_tty(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except ValueError:  # closed
        return False


def _columns(stream: TextIO, environ: Mapping[str, str]) -> int:
    said = environ.get("COLUMNS", "")
    if said.isascii() and said.isdecimal() and int(said) > 0:
        return int(said)
    try:
        return os.get_terminal_size(stream.fileno()).columns or _DEFAULT_COLUMNS
    except (OSError, ValueError):
        return _DEFAULT_COLUMNS


class Progress:
    """One line on stderr that is drawn over, on a terminal only; silent everywhere else, and gone at the end."""

    def __init__(
        self, stream: TextIO, seen: Terminal, label: str, total: int | None = None, *, clock: Clock | None = None
    ) -> None:
        self._stream, self._terminal = stream, seen
        self._label, self._total = harmless(label), total
        self._clock = clock or SystemClock()
        self._done, self._drawn_at, self._drawn = 0, float("-inf"), False

    def __enter__(self) -> Self:
        self._draw()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._drawn:
            self._stream.write("\r\x1b[K")
            self._stream.flush()

    def advance(self, count: int = 1) -> None:
        """Say that so many more are done."""
        self._done += count
        self._draw()

    def _draw(self) -> None:
        now = self._clock.steady()
        if not self._terminal.moves or now - self._drawn_at < _REDRAW_S:
            return
        self._drawn_at, self._drawn = now, True
        of_total = "" if self._total is None else f"/{self._total}"
        text = f"{self._label} {self._done}{of_total}"
        while width(text) > self._terminal.columns - 1:
            text = text[:-1]
        self._stream.write(f"\r\x1b[K{text}")
        self._stream.flush()


@contextmanager
def seconds_shown(progress: Progress, every_s: float = 1.0) -> Iterator[None]:
    """Count the seconds of something that says nothing until it ends, such as an image being built."""
    over = threading.Event()

    def count() -> None:
        while not over.wait(every_s):
            progress.advance()

    with progress:
        counter = threading.Thread(target=count, daemon=True)
        counter.start()
        try:
            yield
        finally:
            over.set()
            counter.join()
