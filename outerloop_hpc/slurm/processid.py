"""Which process is meant. Pure, and apart from the event files: every job says which process it is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ProcessId:
    """A process that cannot be mistaken for a later one with the same number."""

    pid: int
    ticks: int
    boot: str
    host: str
