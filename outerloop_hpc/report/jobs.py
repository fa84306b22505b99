"""One report row for each attempt of a job or array element, from archived accounting rows (pure)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from outerloop_hpc.report.attempts import Attempt, Row, attempts, split_id
from outerloop_hpc.report.usage import Usage, count, epoch, has_started, is_running, usage


class Outcome(StrEnum):
    """What an attempt means for rates; what it cost is another matter."""

    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    RUNNING = "running"
    WAITING = "waiting"
    REQUEUED = "requeued"
    REJECTED = "rejected"


_ENDINGS = {"COMPLETED": Outcome.COMPLETED, "CANCELLED": Outcome.CANCELLED}


@dataclass(frozen=True, slots=True)
class JobReport:
    """One attempt in a report.

    Attributes:
        submission: name of the archived submission.
        compute: ``slurm`` or ``local``.
        source: the file that its numbers can be recomputed from.
        job_id: as sacct shows it (``123_4``); ``raw_id`` is the number that Slurm counts by.
        state: first word of the state; ``outcome`` says what it means for rates.
        submit, start, end: epoch seconds; ``None`` when it has not happened or is not known.
        usage: what it used.
    """

    submission: str
    compute: str
    source: str
    job_id: str
    raw_id: str
    name: str
    user: str
    account: str
    partition: str
    qos: str
    cluster: str
    state: str
    exit_code: str
    outcome: Outcome
    submit: int | None
    start: int | None
    end: int | None
    nodes: str
    restarts: int | None
    usage: Usage


def job_reports(
    rows: Iterable[Row], *, submission: str = "", compute: str = "slurm", source: str = ""
) -> tuple[JobReport, ...]:
    """Compute the report rows of one archived submission (``accounting/<submission>.json``, its ``rows``)."""
    return tuple(_report(one, submission, compute, source) for one in attempts(rows))


def _report(attempt: Attempt, submission: str, compute: str, source: str) -> JobReport:
    job = attempt.job
    job_id, _ = split_id(job.get("JobID", ""))
    raw_id, _ = split_id(job.get("JobIDRaw") or job_id)
    return JobReport(
        submission=submission,
        compute=compute,
        source=source,
        job_id=job_id,
        raw_id=raw_id,
        name=job.get("JobName", ""),
        user=job.get("User", ""),
        account=job.get("Account", ""),
        partition=job.get("Partition", ""),
        qos=job.get("QOS", ""),
        cluster=job.get("Cluster", ""),
        state=_state(job),
        exit_code=job.get("ExitCode", ""),
        outcome=outcome(attempt),
        submit=epoch(job.get("Submit", "")),
        start=epoch(job.get("Start", "")) if has_started(job) else None,
        end=epoch(job.get("End", "")),
        nodes=job.get("NodeList", "") if has_started(job) else "",
        restarts=count(job, "Restarts"),
        usage=usage(attempt),
    )


def outcome(attempt: Attempt) -> Outcome:
    """Say what an attempt means for rates.

    An attempt that a later one followed is neither a success nor a failure; sbatch's refusals leave FAILED rows that
    never held a node, and they are no failures of work either.
    """
    job, state = attempt.job, _state(attempt.job)
    if attempt.superseded:
        return Outcome.REQUEUED
    if epoch(job.get("End", "")) is None:
        return Outcome.RUNNING if is_running(job) else Outcome.WAITING
    if state == "FAILED" and not has_started(job):
        return Outcome.REJECTED
    return _ENDINGS.get(state, Outcome.FAILED)


def _state(job: Row) -> str:
    return job.get("State", "").partition(" ")[0]
