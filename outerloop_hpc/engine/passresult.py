"""What one pass saw and did, for whoever tells it."""

from __future__ import annotations

from dataclasses import dataclass, field

from outerloop_hpc.engine.housekeeping import Tidied
from outerloop_hpc.engine.plan import Line


@dataclass(slots=True)
class PassResult:
    """What one pass saw and did.

    Attributes:
        lines: (run id or lane, ruling or decision).
        faults: (run id, text) of runs that could not be handled.
        problems: sources that did not answer, submissions that were refused.
        held: why nothing was launched; empty when launches were allowed.
        parked: live runs that wait for a person.
        refused: submissions that the scheduler refused; they are tried again after a pause.
        notes: what is as it should be, and good to know.
        spared_s: over 0 when a scheduler was not asked, because it was just before: seconds until it may be again.
        tidied: what was cleared away.
    """

    lines: list[tuple[str, Line]] = field(default_factory=list)
    faults: list[tuple[str, str]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    held: str = ""
    live: int = 0
    submitted: int = 0
    closed: int = 0
    parked: int = 0
    refused: int = 0
    calls: int = 0
    unavailable: bool = False
    notes: list[str] = field(default_factory=list)
    spared_s: float = 0.0
    tidied: Tidied = field(default_factory=Tidied)
