"""The decision table: from the evidence about one try to a ruling. Pure, and each line has a name.

Three outcomes only: alive, ended, or wait. Unknown never ends, releases or submits anything; what would have to be
seen for another ruling is part of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Literal

from outerloop_hpc.engine.events import TryOutcome
from outerloop_hpc.engine.evidence import Evidence
from outerloop_hpc.engine.state import Submission, Try
from outerloop_hpc.slurm.port import AccountingRow, Availability
from outerloop_hpc.slurm.states import Life, classify

Verdict = Literal["ended", "alive", "wait", "ask"]


@dataclass(frozen=True, slots=True)
class Policy:
    """The windows, in seconds, and caps. Measured from sightings by reconcilers, never between two hosts' clocks.

    Attributes:
        confirm_s: continuous absence from the queue before a firm ending counts; also covers late record files.
        soft_window_s: the same for endings that a requeue may take back (NODE_FAIL, PREEMPTED, …).
        grace_s: how long nothing at all, anywhere, is normal.
        submit_lag_s: how long an unacknowledged submission may still surface.
        skew_s: added when another host made the first sighting.
        backoff_s: first pause after a lost or refused try; doubles, up to an hour.
        archive_wait_s: how long to wait for complete accounting rows.
    """

    confirm_s: float = 60.0
    soft_window_s: float = 150.0
    grace_s: float = 3600.0
    submit_lag_s: float = 600.0
    skew_s: float = 300.0
    backoff_s: float = 60.0
    archive_wait_s: float = 600.0
    refusals: int = 8


@dataclass(frozen=True, slots=True)
class Ruling:
    """What the table says of one try.

    Attributes:
        rule: the line's name.
        verdict: ``ended``, ``alive``, ``wait`` (unknown) or ``ask`` (a person has to look).
        outcome: set when ended.
        absent: whether the queue was seen to lack the job; ``None`` when that could not be seen.
        needs: what would have to be seen for another ruling.
    """

    rule: str
    verdict: Verdict
    reason: str
    outcome: TryOutcome | None = None
    absent: bool | None = None
    word: str = ""
    needs: str = ""


_RECORD_OUTCOMES: dict[str, TryOutcome] = {
    "completed": "done",
    "failed": "done",
    "refused": "done",
    "timed_out": "timed_out",
    "infrastructure": "lost",
    "out_of_memory": "out_of_memory",
}
_WORD_OUTCOMES: dict[str, TryOutcome] = {
    "TIMEOUT": "timed_out",
    "DEADLINE": "timed_out",
    "OUT_OF_MEMORY": "out_of_memory",
    "CANCELLED": "cancelled",
}


def rule(
    evidence: Evidence,
    current: Try,
    submission: Submission,
    *,
    now: datetime,
    host: str,
    policy: Policy,
    silent: datetime | None = None,
) -> Ruling:
    """Rule on one try of a bound submission; ``silent`` is when accounting was last seen silent, by any pass."""
    return (
        _by_files(evidence)
        or _by_queue(evidence)
        or _by_accounting(evidence, submission, _Absence(current, now, host, policy, silent))
    )


@dataclass(frozen=True, slots=True)
class _Absence:
    """How long the queue has lacked the job while accounting answered, by one clock.

    What accounting says in the first seconds after a silence is not whole, so the silence does not count.
    """

    current: Try
    now: datetime
    host: str
    policy: Policy
    silent: datetime | None = None

    def lasted(self, window_s: float) -> bool:
        since = self.current.absent_since
        if since is not None and self.silent is not None:
            since = max(since, self.silent)
        if window_s <= 0:
            return True
        if since is None:
            return False
        needed = window_s + (0 if self.current.absent_host == self.host else self.policy.skew_s)
        return self.now - since >= timedelta(seconds=needed)

    def age(self, submission: Submission) -> float:
        return (self.now - submission.intended_at).total_seconds()


def _by_files(evidence: Evidence) -> Ruling | None:
    files = evidence.files
    if files.fault:
        return Ruling(
            "record.unreadable",
            "wait",
            files.fault,
            needs="a readable file; repair it, or end the run with `outerloop-hpc runs end RUN`",
        )
    if files.record is not None:
        outcome = _RECORD_OUTCOMES[files.record.outcome]
        told = f": {files.record.reason}" if files.record.reason else ""
        return Ruling("record.final", "ended", f"the job's record says {files.record.outcome}{told}", outcome=outcome)
    if files.claim is not None and files.claim.abandoned:
        return Ruling(
            "claim.abandoned", "ended", "a reconciler took its claim before the job started", outcome="abandoned"
        )
    return None


def _by_queue(evidence: Evidence) -> Ruling | None:
    look = evidence.look
    if look.queue is not Availability.ANSWERED:
        return Ruling("queue.unavailable", "wait", "the queue did not answer", needs="an answer of squeue")
    if look.queue_row is None:
        return None
    word = look.queue_row.state
    life = classify(word).life
    if life is Life.ALIVE:
        return _alive(word, look.queue_row.reason)
    if life is Life.UNKNOWN:
        return Ruling(
            "queue.unknown-word",
            "wait",
            f"the queue says {word!r}, which this version does not know",
            needs="a state word that is known, or the job's record",
        )
    return None


@lru_cache(maxsize=256)
def _alive(word: str, reason: str) -> Ruling:
    """Thousands of elements get the same ruling; it is one frozen value."""
    why = f" ({reason})" if reason not in {"", "None"} else ""
    needs = "the job gone from the queue, or its record"
    return Ruling("queue.alive", "alive", f"the queue says {word}{why}", absent=False, word=word, needs=needs)


def _by_accounting(evidence: Evidence, submission: Submission, absence: _Absence) -> Ruling:
    look = evidence.look
    if look.accounting is Availability.UNAVAILABLE:
        return Ruling(
            "accounting.unavailable",
            "wait",
            "not in the queue, and accounting did not answer",
            absent=True,
            needs="an answer of sacct",
        )
    if look.accounting is Availability.DISABLED:
        return _without_accounting(evidence, submission, absence)
    if look.accounting_row is None:
        return _nowhere(submission, absence)
    return _by_row(evidence, look.accounting_row, submission, absence)


def _by_row(evidence: Evidence, row: AccountingRow, submission: Submission, absence: _Absence) -> Ruling:
    meaning = classify(row.state)
    if meaning.life is Life.UNKNOWN:
        return Ruling(
            "accounting.unknown-word",
            "wait",
            f"accounting says {row.state!r}, which this version does not know",
            absent=True,
            needs="a state word that is known, or the job's record",
        )
    if meaning.life is Life.ALIVE and not meaning.soft:
        return _stale(row, submission, absence)
    if row.end is None and not meaning.soft:
        return Ruling(
            "accounting.no-end",
            "wait",
            f"accounting says {row.state} without a time of ending",
            absent=True,
            word=row.state,
            needs="a row with an End time",
        )
    window = absence.policy.soft_window_s if meaning.soft else absence.policy.confirm_s
    if not absence.lasted(window):
        return Ruling(
            "accounting.settling",
            "wait",
            f"accounting says {row.state}; the queue must lack the job for {window:g} s",
            absent=True,
            word=row.state,
            needs=f"the job's record, or {window:g} s without it in the queue",
        )
    return _ended(row, evidence, submission)


def _ended(row: AccountingRow, evidence: Evidence, submission: Submission) -> Ruling:
    word = "OUT_OF_MEMORY" if "OUT_OF_MEMORY" in evidence.look.steps else row.state
    outcome = _WORD_OUTCOMES.get(word, "lost")
    by = f" by uid {row.cancelled_by}" if word == "CANCELLED" and row.cancelled_by is not None else ""
    if outcome == "cancelled" and submission.cancel_asked:
        outcome = "withdrawn"
    left = "" if evidence.files.claim is None else " after it had started"
    if evidence.files.interrupted is not None:
        left = f" after {evidence.files.interrupted.signal}"
    return Ruling(
        "accounting.ended",
        "ended",
        f"accounting says {word}{by}{left}, and there is no record",
        outcome=outcome,
        absent=True,
        word=word,
    )


def _stale(row: AccountingRow, submission: Submission, absence: _Absence) -> Ruling:
    limit = absence.policy.grace_s + 60.0 * submission.resources.minutes
    if absence.lasted(limit):
        return Ruling(
            "accounting.runaway",
            "ask",
            f"accounting has said {row.state} for more than {limit:g} s while the queue lacks the job",
            absent=True,
            word=row.state,
            needs="an accounting row that ended (`sacctmgr show runawayjobs` helps an admin), or a person's decision",
        )
    return Ruling(
        "accounting.stale",
        "wait",
        f"accounting says {row.state}, but the queue lacks the job",
        absent=True,
        word=row.state,
        needs="the job in the queue again, an accounting row that ended, or its record",
    )


def _nowhere(submission: Submission, absence: _Absence) -> Ruling:
    grace = absence.policy.grace_s
    if absence.age(submission) >= grace and absence.lasted(grace):
        return Ruling(
            "nothing.anywhere",
            "ask",
            f"neither the queue nor accounting has known the job for {grace:g} s, and it left no record",
            absent=True,
            needs="any row or record of it, or a person's decision",
        )
    return Ruling(
        "nothing.yet",
        "wait",
        "neither the queue nor accounting knows the job; fresh, held or moved jobs look like that",
        absent=True,
        needs=f"a row, a record, or {grace:g} s of this",
    )


def _without_accounting(evidence: Evidence, submission: Submission, absence: _Absence) -> Ruling:
    row = evidence.look.queue_row
    # The queue forgets an ended job within minutes; what it said when the job was first seen ended still holds.
    word = row.state if row is not None else absence.current.absent_word
    window = absence.policy.confirm_s if row is not None else absence.policy.soft_window_s
    if not absence.lasted(window):
        return Ruling(
            "no-accounting.settling",
            "wait",
            f"not alive in the queue, accounting is switched off here; waiting {window:g} s",
            absent=True,
            word=word,
            needs=f"the job's record, or {window:g} s without it in the queue",
        )
    outcome = _WORD_OUTCOMES.get(word, "lost")
    if outcome == "cancelled" and submission.cancel_asked:
        outcome = "withdrawn"
    said = f"its last word was {word}" if word else "it left no word"
    return Ruling(
        "no-accounting.ended",
        "ended",
        f"gone from the queue, accounting is switched off here, {said}, and there is no record",
        outcome=outcome,
        absent=True,
        word=word,
    )
