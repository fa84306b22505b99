"""Jobs that make room for better ones: Slurm cancels or requeues them, and each value is measured and counts once."""

from __future__ import annotations

from outerloop_hpc.engine import events as ev
from tests.slurm.project import Project, outcomes_of, values_of
from tests.slurm.requeue import allow_requeue, start_now, wait_requeued

_ENDED = "accounting says PREEMPTED after SIGTERM, and there is no record"


def test_preempted_jobs_are_measured_again_and_count_once(project: Project) -> None:
    """Preempted by cancel; by requeue, which ``--no-requeue`` makes a cancel; and by requeue that somebody allowed."""
    cluster = project.cluster
    project.configure(slurm={"partition": "lowc"})
    project.make()
    cancelled = project.bench(1)
    project.configure(slurm={"partition": "low"})
    refusing, requeued = project.bench(2), project.bench(3)
    project.wait_patients(3)
    jobs = [project.submission(run).job_id for run in (cancelled, refusing, requeued)]
    allow_requeue(project, jobs[2])
    better = cluster.check(
        ["sbatch", "--parsable", "-p", "main", "-w", "n2", "--exclusive", "--chdir=/tmp", "--wrap", "sleep 3000"],
        user="bob",
    ).strip()
    wait_requeued(project, jobs[2])
    project.pass_until(
        lambda: [len(project.state(run).submissions) for run in (cancelled, refusing)] == [2, 2], "two second tries"
    )
    lines = project.rows("reconcile")
    assert {(one["decision"], one["rule"]) for one in lines} == {("alive", "queue.alive")}
    assert all("PENDING" in one["reason"] for one in lines), "the node is taken: nothing of ours can run"
    assert project.patients() == []

    cluster.check(["scancel", better], user="bob")
    start_now(project, jobs[2])
    project.release(3)
    states = project.settle(cancelled, refusing, requeued)
    assert [outcomes_of(state) for state in states] == [[["lost", "done"]], [["lost", "done"]], [["done"]]]
    assert [values_of(state) for state in states] == [{"1": 2.5}, {"2": 5.0}, {"3": 7.5}]
    for run in (cancelled, refusing):
        lost = project.events(run, ev.TryEnded)[0]
        assert (lost.rule, lost.word, lost.node, lost.reason) == ("accounting.ended", "PREEMPTED", "n2", _ENDED)
        assert [one.exclude_nodes for one in project.events(run, ev.SubmissionIntended)] == [(), ()], (
            "n2 is not to blame"
        )
        assert sorted(project.reported(run)) == [("completed", "COMPLETED"), ("failed", "PREEMPTED")]
        assert f"| lost | n2 | `{_ENDED}` |" in cluster.read(f"{project.run_folder(run)}/report.md")
    assert sorted(project.reported(requeued)) == [("completed", "COMPLETED"), ("requeued", "PREEMPTED")]
    totals = {row["run_id"]: (row["attempts"], row["success_rate"]) for row in project.rows("report", "runs")}
    assert [totals[run] for run in (cancelled, refusing, requeued)] == [(2, 0.5), (2, 0.5), (2, 1.0)]
    assert len(project.rows("bench", "history", "demo", "-b", "patient")) == 3
    assert len(project.bought()) == 5
