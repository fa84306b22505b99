"""A node loses power under running jobs: what was on it is lost or comes back, by Slurm's word, and counts once."""

from __future__ import annotations

from outerloop_hpc.engine import events as ev
from tests.slurm.project import Project, outcomes_of, values_of
from tests.slurm.requeue import allow_requeue, start_now, wait_requeued


def test_jobs_of_a_crashed_node_are_tried_elsewhere_or_go_on_where_slurm_requeues_them(project: Project) -> None:
    cluster = project.cluster
    project.make()
    cluster.check(["scontrol", "update", "nodename=n2,n3", "state=drain", "reason=test"])
    try:
        lost, requeued = project.bench(1), project.bench(2)
        project.wait_patients(2)
    finally:
        cluster.check(["scontrol", "update", "nodename=n2,n3", "state=resume"])
    again = project.submission(requeued).job_id
    allow_requeue(project, again)
    cluster.node_crash("n1")
    lines = project.rows("reconcile")
    assert [one["rule"] for one in lines] == ["queue.alive"] * 2, "nobody has noticed yet, so nothing may be concluded"
    cluster.node_up("n1")
    wait_requeued(project, again)
    project.pass_until(lambda: len(project.state(lost).submissions) == 2, "a second try")
    project.release(1)
    (state,) = project.settle(lost)
    assert outcomes_of(project.state(requeued)) == [["open"]], "NODE_FAIL of a job that waits to run again is no end"
    start_now(project, again)
    project.release(1)
    (other,) = project.settle(requeued)

    assert [outcomes_of(one) for one in (state, other)] == [[["lost", "done"]], [["done"]]]
    assert [values_of(one) for one in (state, other)] == [{"1": 2.5}, {"2": 5.0}]
    first = project.events(lost, ev.TryEnded)[0]
    assert (first.rule, first.word, first.node) == ("accounting.ended", "NODE_FAIL", "n1")
    assert [one.exclude_nodes for one in project.events(lost, ev.SubmissionIntended)] == [(), ("n1",)]
    assert sorted(project.reported(lost)) == [("completed", "COMPLETED"), ("failed", "NODE_FAIL")]
    assert sorted(project.reported(requeued)) == [("completed", "COMPLETED"), ("requeued", "NODE_FAIL")]
    report = cluster.read(f"{project.run_folder(lost)}/report.md")
    assert "| lost | n1 | `accounting says NODE_FAIL after it had started, and there is no record` |" in report
    assert len(project.bought()) == 3
