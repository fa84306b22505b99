"""What a run has used: measured where accounting is archived, else the most that it can have been."""

from __future__ import annotations

from dataclasses import replace

import pytest

from outerloop_hpc.engine import archive
from outerloop_hpc.engine import events as ev
from outerloop_hpc.engine.spend import Spend, Used, spend_of, used
from outerloop_hpc.slurm.port import AccountingRow
from tests.unit.engine.made import Table, Told, accounting_row, evidence, look, record, step, submission

pytestmark = pytest.mark.unit


def row(**columns: str) -> AccountingRow:
    return replace(accounting_row("COMPLETED"), columns={"ElapsedRaw": "100", "AllocCPUS": "4", **columns})


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([], Used()),
        ([row()], Used(400.0, 0.0)),
        ([row(), row(ElapsedRaw="50")], Used(600.0, 0.0)),
        ([row(AllocTRES="cpu=4,gres/gpu=2,gres/gpu:a100=2")], Used(400.0, 200.0)),
        ([row(AllocTRES="cpu=4,gres/gpu:a100=1")], Used(400.0, 100.0)),
        ([row(ElapsedRaw="")], Used()),
        ([row(), replace(row(), step="batch")], Used(400.0, 0.0)),
        ([replace(row(), start=None)], Used(0.0, 0.0)),
    ],
)
def test_what_allocations_held_is_added_up_over_all_attempts(rows: list[AccountingRow], expected: Used) -> None:
    assert used(rows) == expected


def test_what_is_not_archived_counts_by_its_walltime_and_what_never_was_a_job_counts_nothing() -> None:
    one = Table(Told((step("a", cpus=2, minutes=30), step("b", gpus=1, minutes=60))))
    first, second = one.start()
    assert spend_of(one.state) == Spend(0, 0, asked_cpu_hours=2.0, asked_gpu_hours=1.0)
    one.plan({(first, 0): evidence(look(), record=record())})
    assert spend_of(one.state).settling, "its accounting is still to come"
    one.say(ev.AccountingArchived(submission=first, rows=1, cpu_s=1800.0, gpu_s=0.0))
    assert spend_of(one.state) == Spend(0.5, 0, 1.0, 1.0, by_job={"measure": (0.5, 0.0)})
    one.say(ev.SubmissionAbandoned(name=second, reason="never seen"))
    assert spend_of(one.state) == Spend(0.5, 0, by_job={"measure": (0.5, 0.0)})


def test_what_accounting_never_told_stays_an_upper_bound() -> None:
    one = Table(Told((step("a", minutes=30),)))
    (name,) = one.start()
    one.plan({(name, 0): evidence(look(), record=record())})
    one.say(ev.AccountingArchived(submission=name, rows=0, note="not measured"))
    assert spend_of(one.state) == Spend(asked_cpu_hours=0.5)


def test_an_array_of_which_accounting_told_a_part_is_not_measured_instead_of_cheap() -> None:
    two = submission(elements=tuple(ev.Element(step=f"measure-{n}", try_number=1) for n in (1, 2)))
    rows = [replace(row(), task=task) for task in (0, 1)]
    assert archive.held(two, rows) == Used(800.0, 0.0)
    assert archive.held(two, rows[:1]) == Used()
    assert archive.held(two, [rows[0], replace(rows[1], state="RUNNING", end=None)]) == Used()
