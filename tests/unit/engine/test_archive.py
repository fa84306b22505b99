"""When the accounting of a submission is whole: after the last execution of every element, not after the first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from outerloop_hpc.engine import watch
from outerloop_hpc.engine.archive import complete
from outerloop_hpc.engine.evidence import Index
from outerloop_hpc.engine.journal import Journal
from outerloop_hpc.engine.layout import RunFolder
from outerloop_hpc.engine.state import RunState
from outerloop_hpc.slurm.port import AccountingRow, Answer, Availability, Observation, QueueRow
from tests.unit.engine.made import POLICY, RUN, accounting_row, after, queue_row, submission

pytestmark = pytest.mark.unit

_ENDED = accounting_row("COMPLETED")
_LATER = int(after(100).timestamp())


def again(state: str, *, end: bool) -> AccountingRow:
    """The row of a later execution of the same job: Submit is the time of the requeue."""
    return replace(accounting_row(state, end=end), submit=_LATER)


@pytest.mark.parametrize(
    ("rows", "whole"),
    [
        ([_ENDED], True),
        ([replace(_ENDED, end=None)], False),
        ([_ENDED, again("PENDING", end=False)], False),
        ([_ENDED, again("RUNNING", end=False)], False),
        ([_ENDED, again("COMPLETED", end=True)], True),
        ([again("CANCELLED", end=True), _ENDED], True),
        ([replace(_ENDED, state="REQUEUED")], False),
        ([], False),
    ],
)
def test_of_a_requeued_job_the_last_execution_counts(rows: Sequence[AccountingRow], whole: bool) -> None:
    assert complete(submission(), rows) is whole


@pytest.mark.parametrize(
    ("queue", "kept"),
    [
        ("PENDING", False),
        ("RUNNING", False),
        ("COMPLETING", True),
        ("COMPLETED", True),
        ("", True),
    ],
)
def test_nothing_is_archived_of_a_job_that_the_queue_has_again(tmp_path: Path, queue: str, kept: bool) -> None:
    """Accounting shows a requeued job's new row seconds later than the queue."""
    rows: tuple[QueueRow, ...] = (queue_row(queue),) if queue else ()
    seen = Observation(Answer(Availability.ANSWERED, rows), Answer(Availability.ANSWERED, (_ENDED,)))
    one = submission()
    state = RunState(run=RUN, submissions={one.name: one})
    run = watch.LiveRun(Journal(RunFolder(tmp_path)), state, asked=frozenset({one.name}))
    for seconds in (200, 7200):  # also long after accounting is waited for: it waits in the queue, and will cost more
        gathered = watch.gather(run, {"slurm": Index.of(seen)}, after(seconds), {"slurm": POLICY})
        assert (one.name in gathered.archivable) is kept
