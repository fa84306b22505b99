"""A scheduler in memory: it takes every submission, and says of every job that it runs (or has ended)."""

from __future__ import annotations

from collections.abc import Sequence

from outerloop_hpc.slurm.port import AccountingRow, Answer, Availability, Bound, JobRef, Observation, QueueRow, Work

#: Every job here is an array of so many elements.
ELEMENTS = 5


class MemoryCompute:
    """The compute port; job ids are given in turn."""

    name = "slurm"
    user = "alice"

    def __init__(self, *, ended: bool = False) -> None:
        self.ended = ended
        self._last = 1000

    def submit(self, work: Work) -> Bound:
        """Take it."""
        self._last += 1
        return Bound(str(self._last), "", array=len(work.arguments) > 1)

    def observe(self, jobs: Sequence[JobRef]) -> Observation:
        """Say that all run, or that all have ended; of what runs accounting is not asked, as by ``SlurmQuery``."""
        elements = [(ref, task) for ref in jobs for task in range(ELEMENTS)]
        queue = () if self.ended else tuple(queue_row(ref, task) for ref, task in elements)
        accounting = tuple(accounting_row(ref, task) for ref, task in elements) if self.ended else ()
        return Observation(Answer(Availability.ANSWERED, queue), Answer(Availability.ANSWERED, accounting), 2)

    def cancel(self, jobs: Sequence[JobRef]) -> None:
        """Nothing is to be cancelled here."""


def queue_row(ref: JobRef, task: int) -> QueueRow:
    """One running element."""
    submit = int(ref.submitted_at.timestamp())
    return QueueRow(ref.job_id or "", frozenset({task}), ref.name, ref.user, "RUNNING", submit=submit)


def accounting_row(ref: JobRef, task: int) -> AccountingRow:
    """One ended element."""
    at = int(ref.submitted_at.timestamp())
    return AccountingRow(
        job_id=ref.job_id or "",
        task=task,
        step="",
        name=ref.name,
        user=ref.user,
        cluster="",
        state="COMPLETED",
        cancelled_by=None,
        submit=at,
        start=at,
        end=at + 2,
        exit_code=(0, 0),
        columns={"JobID": f"{ref.job_id}_{task}", "State": "COMPLETED", "ElapsedRaw": "2"},
    )
