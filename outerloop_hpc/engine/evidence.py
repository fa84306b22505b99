"""Evidence about a try: what its files, the queue and accounting say; each may be unavailable. Pure."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from outerloop_hpc.engine import records
from outerloop_hpc.engine.spec import stamp
from outerloop_hpc.engine.state import Submission
from outerloop_hpc.slurm.identity import attempts, matches, newest
from outerloop_hpc.slurm.port import AccountingRow, Answer, Availability, JobRef, Observation, QueueRow, Row
from outerloop_hpc.slurm.states import Life, classify

_RUNNING = "RUNNING"


@dataclass(frozen=True, slots=True)
class Files:
    """What the job itself left for one try. ``begun``: it noted that it began what cannot be given back."""

    record: records.Record | None = None
    claim: records.Claim | None = None
    interrupted: records.Interrupted | None = None
    fault: str = ""
    begun: bool = False

    def summary(self) -> dict[str, Any]:
        """Return what there is, with the times that the job wrote, by its own host's clock."""
        found: dict[str, Any] = {}
        if (record := self.record) is not None:
            times = {"started_at": stamp(record.started_at), "ended_at": stamp(record.ended_at)}
            found["record"] = {"outcome": record.outcome, "nonce": record.nonce, **times}
        if (claim := self.claim) is not None:
            found["claim"] = {"host": claim.holder.host, "job_id": claim.holder.job_id, "at": stamp(claim.at)}
            if claim.abandoned:
                found["claim"]["taken_by_reconciler"] = True
        if self.interrupted is not None:
            found["interrupted"] = self.interrupted.signal
            found["interrupted_at"] = stamp(self.interrupted.at)
        if self.begun:
            found["begun"] = True
        if self.fault:
            found["unreadable"] = self.fault
        return found


@dataclass(frozen=True, slots=True)
class Look:
    """What the scheduler says of one try.

    ``steps`` holds the state words of its job steps: memory may run out in a step of a job that "completed".
    """

    queue: Availability
    accounting: Availability
    queue_row: QueueRow | None = None
    accounting_row: AccountingRow | None = None
    steps: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that a ruling about one try may rest on."""

    files: Files
    look: Look

    def summary(self) -> dict[str, Any]:
        """Return the evidence as it goes into the journal: small, and enough to explain the ruling later."""
        found: dict[str, Any] = {"queue": _said(self.look.queue, self.look.queue_row)}
        found["accounting"] = _said(self.look.accounting, self.look.accounting_row)
        queued = self.look.queue_row
        if queued is not None:
            found["queue_row"] = {"reason": queued.reason, "submit": queued.submit, "nodes": queued.nodes}
        row = self.look.accounting_row
        if row is not None:
            found["accounting_times"] = {"submit": row.submit, "start": row.start, "end": row.end}
            found["exit_code"] = list(row.exit_code) if row.exit_code else None
            found["cancelled_by"] = row.cancelled_by
            if self.look.steps:
                found["accounting_steps"] = list(self.look.steps)
        found.update(self.files.summary())
        if self.look.foreign:
            found["not_ours"] = list(self.look.foreign)
        return found


def _said(availability: Availability, row: QueueRow | AccountingRow | None) -> str:
    if availability is not Availability.ANSWERED:
        return str(availability)
    return "no row" if row is None else row.state


def ref_of(submission: Submission) -> JobRef:
    """Name a submission for the compute port."""
    return JobRef(
        name=submission.name,
        user=submission.user,
        job_id=submission.job_id or None,
        cluster=submission.cluster,
        submitted_at=submission.intended_at,
        elements=len(submission.elements),
    )


@dataclass(slots=True)
class Index:
    """One observation, arranged by (job id, array element) so that each try's rows are found without searching."""

    observation: Observation
    queue: dict[tuple[str, int | None], list[QueueRow]] = field(default_factory=lambda: defaultdict(list))
    accounting: dict[tuple[str, int | None], list[AccountingRow]] = field(default_factory=lambda: defaultdict(list))
    names: dict[str, list[QueueRow | AccountingRow]] = field(default_factory=lambda: defaultdict(list))

    @classmethod
    def of(cls, observation: Observation) -> Index:
        """Arrange an observation."""
        index = cls(observation)
        for row in observation.queue.rows:
            index.names[row.name].append(row)
            for task in row.tasks if row.tasks is not None else (None,):
                index.queue[row.job_id, task].append(row)
        for entry in observation.accounting.rows:
            index.accounting[entry.job_id, entry.task].append(entry)
            if not entry.step:
                index.names[entry.name].append(entry)
        return index

    def look(self, submission: Submission, number: int) -> Look:
        """What the scheduler says of element ``number`` of a bound submission; rows that are not ours are named."""
        ref, foreign = ref_of(submission), []
        key = (submission.job_id, number if len(submission.elements) > 1 else None)
        queue_row: QueueRow | None = None
        for row in self.queue.get(key, ()):
            if found := matches(row, ref):
                queue_row = row
            else:
                foreign.append(f"queue: {getattr(found, 'reason', '')}")
        rows = self.accounting.get(key, ())
        verdicts = [matches(entry, ref) for entry in rows if not entry.step]
        foreign.extend(f"accounting: {getattr(found, 'reason', '')}" for found in verdicts if not found)
        tried = attempts(rows, ref)
        latest = newest(attempt.allocation for attempt in tried).get(key[1])
        return Look(
            queue=self.observation.queue.availability,
            accounting=self.observation.accounting.availability,
            queue_row=queue_row,
            accounting_row=latest,
            steps=tuple(row.state for attempt in tried if attempt.allocation is latest for row in attempt.steps),
            foreign=tuple(dict.fromkeys(foreign)),
        )

    def running(self, submission: Submission) -> dict[int, Look]:
        """Elements of a bound submission that the queue says are running: nothing else need be asked about them.

        Only plain cases: a row that is not ours, a second row or any other word gets a whole ``look``.
        """
        ref, array = ref_of(submission), len(submission.elements) > 1
        queue, accounting = self.observation.queue.availability, self.observation.accounting.availability
        found: dict[int, Look] = {}
        if queue is Availability.ANSWERED:
            for number in range(len(submission.elements)):
                rows = self.queue.get((submission.job_id, number if array else None), ())
                if len(rows) == 1 and rows[0].state == _RUNNING and matches(rows[0], ref):
                    found[number] = Look(queue, accounting, rows[0])
        return found

    def listed(self, submission: Submission) -> list[QueueRow]:
        """The queue's rows of a bound submission: a row of another job that has its id by now is none of them."""
        ref = ref_of(submission)
        tasks = range(len(submission.elements)) if len(submission.elements) > 1 else (None,)
        rows = (row for task in tasks for row in self.queue.get((submission.job_id, task), ()))
        return [row for row in rows if matches(row, ref)]

    def lives(self, submission: Submission) -> bool:
        """Whether the queue says that an element waits or runs, for instance because it was requeued after its end."""
        # A job that is completing has ended, as far as its accounting goes; an epilog may keep it so for hours.
        words = {row.state for row in self.listed(submission)} - {"COMPLETING"}
        return any(classify(word).life is Life.ALIVE for word in words)

    def rows_of(self, submission: Submission) -> list[AccountingRow]:
        """Every accounting row, steps and earlier attempts included, that is this submission's."""
        ref = ref_of(submission)
        tasks = range(len(submission.elements)) if len(submission.elements) > 1 else (None,)
        found: list[AccountingRow] = []
        for task in tasks:
            for attempt in attempts(self.accounting.get((submission.job_id, task), ()), ref):
                found.extend((attempt.allocation, *attempt.steps))
        return found

    def job_named(self, submission: Submission) -> str | None:
        """The job id that the scheduler knows under an unbound submission's name, if any."""
        ref = ref_of(submission)
        return next((row.job_id for row in self.names.get(submission.name, ()) if matches(row, ref)), None)


def answered(answer: Answer[Row]) -> bool:
    """Whether absence in this answer means anything: it came, or it says that it never will."""
    return answer.availability is not Availability.UNAVAILABLE
