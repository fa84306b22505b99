"""The tool's clock on the scripted cluster's time."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path

from outerloop_hpc.clock import SystemClock

#: Pauses of a job's own that are shorter are waited out: something real is waited for.
_REAL_S = 1.0
_GLIMPSE_S = 0.05


class VirtualClock:
    """Reads the time from a file; who sleeps is later alone, and wakes at once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.slept = 0.0

    def seconds(self) -> float:
        """The time, in seconds since 1970."""
        return float(self.path.read_text(encoding="ascii")) + self.slept

    def sleep(self, seconds: float) -> None:
        """Let that much time have passed for this process."""
        self.slept += seconds


class RunningClock(VirtualClock):
    """For what jobs do: it begins at the cluster's time and goes on by itself; only long sleeps are skipped."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.ahead = float(path.read_text(encoding="ascii")) - time.time()

    def seconds(self) -> float:
        """The time, in seconds since 1970."""
        return time.time() + self.ahead + self.slept

    def sleep(self, seconds: float) -> None:
        """Wait for what is real, skip what is long."""
        real = seconds if seconds < _REAL_S else _GLIMPSE_S
        time.sleep(real)
        self.slept += seconds - real


def install(clock: VirtualClock) -> None:
    """Make it the system clock of this process."""
    members = vars(SystemClock)
    assert {"now", "steady", "sleep"} <= set(members), "the clock has other parts now"
    for name, member in {
        "now": lambda _: datetime.fromtimestamp(clock.seconds(), UTC),
        "steady": lambda _: clock.seconds(),
        "sleep": lambda _, seconds: clock.sleep(seconds),
    }.items():
        setattr(SystemClock, name, member)
