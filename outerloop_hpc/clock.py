"""The clock port: aware UTC wall time for documents, boot-time seconds for ages within one process."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Where time comes from; passed in, so that tests own it."""

    def now(self) -> datetime:
        """Return the wall time, aware, in UTC."""
        ...

    def steady(self) -> float:
        """Return seconds that never go back and go on while the host sleeps."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait that many seconds."""
        ...


class SystemClock:
    """The real clock of this host."""

    def now(self) -> datetime:
        """Return the wall time, aware, in UTC."""
        return datetime.now(UTC)

    def steady(self) -> float:
        """Return seconds since boot, suspended time included (a tick may be resumed an hour later)."""
        return time.clock_gettime(time.CLOCK_BOOTTIME)

    def sleep(self, seconds: float) -> None:
        """Wait that many seconds."""
        time.sleep(seconds)
