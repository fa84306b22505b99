"""Tries without accounting rows: every run is reported with all its tries, and nothing unmeasured is 0."""

from __future__ import annotations

import pytest

from outerloop_hpc.engine import events as ev
from outerloop_hpc.engine.spec import StepSpec
from outerloop_hpc.report.jobs import Outcome
from outerloop_hpc.report.runs import run_reports
from outerloop_hpc.report.tries import NO_ROWS, UNDER_WAY, untold
from tests.unit.engine.made import Table, Told, step

pytestmark = pytest.mark.unit


def table(*steps: StepSpec) -> Table:
    return Table(Told(steps or (step(),)))


def ended(one: Table, outcome: ev.TryOutcome, record_outcome: str = "") -> None:
    one.say(
        ev.TryEnded(
            step="measure-1", try_number=1, outcome=outcome, rule="r", reason="r", record_outcome=record_outcome
        )
    )


@pytest.mark.parametrize(
    ("outcome", "record", "expected"),
    [
        ("done", "completed", Outcome.COMPLETED),
        ("done", "failed", Outcome.FAILED),
        ("lost", "", Outcome.FAILED),
        ("timed_out", "", Outcome.FAILED),
        ("out_of_memory", "", Outcome.FAILED),
        ("cancelled", "", Outcome.CANCELLED),
        ("withdrawn", "", Outcome.CANCELLED),
        ("refused", "", Outcome.REJECTED),
        ("abandoned", "", Outcome.REJECTED),
    ],
)
def test_a_try_without_rows_is_shown_with_what_the_journal_knows(
    outcome: ev.TryOutcome, record: str, expected: Outcome
) -> None:
    one = table()
    (name,) = one.start()
    ended(one, outcome, record)
    (job,) = untold(one.state, (), "journal")
    assert (job.outcome, job.job_id, job.submission, job.source) == (expected, "7", name, "journal")
    assert (job.usage.elapsed_s, job.usage.cpu_hours, job.usage.gpu_hours, job.usage.cpu_efficiency) == (None,) * 4
    assert job.usage.notes == (NO_ROWS,)


def test_a_try_under_way_waits_until_it_has_a_job() -> None:
    one = table()
    one.plan()
    assert [job.outcome for job in untold(one.state, (), "")] == [Outcome.WAITING]
    one.bind()
    (job,) = untold(one.state, (), "")
    assert (job.outcome, job.usage.notes) == (Outcome.RUNNING, (UNDER_WAY,))


def test_what_accounting_tells_of_is_not_told_twice() -> None:
    one = table(step("a"), step("b"))
    (name,) = one.start()
    assert [job.job_id for job in untold(one.state, {(name, "7_0")}, "")] == ["7_1"]


def test_a_run_without_accounting_is_in_the_report_and_costs_nothing_that_was_measured() -> None:
    one = table()
    one.start()
    ended(one, "done", "completed")
    (run,) = run_reports(("run", job) for job in untold(one.state, (), "journal"))
    assert (run.attempts, run.completed, run.success_rate) == (1, 1, 1.0)
    assert (run.cpu_hours, run.gpu_hours, run.elapsed_s, run.cpu_efficiency) == (None,) * 4
