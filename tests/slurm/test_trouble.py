"""Trouble that stays with one run: an unreadable record, a refusal by Slurm."""

from __future__ import annotations

import itertools

from outerloop_hpc.engine import events as ev
from tests.slurm.project import Project, outcomes_of, values_of


def test_an_unreadable_record_blocks_its_own_run_only(project: Project) -> None:
    project.make()
    broken, sound = project.bench(1), project.bench(2)
    project.wait_patients(2)
    record = f"{project.run_folder(broken)}/tries/{project.submission(broken).name}/e0000.record.json"
    project.cluster.write(record, '{"schema": "record/1", "run":', user="alice")
    project.release(2)
    (state,) = project.settle(sound, statuses=(0, 4))
    assert values_of(state) == {"2": 5.0}

    finished = project.tool("reconcile")
    assert finished.status == 4
    assert record in finished.stderr
    assert outcomes_of(project.state(broken)) == [["open"]]
    (row,) = [row for row in project.rows("explain", broken) if row["event"] == "submission.bound"]
    assert row
    assert record in project.done("explain", broken)

    # Its job found the name taken and dropped its result; without the file it is a job that left nothing.
    project.wait(lambda: not project.cluster.jobs(), "the end of both jobs")
    project.cluster.check(["rm", record], user="alice")
    project.pass_until(lambda: len(project.state(broken).submissions) == 2, "a second try")
    project.release(1)
    (state,) = project.settle(broken)
    assert outcomes_of(state) == [["lost", "done"]]
    assert values_of(state) == {"1": 2.5}


def test_a_refused_submission_is_told_counts_for_nothing_and_is_repeated(project: Project) -> None:
    project.configure(slurm={"partition": "nowhere"}, bench={"seeds": 2})
    project.make()
    refused = project.json("tick", status=4)
    run = project.run_of("demo")
    assert refused["submitted"] == 0
    assert [problem for problem in refused["problems"] if "invalid partition" in problem]
    project.pass_until(lambda: len(project.events(run, ev.SubmissionRefused)) >= 3, "refusals", (0, 4))
    times = [
        one.at for one in project.transactions(run) if any(isinstance(e, ev.SubmissionIntended) for e in one.events)
    ]
    pauses = [(later - earlier).total_seconds() for earlier, later in itertools.pairwise(times)]
    assert [pause >= wanted for pause, wanted in zip(pauses, (1, 2), strict=False)] == [True] * 2, pauses
    assert project.state(run).phase == "running"

    project.configure(slurm={"partition": "main"})
    (state,) = project.settle(run)
    refusals = len(project.events(run, ev.SubmissionRefused))
    assert outcomes_of(state) == [["refused"] * refusals + ["done"]] * 2
    assert all(step.counted() == 0 for step in state.steps.values())
    assert len(values_of(state)) == 2
