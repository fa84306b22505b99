"""Totals of runs, costs by group and window, and that numbers can be recomputed from the file that a report names."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Protocol

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outerloop_hpc.errors import UsageError
from outerloop_hpc.report.costs import KEYS, Window, costs, share_within
from outerloop_hpc.report.formulas import FORMULAS, footer
from outerloop_hpc.report.jobs import JobReport, Outcome, job_reports
from outerloop_hpc.report.rows import (
    COST_COLUMNS,
    JOB_COLUMNS,
    JOB_SHOWN,
    RUN_COLUMNS,
    RUN_SHOWN,
    cost_row,
    job_row,
    run_row,
)
from outerloop_hpc.report.runs import run_reports

pytestmark = pytest.mark.unit


class Captured(Protocol):
    def __call__(self, name: str) -> list[dict[str, str]]: ...


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


def job(start: int | None, end: int | None, cpus: int = 2, gpus: int = 0, **columns: str) -> JobReport:
    seconds = 0 if start is None or end is None else end - start
    row = {
        "JobID": "7",
        "State": "COMPLETED",
        "Submit": "1",
        "Start": "Unknown" if start is None else str(start),
        "End": "Unknown" if end is None else str(end),
        "ElapsedRaw": str(seconds),
        "AllocCPUS": str(cpus),
        "AllocNodes": "1",
        "AllocTRES": f"gres/gpu={gpus}" if gpus else "cpu=2",
        "Account": "a",
        "Partition": "p",
        **columns,
    }
    (report,) = job_reports([row])
    return report


@pytest.mark.parametrize("capture", ["steps-22.05.8", "steps-26.05.5"])
def test_a_run_adds_up(captured: Captured, capture: str) -> None:
    rows = captured(capture)
    reports = job_reports(rows, source="accounting/x.json")
    (run,) = run_reports(("r-1", report) for report in reports)
    counts = (run.completed, run.failed, run.cancelled, run.running, run.waiting, run.requeued, run.rejected)
    assert sum(counts) == run.attempts == len(reports)
    assert run.rejected == 2
    assert run.cancelled == 2
    counted = sum(int(row["CPUTimeRAW"]) for row in rows if "." not in row["JobID"])
    assert run.cpu_hours is not None
    assert run.cpu_hours * 3600 == pytest.approx(counted)
    assert run.success_rate == run.completed / (run.completed + run.failed)
    assert run.sources == ("accounting/x.json",)


def test_a_number_can_be_recomputed_from_the_file_that_the_report_names(captured: Captured, tmp_path: Path) -> None:
    path, rows = tmp_path / "steward-1.json", captured("steps-22.05.8")
    document = {"schema": "accounting/1", "submission": "steward-1", "compute": "slurm", "rows": rows}
    path.write_text(json.dumps(document), encoding="utf-8")
    reports = job_reports(rows, submission="steward-1", source=str(path))
    (run,) = run_reports(("r", report) for report in reports)
    read = json.loads(Path(run.sources[0]).read_text(encoding="utf-8"))
    assert job_reports(read["rows"], submission=read["submission"], source=run.sources[0]) == reports
    by_hand = 0
    for row in read["rows"]:
        if "." not in row["JobID"] and row["Start"].isdecimal() and row["AllocNodes"] != "0":
            hours, minutes, seconds = map(int, row["Elapsed"].split(":"))
            by_hand += int(row["AllocCPUS"]) * (hours * 3600 + minutes * 60 + seconds)
    assert run.cpu_hours == pytest.approx(by_hand / 3600)


def test_requeued_attempts_cost_and_are_in_no_rate(captured: Captured) -> None:
    reports = [report for report in job_reports(captured("requeued-26.05.5")) if report.job_id == "18"]
    (run,) = run_reports(("r", report) for report in reports)
    assert (run.attempts, run.requeued, run.completed, run.failed, run.success_rate) == (2, 1, 1, 0, 1.0)
    assert run.cpu_hours == pytest.approx((5 + 40) / 3600)


def test_nothing_measured_is_not_zero() -> None:
    (run,) = run_reports([("r", job(None, None))])
    assert run.cpu_hours is run.gpu_hours is run.cpu_efficiency is run.memory_peak_bytes is run.success_rate is None
    assert run.waiting == 1


def test_efficiency_of_a_run_is_weighted_and_says_what_was_not_measured() -> None:
    long = job(0, 1000, cpus=10, TotalCPU="02:46:40")
    short = job(0, 10, cpus=1, TotalCPU="00:00.100")
    unknown = job(0, 500, cpus=4)
    (run,) = run_reports(("r", one) for one in (long, short, unknown))
    assert run.cpu_efficiency == pytest.approx(10000.1 / 10010)
    assert run.notes == ("CPU time was measured for 2 of 3 ended attempts",)
    assert run_reports(("r", one) for one in (long, short))[0].notes == ()


def test_runs_stand_in_the_order_they_came() -> None:
    assert [run.run_id for run in run_reports((name, job(0, 1)) for name in ("b", "a", "b"))] == ["b", "a"]


def test_costs_by_month_split_a_job_that_crosses_midnight_of_the_first() -> None:
    crossing = job(at("2026-01-31T22:00"), at("2026-02-01T02:00"), cpus=2, gpus=3)
    found = costs([crossing], ("month", "account"), now=0)
    assert [cost.group for cost in found] == [("2026-01", "a"), ("2026-02", "a")]
    assert [cost.cpu_hours for cost in found] == pytest.approx([4, 4])
    assert [cost.gpu_hours for cost in found] == pytest.approx([6, 6])


def test_a_job_that_only_touches_the_window_counts_with_its_part() -> None:
    window = Window(at("2026-01-01T01:00"), at("2026-01-01T02:00"))
    jobs = [
        job(at("2026-01-01T00:00"), at("2026-01-01T04:00")),
        job(at("2026-01-01T01:30"), at("2026-01-01T05:00")),
        job(at("2026-01-01T02:00"), at("2026-01-01T05:00")),
        job(at("2025-12-31T00:00"), at("2026-01-01T01:00")),
        job(None, None),
    ]
    (cost,) = costs(jobs, ("partition",), window, now=0)
    assert (cost.attempts, cost.gpu_hours) == (2, None)
    assert cost.cpu_hours == pytest.approx(2 * 1 + 2 * 0.5)


def test_suspended_time_is_not_paid() -> None:
    suspended = job(0, 60, cpus=1, ElapsedRaw="44")
    assert costs([suspended], ("user",), now=0)[0].cpu_hours == pytest.approx(44 / 3600)
    assert share_within(suspended, Window(0, 30), now=0) == 0.5


def test_a_running_job_counts_up_to_now() -> None:
    running = job(0, None, ElapsedRaw="100", State="RUNNING")
    assert share_within(running, Window(None, 50), now=100) == 0.5
    assert costs([running], ("outcome",), now=100)[0].group == ("running",)


def test_a_job_that_took_no_time_is_in_one_group() -> None:
    instant = job(at("2026-01-01T00:00"), at("2026-01-01T00:00"))
    found = costs([instant], ("month",), now=0)
    assert [(cost.group, cost.attempts, cost.cpu_hours) for cost in found] == [(("2026-01",), 1, 0.0)]


def test_costs_know_their_keys() -> None:
    for key in KEYS:
        assert len(costs([job(0, 10)], (key,), now=0)) == 1
    with pytest.raises(UsageError, match="cannot be grouped by 'group'; known: month, account"):
        costs([], ("group",), now=0)


@given(st.integers(0, 2 * 10**9), st.integers(0, 10**8), st.lists(st.integers(0, 2 * 10**9), max_size=3))
def test_months_and_windows_lose_nothing(start: int, length: int, cuts: list[int]) -> None:
    one = job(start, start + length)
    (whole,) = costs([one], ("account",), now=0)
    by_month = costs([one], ("month",), now=0)
    assert sum(cost.cpu_hours or 0 for cost in by_month) == pytest.approx(whole.cpu_hours)
    edges = [None, *sorted(set(cuts)), None]
    windows = [Window(a, b) for a, b in pairwise(edges)]
    assert sum(share_within(one, window, now=0) for window in windows) == pytest.approx(1)


def test_rows_have_exactly_the_columns_they_promise() -> None:
    one = job(at("2026-01-31T22:00"), at("2026-02-01T02:00"))
    assert list(job_row(one, "r")) == list(JOB_COLUMNS)
    (run,) = run_reports([("r", one)])
    assert set(run_row(run)) == set(RUN_COLUMNS)
    by = ("month", "user")
    assert list(cost_row(costs([one], by, now=0)[0], by)) == [*by, *COST_COLUMNS]
    assert set(JOB_SHOWN) < set(JOB_COLUMNS)
    assert {"run_id", "state", "nodes"} < set(JOB_SHOWN)  # the help promises them
    assert set(RUN_SHOWN) < set(RUN_COLUMNS)
    assert str(job_row(one)["started_at"]) == "2026-01-31 22:00:00+00:00"


@pytest.mark.parametrize("never", ["18446744073709551614", "9" * 5000, "4294967294", "-1", "٣"])
def test_a_time_beyond_every_calendar_is_unknown(never: str) -> None:
    one = job(0, 10, End=never)
    assert job_row(one)["ended_at"] is None
    assert len(costs([one], ("month",), now=10)) == 1


def test_the_footer_prints_the_formula_of_every_computed_column() -> None:
    lines = footer(["job_id", "cpu_efficiency", "gpu_hours"], str(Window(0, None)))
    assert lines[0] == "window: 1970-01-01T00:00:00Z to now"
    assert lines[1] == f"cpu_efficiency = {FORMULAS['cpu_efficiency']}"
    assert lines[-1] == '"-" is not measured, never 0'
    assert footer(["job_id"]) == ()


def test_every_outcome_has_its_count() -> None:
    assert {outcome.value for outcome in Outcome} < set(RUN_COLUMNS)
