"""The counter of job ids begins anew: a row with the right id and the wrong name says nothing about a job of ours."""

from __future__ import annotations

from outerloop_hpc.engine import events as ev
from tests.cluster.cluster import Cluster
from tests.slurm.project import Project, outcomes_of, values_of


def start_job(cluster: Cluster, user: str, script: str) -> str:
    """Submit somebody's own job; returns its id."""
    argv = ["sbatch", "--parsable", "--chdir=/tmp", "-J", "own", "--wrap", script]
    return cluster.check(argv, user=user).strip()


def wait_state(project: Project, job: str, word: str) -> None:
    """Wait until accounting has a row of this id with this state and the name of its job."""
    argv = ["sacct", "-n", "-P", "-X", "-D", "-j", job, "-o", "state,jobname"]

    def seen() -> bool:
        rows = project.cluster.check(argv).splitlines()
        return any(row.startswith(word) and not row.endswith("|allocation") for row in rows)

    project.wait(seen, f"{word} of job {job} in accounting")


def test_rows_of_earlier_jobs_with_the_same_ids_conclude_nothing(project: Project) -> None:
    """One of bob's that failed, one of alice's own that she cancelled, and for a while nothing else is known."""
    cluster = project.cluster
    project.make()
    failed = start_job(cluster, "bob", "exit 3")
    cancelled = start_job(cluster, "alice", "sleep 3000")
    wait_state(project, cancelled, "RUNNING")
    cluster.check(["scancel", cancelled], user="alice")
    wait_state(project, failed, "FAILED")
    wait_state(project, cancelled, "CANCELLED")
    cluster.wait_idle()
    cluster.reset_job_ids(int(failed), int(failed) + 1000)

    # Jobs that begin and end while accounting is away have no row of their own for seconds after that: the old one
    # answers, alone.
    cluster.accounting_down()
    runs = [project.bench(1), project.bench(2)]
    assert [project.submission(run).job_id for run in runs] == [failed, cancelled]
    project.wait_patients(2)
    for run in runs:
        project.kill_job(project.holder(run))
    project.wait(lambda: not cluster.jobs(), "the end of both jobs")
    assert {row["rule"] for row in project.rows("reconcile", status=75)} == {"accounting.unavailable"}
    cluster.accounting_up()
    project.pass_until(lambda: all(len(project.state(run).submissions) == 2 for run in runs), "two second tries")
    project.release(2)
    states = project.settle(*runs)
    assert [outcomes_of(state) for state in states] == [[["lost", "done"]], [["lost", "done"]]]
    assert [values_of(state) for state in states] == [{"1": 2.5}, {"2": 5.0}]
    for run, stranger in zip(runs, ("belongs to bob", "is named 'own'"), strict=True):
        lost = project.events(run, ev.TryEnded)[0]
        assert (lost.rule, lost.word, lost.evidence["exit_code"]) == ("accounting.ended", "FAILED", [0, 9])
        assert any(stranger in reason for reason in lost.evidence["not_ours"])
        assert stranger in project.done("explain", run)
        assert sorted(project.reported(run)) == [("completed", "COMPLETED"), ("failed", "FAILED")]
        for name, archive in project.archived(run).items():
            assert {row["JobName"] for row in archive["rows"] if "." not in row["JobID"]} == {name}
    assert len({failed, cancelled, *project.bought()}) == 4


def test_jobs_that_got_the_ids_of_lost_ones_are_left_alone(project: Project) -> None:
    """Both of ours died unseen; their ids are by now a job of bob's and another one of alice's, which run."""
    cluster = project.cluster
    project.make()
    lost, given_up = project.bench(1), project.bench(2)
    project.wait_patients(2)
    jobs = [project.submission(run).job_id for run in (lost, given_up)]
    for run in (lost, given_up):
        project.kill_job(project.holder(run))
    for job in jobs:
        wait_state(project, job, "FAILED")
    cluster.wait_idle()
    cluster.reset_job_ids(int(jobs[0]), int(jobs[0]) + 1000)
    assert [start_job(cluster, user, "sleep 3000") for user in ("bob", "alice")] == jobs
    for job in jobs:
        wait_state(project, job, "RUNNING")

    project.done("runs", "end", given_up, "--reason", "enough")
    (state,) = project.settle(given_up)
    assert outcomes_of(state) == [["lost"]]
    assert state.ended is not None
    assert state.ended.ending == "operator"
    assert project.reported(given_up) == [("failed", "FAILED")]
    project.pass_until(lambda: len(project.state(lost).submissions) == 2, "a second try")
    project.release(1)
    (state,) = project.settle(lost)
    assert outcomes_of(state) == [["lost", "done"]]
    assert values_of(state) == {"1": 2.5}
    running = cluster.check(["squeue", "-h", "-t", "RUNNING", "-o", "%i %u %j"]).splitlines()
    assert sorted(running) == sorted([f"{jobs[0]} bob own", f"{jobs[1]} alice own"]), "a job of somebody was cancelled"
