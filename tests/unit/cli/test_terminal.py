"""What a stream is taken for, and who sees progress."""

from __future__ import annotations

import io
import threading
from collections.abc import Mapping
from datetime import UTC, datetime

import pytest

from outerloop_hpc.cli.terminal import Progress, Terminal, seconds_shown, terminal

pytestmark = pytest.mark.unit


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


class Steady:
    def __init__(self) -> None:
        self.at = 100.0

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)

    def steady(self) -> float:
        return self.at

    def sleep(self, seconds: float) -> None:
        self.at += seconds


@pytest.mark.parametrize(
    ("screen", "environ", "expected"),
    [
        (True, {"TERM": "xterm", "COLUMNS": "132"}, Terminal(tty=True, colour=True, columns=132, moves=True)),
        (True, {"TERM": "xterm", "NO_COLOR": "1"}, Terminal(tty=True, moves=True)),
        (True, {"TERM": "xterm", "NO_COLOR": ""}, Terminal(tty=True, colour=True, moves=True)),
        (True, {"TERM": "dumb"}, Terminal(tty=True)),
        (True, {}, Terminal(tty=True)),
        (False, {"TERM": "xterm"}, Terminal()),
        (False, {"FORCE_COLOR": "1"}, Terminal(colour=True)),
        (False, {"FORCE_COLOR": "0"}, Terminal()),
        (False, {"FORCE_COLOR": "1", "NO_COLOR": "1"}, Terminal()),
        (False, {"COLUMNS": "0"}, Terminal()),
        (False, {"COLUMNS": "wide"}, Terminal()),
    ],
)
def test_a_stream_is_seen_for_what_it_is(screen: bool, environ: Mapping[str, str], expected: Terminal) -> None:
    assert terminal(Screen() if screen else io.StringIO(), environ) == expected


def test_a_closed_stream_is_no_terminal() -> None:
    stream = io.StringIO()
    stream.close()
    assert terminal(stream, {}) == Terminal()


def test_progress_is_silent_off_a_terminal() -> None:
    stream = io.StringIO()
    with Progress(stream, Terminal(), "runs", 3, clock=Steady()) as progress:
        progress.advance()
    assert stream.getvalue() == ""


def test_progress_draws_seldom_and_cleans_up() -> None:
    stream, clock = Screen(), Steady()
    with Progress(stream, Terminal(tty=True, columns=12, moves=True), "ru\x1bns", 10, clock=clock) as progress:
        progress.advance()
        clock.sleep(1)
        progress.advance(8)
    assert stream.getvalue() == "\r\x1b[Kru\\x1bns 0/\r\x1b[Kru\\x1bns 9/\r\x1b[K"


def test_progress_is_cleared_when_its_work_fails() -> None:
    stream = Screen()
    with (
        pytest.raises(KeyError),
        Progress(stream, Terminal(tty=True, moves=True), "runs", clock=Steady()),
    ):
        raise KeyError("x")
    assert stream.getvalue() == "\r\x1b[Kruns 0\r\x1b[K"


def test_a_silent_wait_counts_its_seconds_and_leaves_nothing_behind() -> None:
    stream, seen = io.StringIO(), threading.Event()

    class Counted(Progress):
        def advance(self, count: int = 1) -> None:
            super().advance(count)
            if self._done > 1:
                seen.set()

    counted = Counted(stream, Terminal(tty=True, moves=True), "building, seconds", clock=Steady())
    with seconds_shown(counted, every_s=0.001):
        assert seen.wait(30)
    assert "building, seconds" in stream.getvalue()
    assert stream.getvalue().endswith("\r\x1b[K")
    before = threading.active_count()
    with pytest.raises(OSError, match="no builder"), seconds_shown(counted, every_s=0.001):
        raise OSError("no builder")
    assert threading.active_count() == before
