"""What one ruling or decision rests on, as data for the journal, ``explain`` and dry runs. Pure.

Made when somebody asks: a pass over thousands of tries says it of none.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from outerloop_hpc.engine.evidence import Evidence
from outerloop_hpc.engine.spec import stamp
from outerloop_hpc.engine.state import Submission, Try


@dataclass(frozen=True, slots=True)
class TryBasis:
    """All that a ruling on one try rests on.

    ``silent`` is when accounting was last seen silent; ``looked`` is false where a pass did not look at all.
    """

    evidence: Evidence
    current: Try
    submission: Submission
    now: datetime
    silent: datetime | None = None
    looked: bool = True

    def told(self) -> dict[str, Any]:
        """Return the rows with their times; ages in seconds, by this pass's clock."""
        found: dict[str, Any] = self.evidence.summary() if self.looked else {"looked": False}
        found["seen_at"] = stamp(self.now)
        found["job"] = {"id": self.submission.job_of(self.current.index), "name": self.submission.name}
        found["intended_at"] = stamp(self.submission.intended_at)
        since = self.current.absent_since
        if since is not None:
            lacked = {"since": stamp(since), "for_s": int((self.now - since).total_seconds())}
            found["queue_lacked"] = {**lacked, "clock_of": self.current.absent_host}
            if self.current.absent_word:
                found["queue_lacked"]["last_word"] = self.current.absent_word
        if self.silent is not None:
            found["accounting_silent_at"] = stamp(self.silent)
        return found


@dataclass(frozen=True, slots=True)
class LookupBasis:
    """What is known of a submission whose answer was lost."""

    submission: Submission
    now: datetime
    found: str | None
    answered: bool

    def told(self) -> dict[str, Any]:
        """Return what was looked for, since when, and what was found."""
        age = int((self.now - self.submission.intended_at).total_seconds())
        return {
            "seen_at": stamp(self.now),
            "job": {"id": self.found or "-", "name": self.submission.name},
            "sources": "answered" if self.answered else "unavailable",
            "intended_at": stamp(self.submission.intended_at),
            "intended_for_s": age,
        }


Basis = TryBasis | LookupBasis

#: What would have to be seen for another decision than one that has been made: mostly nothing can be.
LASTING: dict[str, str] = {
    "record.final": "nothing: the first record of a try stays",
    "claim.abandoned": "nothing: a job of this try leaves as soon as it sees that claim",
    "accounting.ended": "nothing seen later; a person may resume the run, which tries the step again",
    "no-accounting.ended": "nothing seen later; a person may resume the run, which tries the step again",
    "person.gave-up": "nothing: a person decided",
    "person.forced": "nothing: a person decided",
    "run.over": "nothing: the run has ended",
    "submit.refused": "nothing for this submission; it is made anew after a pause",
    "submit.abandoned": "nothing: a job of this submission leaves as soon as it sees that its claim is taken",
    "submission.adopted": "nothing: a name is given to one submission only",
    "person.end": "nothing: an ending is final",
    "kind.end": "nothing: an ending is final",
}


def lasting(rule: str) -> str:
    """Say what would have to be seen for another decision than one that the journal has; empty without a rule."""
    return LASTING.get(rule, "nothing: the journal has it" if rule else "")
