"""What a pass gathers: rows and files by try, whatever is missing here or was lost between two steps of a tick."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from outerloop_hpc import fsio
from outerloop_hpc.documents import Document
from outerloop_hpc.engine import watch
from outerloop_hpc.engine.evidence import Index
from outerloop_hpc.engine.layout import Layout, element_file
from outerloop_hpc.engine.records import CLAIM, RECORD
from outerloop_hpc.engine.watch import LiveRun
from outerloop_hpc.slurm.port import AccountingRow, Answer, Availability, Bound, JobRef, Observation, QueueRow, Work
from tests.unit.engine.made import HOLDER, POLICY, T0, Told, after, claim, intended, record, step
from tests.unit.engine.made import Table as Planned
from tests.unit.engine.test_journal import journal

pytestmark = pytest.mark.unit

NAME = "ol.iris.measure.0011"
SUBMITTED = int(T0.timestamp())


@dataclass
class Scheduler:
    """Answers with these rows; remembers what it was asked about."""

    queue: Answer[QueueRow] = field(default_factory=lambda: Answer(Availability.ANSWERED))
    accounting: Answer[AccountingRow] = field(default_factory=lambda: Answer(Availability.ANSWERED))
    asked: list[JobRef] = field(default_factory=list)
    name: str = "slurm"
    user: str = "ann"

    def submit(self, work: Work) -> Bound:
        raise AssertionError("nothing is submitted here")

    def observe(self, jobs: Sequence[JobRef]) -> Observation:
        self.asked.extend(jobs)
        return Observation(self.queue, self.accounting, calls=2)

    def cancel(self, jobs: Sequence[JobRef]) -> None:
        raise AssertionError("nothing is cancelled here")


def row(
    state: str, *, task: int | None = None, step_name: str = "", submit: int = SUBMITTED, name: str = NAME
) -> AccountingRow:
    end = SUBMITTED + 60
    return AccountingRow(
        "7", task, step_name, name, "ann", "c", state, None, submit, SUBMITTED, end, (0, 0), {"State": state}
    )


def live(root: Path, *, bound: bool = True, elements: int = 1) -> LiveRun:
    one = journal(root)
    planned = Planned(Told(tuple(step(f"s{n}") for n in range(elements)), name="benchmark"), launches=0)
    planned.plan()
    planned.say(intended(NAME, *((f"s{n}", 1) for n in range(elements))))
    if bound:
        planned.bind()
    return LiveRun(one, planned.state)


def left(run: LiveRun, what: str, document: Document, index: int = 0) -> None:
    folder = run.journal.folder.submission(NAME)
    fsio.make_folder(folder)
    fsio.publish(folder / element_file(index, what), document.encoded())


def gathered(run: LiveRun, scheduler: Scheduler | None, seconds: float = 0) -> watch.Gathered:
    computes = {} if scheduler is None else {"slurm": scheduler}
    indexes = watch.look([run], computes)
    return watch.gather(run, indexes, after(seconds), watch.policies_for(POLICY, computes))


def test_each_try_gets_its_own_rows_and_files(tmp_path: Path) -> None:
    run = live(tmp_path, elements=3)
    left(run, RECORD, record(submission=NAME, step="s0"), 0)
    left(run, CLAIM, claim(), 1)
    queue = QueueRow("7", frozenset({1, 2}), NAME, "ann", "COMPLETING", submit=SUBMITTED)
    scheduler = Scheduler(
        Answer(Availability.ANSWERED, (queue,)), Answer(Availability.ANSWERED, (row("COMPLETED", task=0),))
    )
    seen = gathered(run, scheduler).evidence
    assert [ref.job_id for ref in scheduler.asked] == ["7"]
    first, second, third = (seen[NAME, n] for n in range(3))
    assert first.files.record is not None
    assert (first.look.queue_row, first.look.accounting_row is None) == (None, False)
    assert second.files.claim is not None
    assert (second.look.queue_row, second.look.accounting_row) == (queue, None)
    assert (third.files.claim, third.look.queue_row) == (None, queue)


def test_of_an_element_that_runs_only_a_record_is_read(tmp_path: Path) -> None:
    run = live(tmp_path, elements=2)
    for index in range(2):
        left(run, CLAIM, claim(), index)
    left(run, RECORD, record(submission=NAME, step="s1", index=1), 1)
    queue = QueueRow("7", frozenset({0, 1}), NAME, "ann", "RUNNING", submit=SUBMITTED)
    seen = gathered(run, Scheduler(Answer(Availability.ANSWERED, (queue,)))).evidence
    assert (seen[NAME, 0].files.claim, seen[NAME, 0].look.queue_row) == (None, queue)
    assert seen[NAME, 1].files.record is not None


def test_rows_of_a_reused_id_are_not_ours_and_are_named(tmp_path: Path) -> None:
    run = live(tmp_path)
    old, other = row("FAILED", submit=SUBMITTED - 1_000_000), row("TIMEOUT", name="somebody-elses")
    seen = gathered(run, Scheduler(accounting=Answer(Availability.ANSWERED, (old, other)))).evidence[NAME, 0]
    assert seen.look.accounting_row is None
    assert len(seen.look.foreign) == 2
    assert seen.summary()["accounting"] == "no row"
    assert len(seen.summary()["not_ours"]) == 2


def test_of_several_attempts_the_newest_counts_with_its_own_steps(tmp_path: Path) -> None:
    run = live(tmp_path)
    rows = (
        row("NODE_FAIL"),
        row("OUT_OF_MEMORY", step_name="batch"),
        row("COMPLETED", submit=SUBMITTED + 200),
        row("COMPLETED", step_name="batch"),
    )
    scheduler = Scheduler(accounting=Answer(Availability.ANSWERED, rows))
    look = gathered(run, scheduler).evidence[NAME, 0].look
    assert look.accounting_row is rows[2]
    assert look.steps == ("COMPLETED",)
    assert Index.of(scheduler.observe([])).rows_of(run.state.submissions[NAME]) == list(rows)


def test_a_file_that_cannot_be_understood_is_a_fault_and_not_an_absence(tmp_path: Path) -> None:
    run = live(tmp_path)
    folder = run.journal.folder.submission(NAME)
    fsio.make_folder(folder)
    fsio.publish(folder / element_file(0, RECORD), b"{")
    assert "record.json" in gathered(run, Scheduler()).evidence[NAME, 0].files.fault


def test_a_record_about_another_try_is_a_fault(tmp_path: Path) -> None:
    run = live(tmp_path)
    left(run, RECORD, record(submission=NAME, try_number=2))
    assert "put here by mistake" in gathered(run, Scheduler()).evidence[NAME, 0].files.fault


def test_submissions_made_after_the_look_are_left_out(tmp_path: Path) -> None:
    run = live(tmp_path)
    indexes = watch.look([run], {"slurm": Scheduler()})
    run.asked = frozenset()
    assert watch.gather(run, indexes, T0, {"slurm": POLICY}).evidence == {}


# --- a submission whose answer was lost -----------------------------------------------------------------------------


def test_an_unbound_submission_is_asked_about_by_its_name(tmp_path: Path) -> None:
    scheduler = Scheduler(accounting=Answer(Availability.ANSWERED, (row("COMPLETED"),)))
    found = gathered(live(tmp_path, bound=False), scheduler)
    assert [(ref.job_id, ref.name) for ref in scheduler.asked] == [(None, NAME)]
    assert found.unbound[NAME].found == "7"


@pytest.mark.parametrize("what", [CLAIM, RECORD])
def test_what_an_element_left_binds_its_submission_before_accounting_knows_the_job(tmp_path: Path, what: str) -> None:
    """A tick killed between sbatch and its commit: without this the accounting of the job was never archived."""
    run = live(tmp_path, bound=False, elements=2)
    holder = HOLDER.model_copy(update={"job_id": "7_1"})
    document = {
        CLAIM: claim().model_copy(update={"holder": holder}),
        RECORD: record(submission=NAME, index=1, step="s1", holder=holder),
    }[what]
    left(run, what, document, 1)
    assert gathered(run, Scheduler()).unbound[NAME].found == "7"


def test_a_claim_taken_by_a_reconciler_is_no_job(tmp_path: Path) -> None:
    run = live(tmp_path, bound=False)
    left(run, CLAIM, claim(abandoned=True))
    assert gathered(run, Scheduler()).unbound[NAME].found is None


@pytest.mark.parametrize(
    ("queue", "accounting", "answered"),
    [
        (Availability.ANSWERED, Availability.ANSWERED, True),
        (Availability.ANSWERED, Availability.DISABLED, True),
        (Availability.ANSWERED, Availability.UNAVAILABLE, False),
        (Availability.UNAVAILABLE, Availability.ANSWERED, False),
    ],
)
def test_absence_means_something_only_when_all_that_will_answer_did(
    tmp_path: Path, queue: Availability, accounting: Availability, answered: bool
) -> None:
    found = gathered(live(tmp_path, bound=False), Scheduler(Answer(queue), Answer(accounting)))
    assert found.unbound[NAME].answered is answered


# --- computes that are not here -------------------------------------------------------------------------------------


def test_a_run_on_a_compute_that_is_not_configured_here_waits_and_is_no_error(tmp_path: Path) -> None:
    found = gathered(live(tmp_path), None, seconds=1e6)
    look = found.evidence[NAME, 0].look
    assert (look.queue, look.accounting) == (Availability.UNAVAILABLE, Availability.UNAVAILABLE)
    assert found.archivable == {}


def test_this_machines_own_processes_leave_nothing_to_wait_for() -> None:
    policies = watch.policies_for(POLICY, ["local", "slurm"])
    assert (policies["local"].confirm_s, policies["local"].soft_window_s) == (0, 0)
    assert policies["slurm"] == POLICY


# --- the archive ----------------------------------------------------------------------------------------------------


def test_accounting_is_archived_once_every_element_has_ended(tmp_path: Path) -> None:
    run = live(tmp_path, elements=2)
    half = (row("COMPLETED", task=0),)
    whole = (*half, row("FAILED", task=1))
    assert gathered(run, Scheduler(accounting=Answer(Availability.ANSWERED, half))).archivable == {}
    assert gathered(run, Scheduler(accounting=Answer(Availability.ANSWERED, whole))).archivable == {NAME: ""}


def test_a_layout_has_months(tmp_path: Path) -> None:
    assert live(tmp_path).journal.folder.path.parent == Layout(tmp_path).runs / "2026-11"
