"""Use of an allocation, against recorded accounting of both versions and against hand-made rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outerloop_hpc.report.attempts import Attempt, attempts
from outerloop_hpc.report.jobs import JobReport, Outcome, job_reports
from outerloop_hpc.report.usage import Usage, usage

pytestmark = pytest.mark.unit

MIB = 2**20


class Captured(Protocol):
    def __call__(self, name: str) -> list[dict[str, str]]: ...


JOB = {
    "JobID": "7",
    "JobIDRaw": "7",
    "State": "COMPLETED",
    "Submit": "1000",
    "Start": "1010",
    "End": "1110",
    "ElapsedRaw": "100",
    "TimelimitRaw": "10",
    "AllocCPUS": "4",
    "AllocNodes": "1",
    "NodeList": "n1",
    "TotalCPU": "03:20.000",
    "AllocTRES": "billing=4,cpu=4,mem=1000M,node=1",
    "ReqTRES": "billing=4,cpu=4,mem=1000M,node=1",
}
BATCH = {
    "JobID": "7.batch",
    "JobIDRaw": "7.batch",
    "AllocNodes": "1",
    "NodeList": "n1",
    "NTasks": "1",
    "MaxRSS": "250M",
    "TRESUsageInTot": "cpu=00:03:20,mem=250M",
}


def used(job: Mapping[str, str], *steps: Mapping[str, str]) -> Usage:
    return usage(Attempt({**JOB, **job}, tuple({**BATCH, **step} for step in steps), superseded=False))


def by_id(reports: tuple[JobReport, ...]) -> dict[str, JobReport]:
    return {report.job_id: report for report in reports}


@pytest.mark.parametrize(
    ("capture", "job_id", "cpu_s", "cpu_hours"),
    [("allfields-22.05.8", "26", 8.548, 64 / 3600), ("allfields-26.05.5", "31", 7.165, 60 / 3600)],
)
def test_a_recorded_two_node_job(captured: Captured, capture: str, job_id: str, cpu_s: float, cpu_hours: float) -> None:
    found = by_id(job_reports(captured(capture)))[job_id].usage
    assert found.cpu_s == pytest.approx(cpu_s)
    assert found.cpu_hours == pytest.approx(cpu_hours)
    assert found.cpu_efficiency == pytest.approx(cpu_s / (cpu_hours * 3600))
    assert found.memory_asked_bytes == found.memory_allocated_bytes == 2000 * MIB
    # Four tasks of about 208 MiB each in step 0; the batch step's 12 MiB come on top of nothing.
    assert found.memory_used_bytes is not None
    assert 4 * 205 * MIB < found.memory_used_bytes < 4 * 212 * MIB
    assert found.memory_efficiency == pytest.approx(found.memory_used_bytes / (2000 * MIB))
    assert found.time_efficiency == pytest.approx((cpu_hours * 3600 / 4) / 86400)
    assert found.gpu_count is None
    assert found.notes == ()


@pytest.mark.parametrize(("capture", "job_id"), [("allfields-22.05.8", "28"), ("allfields-26.05.5", "33")])
def test_typed_and_untyped_gpus_are_the_same_devices(captured: Captured, capture: str, job_id: str) -> None:
    found = by_id(job_reports(captured(capture)))[job_id].usage
    assert found.gpu_count == 2
    assert found.gpu_hours == pytest.approx(2 * 3 / 3600)


@pytest.mark.parametrize("capture", ["steps-22.05.8", "steps-26.05.5", "allfields-22.05.8", "allfields-26.05.5"])
def test_cost_agrees_with_what_slurm_counted_itself(captured: Captured, capture: str) -> None:
    rows = captured(capture)
    counted = {row["JobID"]: float(row["CPUTimeRAW"]) for row in rows if "." not in row["JobID"]}
    reports = job_reports(rows)
    assert len(reports) == len(counted) >= 5
    for report in reports:
        if report.usage.cpu_hours is None:
            assert counted[report.job_id] == 0
        else:
            assert report.usage.cpu_hours * 3600 == pytest.approx(counted[report.job_id]), report.job_id


@pytest.mark.parametrize("capture", ["steps-22.05.8", "steps-26.05.5"])
def test_job_rows_and_their_steps_make_one_report_row(captured: Captured, capture: str) -> None:
    rows = captured(capture)
    found = attempts(rows)
    jobs = {row["JobIDRaw"] for row in rows if "." not in row["JobIDRaw"]}
    owned = [row for row in rows if row["JobIDRaw"].partition(".")[0] in jobs]
    assert sum(1 + len(attempt.steps) for attempt in found) == len(owned) >= 120
    for attempt in found:
        raw = attempt.job["JobIDRaw"]
        assert {step["JobIDRaw"].partition(".")[0] for step in attempt.steps} <= {raw}


def test_array_elements_that_share_a_raw_id_stay_apart() -> None:
    rows = [{**JOB, "JobID": job_id, "JobIDRaw": "13"} for job_id in ("13_29", "13_30", "13_[31-40]")]
    assert [report.job_id for report in job_reports(rows)] == ["13_29", "13_30", "13_[31-40]"]


@pytest.mark.parametrize(("capture", "low"), [("steps-22.05.8", "22"), ("steps-26.05.5", "27")])
def test_pending_rows_cost_nothing_although_old_versions_print_their_cpus(
    captured: Captured, capture: str, low: str
) -> None:
    report = by_id(job_reports(captured(capture)))[low]
    assert report.outcome is Outcome.WAITING
    assert report.usage.alloc_cpus is report.usage.cpu_hours is report.usage.elapsed_s is None


@pytest.mark.parametrize(("capture", "refused"), [("steps-22.05.8", "48"), ("steps-26.05.5", "46")])
def test_rejected_submissions_are_no_failures(captured: Captured, capture: str, refused: str) -> None:
    report = by_id(job_reports(captured(capture)))[refused]
    assert (report.state, report.outcome) == ("FAILED", Outcome.REJECTED)
    assert report.usage.cpu_hours is None


@pytest.mark.parametrize(("capture", "running"), [("steps-22.05.8", "23"), ("steps-26.05.5", "28")])
def test_running_jobs_have_a_cost_so_far_and_no_cpu_time(captured: Captured, capture: str, running: str) -> None:
    report = by_id(job_reports(captured(capture)))[running]
    assert report.outcome is Outcome.RUNNING
    assert report.usage.cpu_hours == pytest.approx(1136 / 3600)
    assert report.usage.cpu_s is report.usage.cpu_efficiency is report.usage.memory_used_bytes is None
    assert any("still running" in note for note in report.usage.notes)


def test_a_fast_requeue_on_22_05_is_marked(captured: Captured) -> None:
    report = by_id(job_reports(captured("steps-22.05.8")))["18"]
    assert report.usage.notes == ("a step ran 48 s, longer than the job's 41 s: requeued within one record",)


@pytest.mark.parametrize("capture", ["requeued-22.05.8", "requeued-26.05.5"])
def test_requeued_attempts_cost_but_do_not_count_as_failures(captured: Captured, capture: str) -> None:
    reports = [report for report in job_reports(captured(capture)) if report.job_id == "20"]
    assert [report.outcome for report in reports] == [Outcome.REQUEUED, Outcome.RUNNING]
    assert [report.usage.cpu_hours is not None for report in reports] == [True, True]


def test_steps_go_to_their_own_attempt_when_an_id_was_requeued(captured: Captured) -> None:
    first, second = (attempt for attempt in attempts(captured("requeued-26.05.5")) if attempt.job["JobID"] == "18")
    assert [step["State"] for step in first.steps] == ["CANCELLED"]
    assert [step["State"] for step in second.steps] == ["COMPLETED"]
    assert (first.superseded, second.superseded) == (True, False)


def test_steps_find_their_attempt_by_sluid_whatever_the_order() -> None:
    rows = [
        {**BATCH, "SLUID": "b", "State": "COMPLETED"},
        {**JOB, "SLUID": "a", "Submit": "1000"},
        {**JOB, "SLUID": "b", "Submit": "2000"},
        {**BATCH, "SLUID": "a", "State": "CANCELLED"},
    ]
    found = {attempt.job["SLUID"]: attempt for attempt in attempts(rows)}
    assert [step["State"] for step in found["a"].steps] == ["CANCELLED"]
    assert [step["State"] for step in found["b"].steps] == ["COMPLETED"]


def test_a_row_archived_twice_counts_once_and_the_later_one_holds() -> None:
    rows = [{**JOB, "State": "RUNNING", "End": "Unknown"}, BATCH, JOB, BATCH]
    (found,) = attempts(rows)
    assert (found.job["State"], len(found.steps)) == ("COMPLETED", 1)


def test_a_cut_array_range_is_a_job_and_not_a_step() -> None:
    (found,) = attempts([{**JOB, "JobID": "13_[1,3,5,7...]", "JobIDRaw": "13"}])
    assert found.job["JobID"] == "13_[1,3,5,7...]"


def test_memory_is_the_largest_step_and_never_the_sum() -> None:
    found = used({}, {}, {"JobID": "7.0", "TRESUsageInTot": "mem=600M"}, {"JobID": "7.1", "TRESUsageInTot": "mem=599M"})
    assert found.memory_used_bytes == 600 * MIB
    assert found.memory_efficiency == pytest.approx(0.6)


def test_memory_without_totals_is_the_largest_task_times_tasks() -> None:
    found = used({}, {"TRESUsageInTot": "", "MaxRSS": "100M", "NTasks": "4"})
    assert found.memory_used_bytes == 400 * MIB
    assert found.notes == ("memory is MaxRSS x NTasks, an upper bound (no TRESUsageInTot)",)


@pytest.mark.parametrize("step", [{"TRESUsageInTot": "", "MaxRSS": ""}, {"TRESUsageInTot": "mem=0", "MaxRSS": "0"}])
def test_unmeasured_memory_is_unknown_and_not_zero(step: dict[str, str]) -> None:
    found = used({}, step)
    assert found.memory_used_bytes is None
    assert found.memory_efficiency is None


def test_unmeasured_cpu_time_is_unknown_and_not_zero() -> None:
    assert used({"TotalCPU": "00:00:00"}, {"TotalCPU": "00:00:00"}).cpu_efficiency is None
    assert used({"TotalCPU": ""}).cpu_s is None


def test_use_that_only_the_steps_know_is_joined() -> None:
    found = used({"TotalCPU": "00:00:00"}, {"TotalCPU": "01:00.500"}, {"JobID": "7.0", "TotalCPU": "00:30.000"})
    assert found.cpu_s == pytest.approx(90.5)


def test_only_some_nodes_measured_is_said() -> None:
    found = used({"AllocNodes": "20", "NodeList": "n[1-20]"}, {})
    assert found.notes == ("only 1 of 20 nodes had a measured step",)
    spread = used({"AllocNodes": "2", "NodeList": "n[1-2]"}, {"NodeList": "n1"}, {"JobID": "7.0", "NodeList": "n2"})
    assert spread.notes == ()


def test_nodes_are_counted_where_their_names_cannot_be_read() -> None:
    rack = {"AllocNodes": "4", "NodeList": "r[1-2]n[1-2]"}
    assert used(rack, {}, {"JobID": "7.0", **rack}).notes == ()
    assert used(rack, {}, {"JobID": "7.0", **rack, "AllocNodes": "3"}).notes == (
        "only 3 of 4 nodes had a measured step",
    )


def test_what_a_running_jobs_ended_steps_used_is_not_its_peak() -> None:
    assert used({"End": "Unknown", "State": "RUNNING"}, {}).memory_used_bytes is None


@pytest.mark.parametrize(
    ("job", "note"),
    [
        ({"TotalCPU": "07:48.000"}, "CPU efficiency 117.0% shown as 100 %"),
        ({"TimelimitRaw": "1"}, "time efficiency 166.7% shown as 100 %"),
        ({"AllocTRES": "mem=200M"}, "memory efficiency 125.0% shown as 100 %"),
    ],
)
def test_more_than_all_is_clipped_with_a_mark(job: dict[str, str], note: str) -> None:
    found = used(job, {})
    assert note in found.notes
    assert 1.0 in (found.cpu_efficiency, found.time_efficiency, found.memory_efficiency)


@pytest.mark.parametrize("limit", ["UNLIMITED", "Partition_Limit", "INVALID", ""])
def test_no_limit_no_time_efficiency(limit: str) -> None:
    assert used({"TimelimitRaw": limit, "Timelimit": limit}).time_efficiency is None


def test_whole_nodes_are_told_apart_from_what_was_asked() -> None:
    found = used({"AllocTRES": "cpu=4,mem=100G"}, {})
    assert (found.memory_asked_bytes, found.memory_allocated_bytes) == (1000 * MIB, 100 * 1024 * MIB)
    assert found.notes[0].startswith("more memory was allocated than asked for")


@pytest.mark.parametrize(
    ("tres", "expected", "note"),
    [
        ("cpu=4,gres/gpu=2", 2, ""),
        ("cpu=4,gres/gpu:a100=2,gres/gpu=2", 2, ""),
        ("cpu=4,gres/gpu:a100=2,gres/gpu:v100=1", 3, ""),
        ("cpu=4", None, ""),
        ("cpu=4,gres/gpu:1g.5gb=3,gres/gpu=3", None, "3 MIG slices are not counted as GPUs"),
        ("gres/gpu:a100_3g.20gb=1,gres/gpu:a100=1,gres/gpu=2", 1, "1 MIG slices are not counted as GPUs"),
        ("cpu=4,gres/shard=5", None, "5 GPU shards are not counted as GPUs"),
    ],
)
def test_gpus(tres: str, expected: int | None, note: str) -> None:
    found = used({"AllocTRES": tres})
    assert found.gpu_count == expected
    assert found.gpu_hours == (None if expected is None else pytest.approx(expected * 100 / 3600))
    assert [n for n in found.notes if "GPU" in n] == ([note] if note else [])


def test_gpus_that_a_site_does_not_account_are_said_to_be_missing() -> None:
    assert used({"ReqTRES": "cpu=4,gres/gpu=2"}).notes == ("GPUs were asked for and none is recorded as allocated",)


def test_a_job_that_took_no_time_has_no_efficiency() -> None:
    found = used({"ElapsedRaw": "0", "TotalCPU": "00:00.001"})
    assert (found.elapsed_s, found.cpu_s, found.cpu_efficiency, found.cpu_hours) == (0, 0.001, None, 0)


@given(st.dictionaries(st.sampled_from(sorted(JOB | BATCH)), st.text(max_size=20)), st.data())
def test_hostile_rows_never_raise_and_shares_stay_shares(row: dict[str, str], data: st.DataObject) -> None:
    step = data.draw(st.dictionaries(st.sampled_from(sorted(BATCH)), st.text(max_size=20)))
    for report in job_reports([{**JOB, **row}, {**BATCH, **step}]):
        for share in (report.usage.cpu_efficiency, report.usage.memory_efficiency, report.usage.time_efficiency):
            assert share is None or 0 <= share <= 1
