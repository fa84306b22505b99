"""Which rows are ours: identity is (cluster, job id, job name, user, Submit ≥ ours - slack). Pure.

Job ids are reused: in the first second after a submission, accounting of some versions answers with a job of last
year, ended, of somebody else. Believing that row would end a job that has just begun.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from outerloop_hpc.slurm.port import AccountingRow, JobRef, QueueRow

#: Seconds by which the controller's clock may be behind ours.
SLACK_S = 120

#: The name that accounting of 22.05 gives a job in its first seconds.
_NAMELESS = "allocation"


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Why a row is not the job: one line for people and ``explain``. False, so that ``if matches(…)`` reads well."""

    reason: str

    def __bool__(self) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class Attempt:
    """One accounting attempt of one element: its allocation row and the step rows that followed it."""

    allocation: AccountingRow
    steps: tuple[AccountingRow, ...] = ()


def matches(row: QueueRow | AccountingRow, ref: JobRef, slack_s: int = SLACK_S) -> bool | Mismatch:
    """Tell whether an allocation's row is the job that ``ref`` stands for.

    A requeue moves Submit forward, never back, so later rows match too. A row without Submit matches by name alone:
    a name is given to one submission only. Step rows carry neither user nor job name: see ``attempts``.

    Returns:
        True, or a false value with the reason.
    """
    reason = _difference(row, ref, slack_s)
    return True if reason is None else Mismatch(reason)


def _difference(row: QueueRow | AccountingRow, ref: JobRef, slack_s: int) -> str | None:
    if ref.job_id is not None and row.job_id != ref.job_id:
        return f"job {row.job_id} is not job {ref.job_id}"
    if row.user and row.user != ref.user:
        return f"job {row.job_id} belongs to {row.user}, not to {ref.user}"
    nameless = False
    if isinstance(row, AccountingRow):
        if row.step:
            return f"step {row.step} of job {row.job_id} is judged by its job"
        if ref.cluster and row.cluster and row.cluster != ref.cluster:
            return f"job {row.job_id} is on cluster {row.cluster}, not on {ref.cluster}"
        # Without an id and a time of ours a nameless row could be anybody's.
        nameless = row.name == _NAMELESS and ref.job_id is not None and row.submit is not None
    if row.name != ref.name and not nameless:
        return f"job {row.job_id} is named {row.name!r}, not {ref.name!r}: the id was reused"
    early_s = 0 if row.submit is None else int(ref.submitted_at.timestamp()) - row.submit
    return f"job {row.job_id} was submitted {early_s} s before ours: the id was reused" if early_s > slack_s else None


def attempts(rows: Sequence[AccountingRow], ref: JobRef, slack_s: int = SLACK_S) -> tuple[Attempt, ...]:
    """Return every attempt of this job, requeued ones too, each with its steps, in the order of the answer.

    sacct prints an allocation's steps after it; steps of a row that is not ours are left out with it.
    """
    found: list[tuple[AccountingRow, list[AccountingRow]]] = []
    owner: tuple[AccountingRow, list[AccountingRow]] | None = None
    for row in rows:
        if not row.step:
            owner = (row, []) if matches(row, ref, slack_s) else None
            if owner:
                found.append(owner)
        elif owner and (row.job_id, row.task) == (owner[0].job_id, owner[0].task):
            owner[1].append(row)
    return tuple(Attempt(allocation, tuple(steps)) for allocation, steps in found)


def newest(rows: Iterable[AccountingRow]) -> dict[int | None, AccountingRow]:
    """Return the newest allocation row by Submit for each element (None: the plain job); steps are skipped.

    Give it rows that match already. Of two rows with the same Submit the later one in the answer wins; a row without
    Submit loses to one that has it.
    """
    latest: dict[int | None, AccountingRow] = {}
    for row in rows:
        if row.step:
            continue
        known = latest.get(row.task)
        if known is None or (row.submit or 0) >= (known.submit or 0):
            latest[row.task] = row
    return latest
