"""A daemon of Slurm that hangs or is away is asked once, whatever else was to be asked of it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from outerloop_hpc.errors import TryLater
from outerloop_hpc.process import Finished
from outerloop_hpc.slurm.answers import unreachable
from outerloop_hpc.slurm.breaker import ACCOUNTING, Breaker, controller
from outerloop_hpc.slurm.port import Availability, JobRef, Resources, SubmissionAmbiguous, SubmissionWithheld, Work
from outerloop_hpc.slurm.query import IDS_PER_CALL, WANTED_COLUMNS, SlurmQuery
from outerloop_hpc.slurm.sbatch import SiteOptions
from outerloop_hpc.slurm.submit import DEFAULT_MAX_ARRAY_SIZE, SlurmCompute

if TYPE_CHECKING:
    from tests.unit.slurm.conftest import FakeRunner

pytestmark = pytest.mark.unit

REF = JobRef("run-1", "user1", "7", "", datetime(2026, 11, 29, tzinfo=UTC))
AWAY = "slurm_load_jobs error: Unable to contact slurm controller (connect failure)"


def compute_over(runner: FakeRunner) -> tuple[SlurmCompute, Breaker]:
    """Slurm behind a breaker; what a test does not script is answered with nothing."""
    for program in ("squeue", "scancel", "scontrol", "sbatch"):
        runner.replies.setdefault(program, ended)
    runner.replies.setdefault("helpformat", lambda argv: ended(argv, WANTED_COLUMNS))
    runner.replies.setdefault("sacct", lambda argv: ended(argv, no_rows(argv)))
    breaker = Breaker(runner)
    query = SlurmQuery(breaker, {}, separator="|")
    return SlurmCompute(query, python="python3", site=SiteOptions(), environ={}, run=breaker), breaker


def ended(argv: Sequence[str], stdout: str = "", stderr: str = "", status: int | None = 0) -> Finished:
    return Finished(tuple(argv), status, stdout, stderr, timed_out=status is None, seconds=0.1)


def no_rows(argv: Sequence[str]) -> str:
    return "|".join(argv[argv.index("-o") + 1].split(","))


def work(folder: Path) -> Work:
    return Work("ol.iris.measure.1", "os.path:basename", ("a",), folder / "submitit", Resources(minutes=1))


@pytest.mark.parametrize(("stderr", "status"), [("", None), (AWAY, 1)])
def test_a_controller_that_hangs_or_is_away_gets_no_second_command(
    runner: FakeRunner, tmp_path: Path, stderr: str, status: int | None
) -> None:
    compute, breaker = compute_over(runner)
    runner.says("squeue", "", stderr, status)
    seen = compute.observe([REF])
    assert seen.queue.availability is Availability.UNAVAILABLE
    assert seen.accounting.availability is Availability.ANSWERED, "slurmdbd is another daemon"
    with pytest.raises(SubmissionWithheld, match=r"not asked: slurmctld did not answer in this pass \(squeue"):
        compute.submit(work(tmp_path))
    with pytest.raises(TryLater, match="not asked: slurmctld"):
        compute.cancel([REF])
    assert compute.max_array_size() == DEFAULT_MAX_ARRAY_SIZE
    assert compute.observe([REF]).calls == 1, "what was not started is no call"
    assert [argv[0] for argv in runner.asked] == ["squeue", "sacct", "sacct", "sacct"]
    assert (set(breaker.failed), breaker.answered) == ({controller("")}, {ACCOUNTING})


def test_accounting_that_hangs_costs_one_time_limit_and_no_submission(runner: FakeRunner, tmp_path: Path) -> None:
    compute, breaker = compute_over(runner)
    runner.says("sacct", status=None)
    many = [replace(REF, job_id=str(number), name=f"run-{number}") for number in range(3 * IDS_PER_CALL)]
    seen = compute.observe([*many, replace(REF, job_id=None, name="lost")])
    assert (seen.queue.availability, seen.accounting.availability) == (Availability.ANSWERED, Availability.UNAVAILABLE)
    assert len(runner.calls("sacct")) == 1
    with pytest.raises(SubmissionAmbiguous, match="its answer is not understood"):
        compute.submit(work(tmp_path))
    assert len(runner.calls("sbatch")) == 1
    assert set(breaker.failed) == {ACCOUNTING}


def test_one_clusters_controller_stops_neither_questions_nor_cancellations_elsewhere(runner: FakeRunner) -> None:
    compute, breaker = compute_over(runner)
    for program in ("squeue", "scancel"):
        runner.replies[program] = lambda argv: ended(argv, status=None if "a" in argv else 0)
    both = [replace(REF, cluster="a"), replace(REF, cluster="b", job_id="8")]
    assert compute.observe(both).queue.availability is Availability.UNAVAILABLE
    with pytest.raises(TryLater, match="slurmctld of a"):
        compute.cancel(both)
    assert [argv[2] for argv in runner.calls("squeue")] == ["a", "b"]
    assert runner.calls("scancel") == [("scancel", "-M", "b", "8")]
    assert (set(breaker.failed), breaker.answered) == ({"slurmctld of a"}, {"slurmctld of b", ACCOUNTING})


def test_each_pass_begins_anew_and_may_be_told_whom_to_leave_alone(runner: FakeRunner) -> None:
    compute, breaker = compute_over(runner)
    runner.says("squeue", status=None)
    compute.observe([REF])
    runner.says("squeue")
    breaker.reset({ACCOUNTING: "slurmdbd is known to be away"})
    seen = compute.observe([REF])
    assert seen.queue.availability is Availability.ANSWERED
    assert seen.accounting.problems == ("sacct: was not started: not asked: slurmdbd is known to be away",)
    assert (breaker.failed, breaker.answered) == ({}, {controller("")})


def test_the_size_of_arrays_is_asked_once_also_where_it_is_not_told(runner: FakeRunner) -> None:
    compute, breaker = compute_over(runner)
    runner.says("scontrol", stderr="scontrol: error: Access/permission denied", status=1)
    assert {compute.max_array_size() for _ in range(3)} == {DEFAULT_MAX_ARRAY_SIZE}
    assert len(runner.calls("scontrol")) == 1

    compute, breaker = compute_over(runner)
    runner.says("scontrol", stderr=AWAY, status=1)
    assert compute.max_array_size() == DEFAULT_MAX_ARRAY_SIZE
    runner.says("scontrol", "MaxArraySize = 77\n")
    breaker.reset({})
    assert compute.max_array_size() == 77, "what nobody could tell is asked again by the next pass"


def test_every_recorded_outage_is_one(version: str) -> None:
    controllers = [text for text in _stderrs("outage_ctld", version) if "Unable to contact" in text]
    accounts = [text for text in _stderrs("outage_dbd", version) if "onnection" in text]
    assert len(controllers) >= 4
    assert accounts
    assert all(unreachable(ended(("x",), "", text, 1)) for text in controllers + accounts)


@pytest.mark.parametrize(
    ("stderr", "stdout", "status"),
    [
        ("sbatch: error: Batch job submission failed: Invalid partition name specified", "", 1),
        ("sbatch: error: Slurm job queue full, sleeping and retrying", "7\n", 0),
        ("sbatch: error: Socket timed out on send/recv operation", "7\n", 0),
        ("squeue: error: Invalid user: amy", "", 0),
        ("Slurm accounting storage is disabled", "", 1),
        ("the licence server refused the connection: connection refused", "", 1),
        ("", "", 127),
    ],
)
def test_who_answers_or_refuses_is_not_away(stderr: str, stdout: str, status: int) -> None:
    assert not unreachable(ended(("sbatch",), stdout, stderr, status))


def test_a_command_that_is_not_there_is_no_silent_controller() -> None:
    missing = Finished(("squeue",), None, "", os.strerror(2), timed_out=False, seconds=0)
    assert not unreachable(missing)


def _stderrs(name: str, version: str) -> list[str]:
    path = Path(__file__).parents[2] / "data" / "sacct" / version / f"{name}.txt"
    blocks = path.read_text(encoding="utf-8").split("$ ")[1:]
    return [block.partition("--- ")[2] for block in blocks]
