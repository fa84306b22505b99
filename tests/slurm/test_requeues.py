"""A job that is requeued behind the tool's back: its try goes on, and nothing that it measured counts twice."""

from __future__ import annotations

from outerloop_hpc.engine import events as ev
from tests.cluster.daemons import USERS
from tests.slurm.project import Project, outcomes_of, values_of
from tests.slurm.requeue import allow_requeue, requeue, start_now


def test_a_running_element_that_is_requeued_goes_on_as_the_same_try(project: Project) -> None:
    """Slurm refuses it, since the tool submits with ``--no-requeue``, until somebody changes the job."""
    project.make()
    run = project.bench(1, 2)
    project.wait_patients(2)
    (job, element) = project.submission(run).job_id, f"{project.submission(run).job_id}_1"
    refused = project.cluster.run(["scontrol", "requeue", element])
    assert (refused.status, "presently disabled" in refused.stderr) == (1, True), refused.stderr
    assert len(project.patients()) == 2

    allow_requeue(project, element)
    requeue(project, element)
    project.wait_patients(1)
    (line,) = [row for row in project.rows("reconcile") if "PENDING" in row["reason"]]
    assert (line["decision"], line["rule"]) == ("alive", "queue.alive")
    project.release(1)
    project.pass_until(lambda: outcomes_of(project.state(run)) == [["done"], ["open"]], "the other element's record")
    start_now(project, element)
    project.release(1)
    (state,) = project.settle(run)
    assert outcomes_of(state) == [["done"], ["done"]]
    assert values_of(state) == {"1": 2.5, "2": 5.0}
    assert project.bought() == [job]
    ended = project.events(run, ev.TryEnded)
    assert {one.rule for one in ended} == {"record.final"}
    assert sorted(project.reported(run)) == [("completed", "COMPLETED")] * 2 + [("requeued", "REQUEUED")]
    (totals,) = project.rows("report", "runs")
    assert (totals["attempts"], totals["completed"], totals["requeued"], totals["success_rate"]) == (3, 2, 1, 1.0)
    report = project.cluster.read(f"{project.run_folder(run)}/report.md")
    assert "2 of 2 seeds measured" in report
    assert report.count("the job's record says completed") == 2


def test_a_completed_job_that_is_requeued_measures_nothing_again(project: Project) -> None:
    """Once before any pass has seen its end, and once when its run is closed and its folder cleared away."""
    project.make()
    unseen, closed = project.bench(1), project.bench(2)
    jobs = {run: project.submission(run).job_id for run in (unseen, closed)}
    project.wait_patients(2)
    for job in jobs.values():
        allow_requeue(project, job)
    project.release(2)
    project.wait(lambda: not project.cluster.jobs(), "the end of both jobs")
    requeue(project, jobs[unseen])
    project.settle(closed)
    before = project.document(unseen, f"tries/{project.submission(unseen).name}/e0000.record.json")
    state = project.state(unseen)
    assert (state.phase, values_of(state)) == ("ended", {"1": 2.5}), "closed while its job was still to run again"
    assert project.reported(closed) == [("completed", "COMPLETED")]

    requeue(project, jobs[closed])
    for job in jobs.values():
        start_now(project, job)
    project.wait(lambda: not project.cluster.jobs(), "the end of both jobs, again")
    (state,) = project.settle(unseen)
    assert outcomes_of(state) == [["done"]]
    assert project.document(unseen, f"tries/{project.submission(unseen).name}/e0000.record.json") == before
    assert [one for one, _ in project.reported(unseen)] == ["requeued", "completed"]
    assert project.reported(closed) == [("completed", "COMPLETED")]
    assert [values_of(project.state(run)) for run in (unseen, closed)] == [{"1": 2.5}, {"2": 5.0}]
    assert project.json("reconcile")["live"] == 0
    assert len(project.rows("bench", "history", "demo", "-b", "patient")) == 2
    assert project.bought() == sorted(jobs.values(), key=int)
    rows = project.cluster.check(["sacct", "-n", "-P", "-X", "-j", jobs[closed], "-o", "state,elapsedraw"])
    word, elapsed = rows.strip().split("|")
    assert word == "FAILED", "without its folder there was nothing to carry out"
    # submitit waits a minute for its file.
    assert int(elapsed) < 55, "it held its allocation, waiting for a file that nobody writes"


def test_a_requeued_job_that_is_cancelled_while_it_waits_parks_its_run(project: Project) -> None:
    """Accounting keeps the row of the first execution, REQUEUED; only the row of the second one says who cancelled."""
    project.configure(reconcile={"soft_window_s": 60})
    project.make()
    run = project.bench(1)
    project.wait_patients(1)
    job = project.submission(run).job_id
    allow_requeue(project, job)
    requeue(project, job)
    assert project.rows("reconcile")[0]["rule"] == "queue.alive"
    project.cluster.check(["scancel", job], user="alice")
    (state,) = project.settle(run, phase="parked")
    assert outcomes_of(state) == [["cancelled"]]
    assert state.parked is not None
    assert "somebody cancelled the measurement" in state.parked.question
    assert f"by uid {USERS['alice']}" in state.parked.reason
    assert project.bought() == [job]
    project.done("runs", "resume", run, "--reason", "by mistake")
    project.pass_until(lambda: len(project.state(run).submissions) == 2, "a second submission")
    project.release(1)
    (state,) = project.settle(run)
    assert (outcomes_of(state), values_of(state)) == ([["cancelled", "done"]], {"1": 2.5})
    assert sorted(project.reported(run)) == [
        ("cancelled", "CANCELLED"),
        ("completed", "COMPLETED"),
        ("requeued", "REQUEUED"),
    ]
