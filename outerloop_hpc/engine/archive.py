"""The accounting archive: final rows of a submission, kept when first seen complete, so that a purge loses nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from outerloop_hpc import fsio
from outerloop_hpc.documents import Document, load
from outerloop_hpc.engine.layout import RunFolder
from outerloop_hpc.engine.spend import Used, used
from outerloop_hpc.engine.state import Submission
from outerloop_hpc.slurm.identity import newest
from outerloop_hpc.slurm.port import AccountingRow
from outerloop_hpc.slurm.states import Life, classify


class Accounting(Document):
    """``accounting/<submission>.json``: the columns as sacct printed them, steps included."""

    name: ClassVar[str] = "accounting"

    submission: str
    compute: str
    job_id: str
    note: str = ""
    rows: tuple[dict[str, str], ...] = ()


def complete(submission: Submission, rows: Sequence[AccountingRow]) -> bool:
    """Whether every element's newest allocation row has ended, with a time: of a requeued job the last one counts."""
    latest = newest(rows)
    ended = {task for task, row in latest.items() if row.end is not None and classify(row.state).life is Life.ENDED}
    array = len(submission.elements) > 1
    wanted = set(range(len(submission.elements))) if array else {None}
    return wanted <= ended


def held(submission: Submission, rows: Sequence[AccountingRow]) -> Used:
    """Return what a submission has used; nothing is measured unless all of it is, since a part would look like all."""
    return used(rows) if complete(submission, rows) else Used()


def write(folder: RunFolder, submission: Submission, rows: Sequence[AccountingRow], note: str) -> int:
    """Publish the archive of one submission, once; returns how many rows it has."""
    path = folder.accounting(submission.name)
    fsio.make_folder(path.parent)
    document = Accounting(
        submission=submission.name,
        compute=submission.compute,
        job_id=submission.job_id,
        note=note,
        rows=tuple(dict(row.columns) for row in rows),
    )
    fsio.publish(path, document.encoded())
    return len(document.rows)


def read(folder: RunFolder, submission: str) -> Accounting | None:
    """Read one archive, if it was written.

    Raises:
        Fault: it cannot be understood.
    """
    try:
        found: Accounting = load(Accounting, folder.accounting(submission))
    except FileNotFoundError:
        return None
    return found
