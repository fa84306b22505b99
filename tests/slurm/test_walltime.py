"""A job reaches its walltime: by its own deadline in good order, or killed by Slurm when it cannot act any more."""

from __future__ import annotations

import signal

from outerloop_hpc.engine import events as ev
from tests.cluster.frozen import Frozen
from tests.slurm.project import Project, outcomes_of


def test_a_job_at_its_walltime_ends_itself_or_is_killed_and_is_timed_out_either_way(project: Project) -> None:
    """One minute each: one job has its own deadline, one hangs, past any signal, until Slurm kills it, and one was
    stopped and is woken by Slurm a few seconds before it is killed."""
    project.make()
    project.done("init")
    job = f"{project.state_root}/jobs/measure.toml"
    # One second of lead: Slurm's warning counts only in the last seconds, after the job's own deadline.
    definition = project.cluster.read(job).replace("overhead_minutes = 5", "overhead_minutes = 0")
    definition = definition.replace("signal_lead_s = 120", "signal_lead_s = 1")
    project.cluster.write(job, definition, user="alice")
    # Each is held as soon as it has begun: it must not come to its own deadline while others begin.
    killed = _started(project, 2)
    with Frozen(project.process_of(project.holder(killed)).host_pid) as hanging:
        woken = _started(project, 3)
        project.process_of(project.holder(woken)).kill(signal.SIGSTOP)
        itself = _started(project, 1)
        project.pass_until(lambda: outcomes_of(project.state(itself)) == [["timed_out"]], "the end of the first")
        assert outcomes_of(project.state(killed)) == [["open"]]
        project.wait(hanging.gone, "Slurm to kill it")
    states = project.settle(itself, killed, woken)

    assert [outcomes_of(one) for one in states] == [[["timed_out"]]] * 3
    (own,), (slurms,) = project.events(itself, ev.TryEnded), project.events(killed, ev.TryEnded)
    assert (own.rule, "deadline" in own.reason) == ("record.final", True)
    assert (slurms.rule, slurms.word) == ("accounting.ended", "TIMEOUT")
    (late,) = project.events(woken, ev.TryEnded)
    assert (late.rule, late.word) in {("record.final", ""), ("accounting.ended", "TIMEOUT")}
    for run, reason in ((itself, own.reason), (killed, slurms.reason), (woken, late.reason)):
        ended = project.state(run).ended
        assert ended is not None
        assert (ended.ending, ended.result["values"]) == ("failed", {})
        assert reason in ended.reason
        assert reason in project.cluster.read(f"{project.run_folder(run)}/report.md")
    (allocation, *_), (over, *_) = (next(iter(project.archived(run).values()))["rows"] for run in (itself, killed))
    assert allocation["State"] == "COMPLETED", "Slurm had to end it"
    assert allocation["TimelimitRaw"] == "1"
    assert int(allocation["ElapsedRaw"]) >= 40, "Slurm's early warning cut it short"
    assert over["State"] == "TIMEOUT"
    assert int(over["ElapsedRaw"]) >= 60
    assert project.reported(killed) == [("failed", "TIMEOUT")]
    assert {row["ending"] for row in project.rows("runs", "list", "--all")} == {"failed"}
    project.done("reconcile")
    assert len(project.bought()) == 3, "what timed out once would do so again: a person has to ask for it"


def _started(project: Project, seed: int) -> str:
    """Ask for a run and wait until its job has begun."""
    run = project.bench(seed, benchmark="endless")
    claim = f"{project.run_folder(run)}/tries/{project.submission(run).name}/e0000.claim.json"
    project.wait(lambda: project.cluster.run(["test", "-e", claim]).ok, f"the job of {run}")
    return run
