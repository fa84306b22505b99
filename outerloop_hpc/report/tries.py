"""Tries that no accounting row tells of: shown with what the journal knows, and "not measured" for the rest (pure)."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import datetime

from outerloop_hpc.engine.state import RunState, Submission, Try
from outerloop_hpc.report.jobs import JobReport, Outcome
from outerloop_hpc.report.usage import not_measured

_OUTCOMES = {
    "lost": Outcome.FAILED,
    "timed_out": Outcome.FAILED,
    "out_of_memory": Outcome.FAILED,
    "superseded": Outcome.FAILED,
    "cancelled": Outcome.CANCELLED,
    "withdrawn": Outcome.CANCELLED,
    "refused": Outcome.REJECTED,
    "abandoned": Outcome.REJECTED,
}
NO_ROWS = "no accounting rows: not measured"
UNDER_WAY = "under way: its accounting rows are archived when it has ended"


def untold(state: RunState, told: Collection[tuple[str, str]], source: str) -> Iterator[JobReport]:
    """Report every try that is not among ``told``.

    Args:
        state: the run's fold.
        told: (submission, job id) of the attempts that archived rows tell of.
        source: where the journal is, which these rows can be read again from.
    """
    for step in state.steps.values():
        for one in step.tries:
            submission = state.submissions[one.submission]
            job_id = submission.job_of(one.index)
            if (submission.name, job_id) not in told:
                yield _report(one, submission, job_id, source)


def _report(one: Try, submission: Submission, job_id: str, source: str) -> JobReport:
    note = UNDER_WAY if one.outcome is None else NO_ROWS
    return JobReport(
        submission=submission.name,
        compute=submission.compute,
        source=source,
        job_id=job_id,
        raw_id=submission.job_id,
        name=submission.name,
        user=submission.user,
        account="",
        partition="",
        qos="",
        cluster=submission.cluster,
        state=one.word,
        exit_code="",
        outcome=_outcome(one, submission),
        submit=_epoch(submission.intended_at),
        start=None,
        end=_epoch(one.ended_at),
        nodes=one.node,
        restarts=None,
        usage=not_measured(note),
    )


def _outcome(one: Try, submission: Submission) -> Outcome:
    if one.outcome is None:
        return Outcome.RUNNING if submission.status == "bound" else Outcome.WAITING
    if one.outcome == "done":
        return Outcome.COMPLETED if one.record_outcome == "completed" else Outcome.FAILED
    return _OUTCOMES[one.outcome]


def _epoch(at: datetime | None) -> int | None:
    return None if at is None else int(at.timestamp())
