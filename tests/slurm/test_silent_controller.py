"""slurmctld goes silent between a pass's look and its acts: it hangs on to what reaches it, or it is really gone."""

from __future__ import annotations

import signal
from datetime import UTC, datetime, timedelta

from outerloop_hpc.engine import events as ev
from tests.slurm.held import held
from tests.slurm.project import Project, outcomes_of, values_of

_MINUTE = timedelta(seconds=60)


def test_what_reached_a_hanging_controller_is_adopted_once_when_it_goes_on(project: Project) -> None:
    """It stops right before sbatch: that hangs until the tool gives it up, and the cancel is not even started."""
    cluster = project.cluster
    project.configure(slurm={"submit_timeout_s": 5})
    project.make()
    measured = project.bench(1)
    project.wait_patients(1)
    (patient,) = project.patients()
    stopped = project.bench(2)
    project.wait_patients(2)
    project.done("runs", "end", stopped, "--reason", "enough")
    with held(project, ("before", "command", "^sbatch$"), "tick") as tick:
        cluster.controller_freeze()
        said = tick.finish(75)
    project.configure(slurm={"timeout_s": 3})
    late = project.runs()[-1]
    (submission,) = project.state(late).submissions.values()
    assert submission.status == "intended"
    assert f"{submission.name}: may or may not have been submitted: sbatch: did not answer in time" in said.stderr
    assert "not cancelled yet" in said.stderr

    patient.kill(signal.SIGUSR1)
    project.pass_until(lambda: outcomes_of(project.state(measured)) == [["done"]], "the record", statuses=(75,))
    silent = {row["run"]: row["rule"] for row in project.rows("reconcile", status=75)}
    assert (silent[late], silent[stopped]) == ("submission.unknown", "queue.unavailable")

    cluster.controller_thaw()
    project.configure(slurm={"timeout_s": 60, "submit_timeout_s": 180})
    project.wait(lambda: len(project.bought()) == 3, "what reached the controller")
    states = project.settle(measured, stopped, late)
    assert [outcomes_of(state) for state in states] == [[["done"]], [["withdrawn"]], [["done"]] * 5]
    assert values_of(states[0]) == {"1": 2.5}
    assert len(values_of(states[2])) == 5
    assert [one.adopted for one in project.events(late, ev.SubmissionBound)] == [True]
    assert len(project.bought()) == 3, "the hanging submission was made twice"
    outcomes = sorted(row["outcome"] for row in project.rows("report", "jobs"))
    assert outcomes == ["cancelled", *["completed"] * 6]
    assert project.tool("reconcile").status == 0


def test_a_controller_that_is_gone_for_a_minute_changes_nothing_until_it_answers(project: Project) -> None:
    """It goes in the middle of a pass, before its submission. Running, ended by a person, and wanted only now."""
    cluster = project.cluster
    project.make()
    stopped = project.bench(2, 3, 4)
    project.release(1, of=3)
    project.pass_until(lambda: ["done"] in outcomes_of(project.state(stopped)), "a record")
    running = project.bench(1)
    project.wait_patients(3)
    project.done("runs", "end", stopped, "--reason", "enough")
    project.hurry()
    with held(project, ("before", "command", "^sbatch$"), "tick") as tick:
        cluster.controller_down()
        gone = datetime.now(UTC)
        said = tick.finish(75)
    late = project.runs()[-1]
    (submission,) = project.state(late).submissions.values()
    assert submission.status == "intended"
    assert f"{submission.name}: may or may not have been submitted" in said.stderr
    assert project.state(stopped).phase == "ended"
    seen = project.state(running)
    assert project.tool("tick").status == 75
    assert project.state(running) == seen, "silence was taken for news"

    project.release(3)
    project.pass_until(lambda: outcomes_of(project.state(running)) == [["done"]], "the record", statuses=(75,))
    project.pass_until(lambda: datetime.now(UTC) - gone > _MINUTE, "a minute of silence", statuses=(75,))
    phases = {row["run"]: row["phase"] for row in project.rows("runs", "list")}
    assert [phases[run] for run in (running, stopped, late)] == ["ended", "ended", "running"]
    assert project.state(late).submissions == {submission.name: submission}, "it was given up without any answer"

    cluster.controller_up()
    project.take_time()
    states = project.settle(running, stopped, late)
    assert values_of(states[0]) == {"1": 2.5}
    assert states[1].ended is not None
    assert states[1].ended.ending == "operator"
    assert outcomes_of(states[2]) == [["abandoned", "done"]] * 5
    assert len(values_of(states[2])) == 5
    assert len(project.bought()) == 3
    outcomes = sorted(row["outcome"] for row in project.rows("report", "jobs"))
    assert outcomes == [*["completed"] * 9, *["rejected"] * 5], "what never reached Slurm is told as such"
    assert project.tool("reconcile").status == 0
