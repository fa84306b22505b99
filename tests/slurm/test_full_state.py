"""The state folder takes nothing more, full or read-only: all is said, nothing is lost, and room mends everything."""

from __future__ import annotations

import pytest

from outerloop_hpc.engine import events as ev
from tests.slurm.disks import SAID, Trouble, state_disk
from tests.slurm.held import held
from tests.slurm.project import Project, outcomes_of, values_of

pytestmark = pytest.mark.parametrize("trouble", ["full", "read-only"])


def test_what_ends_on_a_full_disk_is_kept(project: Project, trouble: Trouble) -> None:
    """Right after an intent was written. One job waits with its result, one is killed while it waits."""
    project.make()
    with state_disk(project) as disk:
        kept, killed = project.bench(1), project.bench(2)
        project.wait_patients(2)
        with held(project, ("after", "publish", r"/journal/00000001\.json$"), "tick") as tick:
            disk.break_down(trouble)
            said = tick.finish(75)
        assert SAID[trouble] in said.stderr
        late = project.runs()[-1]
        (submission,) = project.state(late).submissions.values()
        assert submission.status == "intended"
        seen = [project.state(run) for run in (kept, killed, late)]

        project.release(2)
        project.wait_patients(0)
        project.kill_job(project.holder(killed))
        for order in (["tick"], ["reconcile"], ["runs", "end", late, "--reason", "x"], ["bench", "run", "demo"]):
            done = project.tool(*order)
            assert (done.status, "Traceback" in done.stderr) == (75, False), done.stderr
            assert SAID[trouble] in done.stderr
            assert "nothing was lost" in done.stderr
        assert project.tool("tick", "--dry-run").status == 0, "reading is always possible"
        assert [project.state(run) for run in (kept, killed, late)] == seen
        assert len(project.bought()) == 2

        disk.mend()
        project.pass_until(lambda: len(project.state(killed).submissions) == 2, "a second try")
        project.release(1)
        states = project.settle(kept, killed, late)
        assert [outcomes_of(state) for state in states] == [
            [["done"]],
            [["lost", "done"]],
            [["abandoned", "done"]] * 5,
        ]
        assert [values_of(state) for state in states[:2]] == [{"1": 2.5}, {"2": 5.0}]
        assert len(values_of(states[2])) == 5
        assert len(project.bought()) == 4
        assert {row["run"] for row in project.rows("runs", "list", "--all")} == {kept, killed, late}
        outcomes = {row["outcome"] for row in project.rows("report", "jobs", "--run", killed)}
        assert outcomes == {"failed", "completed"}
        assert project.tool("tick").status == 0
        assert len(project.runs()) == 3


def test_what_begins_on_a_full_disk_is_redone(project: Project, trouble: Trouble) -> None:
    """sbatch has answered, its answer cannot be written down, and the array cannot claim its tries."""
    project.make()
    with state_disk(project) as disk:
        with held(project, ("before", "publish", r"/journal/00000002\.json$"), "tick") as tick:
            disk.break_down(trouble)
            tick.finish(75)
        (run,) = project.runs()
        project.wait(lambda: not project.cluster.jobs() and len(project.bought()) == 1, "the end of the array")
        (array,) = project.bought()
        assert project.tool("reconcile").status == 75
        assert "the scheduler knows a job of this name" in project.done("explain", run)

        disk.mend()
        (state,) = project.settle(run)
        assert outcomes_of(state) == [["lost", "done"]] * 5
        assert len(values_of(state)) == 5
        bound = [(one.job_id, one.adopted) for one in project.events(run, ev.SubmissionBound)]
        assert bound[0] == (array, True)
        assert [adopted for _, adopted in bound] == [True, False]
        assert project.bought() == [job for job, _ in bound]
        rows = project.rows("report", "jobs", "--run", run)
        assert sorted(row["outcome"] for row in rows) == ["completed"] * 5 + ["failed"] * 5
