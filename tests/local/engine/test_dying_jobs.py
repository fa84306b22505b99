"""Jobs that are killed, cancelled, or lose their node under the embedded default; and what a person says to that."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from outerloop_hpc.slurm.localjobs import LocalJob
from outerloop_hpc.slurm.processes import process_id
from outerloop_hpc.slurm.processid import ProcessId
from tests.local.driver import Driver
from tests.local.site import PATIENT_CONTRACT, new_site, outcome, tiny_target, wait_for

pytestmark = pytest.mark.local

#: Waits for a file named GO beside the target; its absence is how a test holds the benchmark.
HELD = """\
import json, os, pathlib, time
seed = int(os.environ["SEED"])
gate = pathlib.Path(GATE)
(gate / f"begun-{seed}").touch()
while not (gate / "go").exists():
    time.sleep(0.02)
print(json.dumps({"score": seed % 1000}))
"""


class Held:
    """A site whose measurements wait at a gate."""

    def __init__(self, folder: Path, driver: Driver) -> None:
        self.gate = folder / "gate"
        self.gate.mkdir()
        source = tiny_target(folder / "tiny", HELD.replace("GATE", repr(str(self.gate))), PATIENT_CONTRACT)
        self.site = new_site(folder / "site", targets={"tiny": source}, driver=driver)

    def begun(self) -> int:
        return len(list(self.gate.glob("begun-*")))

    def start(self) -> str:
        """Make a tick and wait until both measurements are under way; returns the run."""
        self.site.cli("tick")
        wait_for(lambda: self.begun() == 2, "both measurements have begun")
        return self.site.run_folder().name

    def again(self) -> None:
        """Forget who had begun."""
        for mark in self.gate.glob("begun-*"):
            mark.unlink()

    def open(self) -> None:
        (self.gate / "go").touch()

    def job(self) -> LocalJob:
        (job,) = self.site.local_jobs()
        return job


@pytest.fixture
def held(tmp_path: Path, driver: Driver) -> Iterator[Held]:
    held = Held(tmp_path, driver)
    yield held
    held.open()
    held.site.stop_jobs()


def lives(process: ProcessId) -> bool:
    return bool(process_id(process.pid) == process)


def kill(process: ProcessId | None, number: int = signal.SIGKILL) -> None:
    assert process is not None
    assert lives(process)
    os.kill(process.pid, number)


def tries(held: Held, run: str) -> list[tuple[int, str, str]]:
    return [(row["try"], row["outcome"], row["rule"]) for row in held.site.rows("runs", "show", run)]


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory, driver: Driver) -> dict[str, object]:
    """Return the outcome of the same run when nothing happens to it."""
    held = Held(tmp_path_factory.mktemp("calm"), driver)
    held.open()
    held.site.cli("tick")
    held.site.until_closed()
    return outcome(held.site)


def test_a_job_killed_before_its_record_is_measured_again(held: Held, calm: dict[str, object]) -> None:
    run = held.start()
    kill(held.job().started[0][0])
    wait_for(lambda: 0 in held.job().ended, "the controller noticed")
    held.site.cli("reconcile")
    held.open()
    held.site.until_closed()
    assert sorted(tries(held, run)) == [
        (1, "done", "record.final"),
        (1, "lost", "accounting.ended"),
        (2, "done", "record.final"),
    ]
    assert outcome(held.site) == {**calm, "started": [3]}
    states = {row["state"] for row in held.site.rows("report", "jobs")}
    assert states == {"COMPLETED", "FAILED"}


def test_a_lost_node_gives_a_new_try_and_the_same_numbers(held: Held, calm: dict[str, object]) -> None:
    run = held.start()
    job = held.job()
    for process in (job.controller, *(started for started, _ in job.started.values())):
        kill(process)
    held.site.cli("reconcile")
    rows = held.site.rows("runs", "show", run)
    assert [row["outcome"] for row in rows if row["try"] == 1] == ["lost", "lost"]
    assert all("NODE_FAIL" in row["reason"] for row in rows if row["try"] == 1)
    assert [row["outcome"] for row in rows if row["try"] == 2] == [None, None]
    held.open()
    held.site.until_closed()
    assert outcome(held.site) == {**calm, "started": [4]}
    assert "NODE_FAIL" in (held.site.run_folder() / "report.md").read_text(encoding="utf-8")


def test_elements_outlive_a_killed_controller_and_their_records_count(held: Held, calm: dict[str, object]) -> None:
    run = held.start()
    kill(held.job().controller)
    held.site.cli("reconcile")
    assert [row["outcome"] for row in held.site.rows("runs", "show", run)] == [None, None]
    held.open()
    held.site.until_closed()
    assert tries(held, run) == [(1, "done", "record.final")] * 2
    assert outcome(held.site) == calm


def test_ending_a_run_also_ends_elements_that_outlived_their_controller(held: Held) -> None:
    run = held.start()
    job = held.job()
    kill(job.controller)
    held.site.cli("runs", "end", run, "--reason", "wrong commit")
    held.site.until_closed()
    assert not any(lives(process) for process, _ in job.started.values())
    assert {row["outcome"] for row in held.site.rows("runs", "show", run)} == {"lost"}


def test_a_job_cancelled_by_a_person_parks_the_run_until_it_is_resumed(held: Held, calm: dict[str, object]) -> None:
    run = held.start()
    kill(held.job().controller, signal.SIGTERM)
    wait_for(held.site.elements_ended, "the controller cancelled its elements")
    held.site.cli("reconcile", expect=(20,))

    (listed,) = held.site.rows("runs", "list")
    assert listed["phase"] == "parked"
    assert f"runs resume {run}" in listed["reason"]
    assert "CANCELLED by" in listed["reason"]
    assert "waits for a person" in held.site.cli("runs", "show", run).out
    assert "run.parked" in held.site.cli("explain", run).out
    held.site.cli("advance", run, expect=(20,))
    assert len(held.site.local_jobs()) == 1, "a parked run submits nothing"

    held.again()
    held.site.cli("runs", "resume", run, "--reason", "a mistake")
    held.site.cli("advance", run, expect=(10,))
    wait_for(lambda: held.begun() == 2, "both measurements have begun again")
    held.open()
    held.site.until_closed()
    assert {outcome for number, outcome, _ in tries(held, run) if number == 1} == {"cancelled"}
    assert {outcome for number, outcome, _ in tries(held, run) if number == 2} == {"done"}
    assert outcome(held.site) == {**calm, "started": [4]}


def test_a_parked_run_can_be_ended_and_leaves_a_report(held: Held) -> None:
    run = held.start()
    kill(held.job().controller, signal.SIGTERM)
    wait_for(held.site.elements_ended, "the controller cancelled its elements")
    held.site.cli("reconcile", expect=(20,))
    held.site.cli("runs", "end", run, "--reason", "no longer wanted")
    held.site.until_closed()
    (ended,) = held.site.rows("runs", "list", "--all")
    assert (ended["phase"], ended["ending"]) == ("closed", "operator")
    report = (held.site.run_folder() / "report.md").read_text(encoding="utf-8")
    assert "**operator**" in report
    assert "no longer wanted" in report
    assert "CANCELLED by" in report
    held.site.cli("runs", "resume", run, "--reason", "too late", expect=(2,))
    assert held.site.rows("tick", "--dry-run") == [], "an order that a person ended is not taken up again"


def test_ending_a_running_run_cancels_its_jobs(held: Held) -> None:
    run = held.start()
    held.site.cli("runs", "end", run, "--reason", "wrong commit")
    held.site.until_closed()
    assert {row["outcome"] for row in held.site.rows("runs", "show", run)} == {"withdrawn"}
    assert {row["state"] for row in held.site.rows("report", "jobs")} == {"CANCELLED"}
    assert held.site.jobs_gone()
