"""People cancel, resume and end: a run that a person touched waits for a person and says who did what."""

from __future__ import annotations

from outerloop_hpc.engine import events as ev
from tests.cluster.configuration import NODES
from tests.cluster.daemons import USERS
from tests.slurm.project import Project, outcomes_of, values_of

_BY_ALICE = f"by uid {USERS['alice']}"


def test_a_cancelled_element_parks_its_run_until_a_person_resumes_it(project: Project) -> None:
    project.make()
    run = project.bench(1, 2)
    project.wait_patients(2)
    project.cluster.check(["scancel", f"{project.submission(run).job_id}_1"], user="alice")
    project.wait(lambda: len(project.patients()) == 1, "the end of the cancelled element")
    project.settle(run, phase="parked")
    (row,) = project.rows("runs", "list")
    assert (row["phase"], row["run"]) == ("parked", run)
    assert "somebody cancelled" in row["reason"]
    assert _BY_ALICE in row["reason"]
    assert project.tool("advance", run).status == 20
    assert len(project.bought()) == 1, "a parked run must buy nothing"

    project.done("runs", "resume", run, "--reason", "by mistake")
    project.pass_until(lambda: len(project.state(run).submissions) == 2, "a second submission")
    project.release(2)
    (state,) = project.settle(run)
    assert outcomes_of(state) == [["done"], ["cancelled", "done"]]
    assert values_of(state) == {"1": 2.5, "2": 5.0}
    decided = project.events(run, ev.PersonDecided)
    assert [(one.action, one.who, one.reason) for one in decided] == [("resume", "alice", "by mistake")]
    assert len(project.bought()) == 2
    assert sorted(project.reported(run)) == [("cancelled", "CANCELLED"), *[("completed", "COMPLETED")] * 2]
    report = project.cluster.read(f"{project.run_folder(run)}/report.md")
    assert "2 of 2 seeds measured" in report
    assert f"accounting says CANCELLED {_BY_ALICE}" in report


def cancelled(project: Project, job: str) -> int:
    """How many elements of an array accounting calls cancelled."""
    states = project.cluster.check(["sacct", "-n", "-P", "-X", "-j", job, "-o", "state,end"]).splitlines()
    return sum(1 for line in states if line.startswith("CANCELLED") and not line.endswith("Unknown"))


def test_an_array_cancelled_by_root_says_so_and_can_be_ended(project: Project) -> None:
    project.make()
    run = project.bench(1, 2)
    project.wait_patients(2)
    job = project.submission(run).job_id
    project.cluster.check(["scancel", job])
    project.wait(lambda: not project.cluster.jobs() and cancelled(project, job) == 2, "both elements to be over")
    (state,) = project.settle(run, phase="parked")
    assert outcomes_of(state) == [["cancelled"], ["cancelled"]]
    assert state.parked is not None
    assert state.parked.question == (
        f"somebody cancelled 2 measurements: `outerloop-hpc runs resume {run} --reason …` to measure again, "
        f"or `outerloop-hpc runs end {run} --reason …`"
    )
    assert "by uid 0" in state.parked.reason

    project.done("runs", "end", run, "--reason", "root knows why")
    (state,) = project.settle(run)
    assert state.ended is not None
    assert (state.ended.ending, state.ended.reason) == ("operator", "alice: root knows why")
    report = project.cluster.read(f"{project.run_folder(run)}/report.md")
    assert "root knows why" in report
    assert "CANCELLED by uid 0" in report
    (archive,) = project.archived(run).values()
    assert {row["State"] for row in archive["rows"] if "." not in row["JobID"]} == {"CANCELLED by 0"}
    assert project.reported(run) == [("cancelled", "CANCELLED")] * 2
    assert len(project.bought()) == 1


def test_ending_a_run_cancels_its_running_jobs(project: Project) -> None:
    project.make()
    run = project.bench(1, 2, 3)
    project.release(1, of=3)
    project.pass_until(lambda: ["done"] in outcomes_of(project.state(run)), "one measured seed")
    project.done("runs", "end", run, "--reason", "enough")
    (state,) = project.settle(run)
    assert sorted(outcomes_of(state)) == [["done"], ["withdrawn"], ["withdrawn"]]
    assert project.patients() == []
    assert project.cluster.jobs() == []


def test_a_cancelled_pending_job_parks_its_run(project: Project) -> None:
    cluster = project.cluster
    nodes = ",".join(NODES)
    project.make()
    cluster.check(["scontrol", "update", f"nodename={nodes}", "state=drain", "reason=test"])
    try:
        run = project.bench(1, 2, benchmark="quick")
        job = project.submission(run).job_id
        project.wait(lambda: bool(cluster.jobs()), "the job in the queue")
        (row,) = project.rows("runs", "list")
        assert row["phase"] == "running"
        cluster.check(["scancel", job], user="alice")
        (state,) = project.settle(run, phase="parked")
    finally:
        cluster.check(["scontrol", "update", f"nodename={nodes}", "state=resume"])
    assert outcomes_of(state) == [["cancelled"], ["cancelled"]]
    assert state.parked is not None
    assert _BY_ALICE in state.parked.reason
    project.done("runs", "resume", run, "--reason", "there is room again")
    (state,) = project.settle(run)
    assert values_of(state) == {"1": 2.5, "2": 5.0}
    # A job that never ran has no eligible time in 26.05, so that sacct shows it by its id alone, not in a window.
    project.wait(lambda: len({job, *project.bought()}) == 2, "accounting of the second array")
    (reported, *_) = [row for row in project.rows("report", "jobs") if row["state"] == "CANCELLED"]
    assert (reported["outcome"], reported["elapsed_s"], reported["cpu_hours"]) == ("cancelled", None, None)
