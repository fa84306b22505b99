"""Whatever kills or doubles a pass, each piece of work is bought once and ends the same."""

from __future__ import annotations

import json
import signal

from outerloop_hpc.engine import events as ev
from tests.slurm.project import Project, outcomes_of, values_of


def test_two_ticks_at_the_same_moment_submit_one_array(project: Project) -> None:
    project.configure(bench={"seeds": 3})
    project.make()
    meeting = f"{project.folder}/meeting"
    both = [project.start_script("together", "2", meeting) for _ in range(2)]
    said = []
    for one in both:
        finished = one.wait(500)
        assert finished.ok, finished.stdout + finished.stderr
        said.append(json.loads(finished.stdout))
    assert sorted(one["submitted"] for one in said) == [0, 1]
    assert [one["faults"] for one in said] == [[], []]
    (run,) = project.runs()
    (state,) = project.settle(run)
    assert outcomes_of(state) == [["done"]] * 3, project.done("explain", run)
    assert len(project.bought()) == 1


#: Where a tick dies, by target: (before or after, kind of effect, what it is about).
_DEATHS = {
    "claimed": ("after", "publish", r"/claims/claimed/"),
    "intended": ("after", "publish", r"/benchmark-intended-.*/journal/00000001\.json$"),
    "submitted": ("before", "publish", r"/benchmark-submitted-.*/journal/00000002\.json$"),
    "wound": ("after", "publish", r"/benchmark-wound-.*/journal/00000002\.json$"),
}


def test_a_tick_killed_at_any_point_loses_nothing_and_buys_nothing_twice(project: Project) -> None:
    project.targets = ("reference", *_DEATHS)
    project.configure(bench={"seeds": 2})
    project.make()
    for when, kind, pattern in _DEATHS.values():
        killed = project.script("crashing", when, kind, pattern, "tick")
        assert killed.status == -signal.SIGKILL, f"{pattern}: {killed.stdout}{killed.stderr}"
    runs = {target: project.run_of(target) for target in ("reference", *list(_DEATHS)[1:])}
    project.done("tick")
    runs["claimed"] = project.run_of("claimed")
    states = dict(zip(runs, project.settle(*runs.values()), strict=True))
    measured = {target: sorted(values_of(state).values()) for target, state in states.items()}
    for target, run in runs.items():
        jobs = project.bought(f"ol.{target}.measure")
        assert len(jobs) == 1, f"{target}: {jobs}\n{project.done('explain', run)}"
        assert len(measured[target]) == 2
        assert project.events(run, ev.RunEnded)[0].ending == "measured"
    assert outcomes_of(states["intended"]) == [["abandoned", "done"]] * 2
    assert [outcomes_of(states[target]) for target in ("claimed", "submitted", "wound")] == [[["done"]] * 2] * 3
    adopted = {run: [one.adopted for one in project.events(run, ev.SubmissionBound)] for run in runs.values()}
    assert adopted[runs["submitted"]] == [True]
    assert adopted[runs["wound"]] == [False]
    (archive,) = project.archived(runs["submitted"]).values()
    assert (archive["note"], len([row for row in archive["rows"] if "." not in row["JobID"]])) == ("", 2)


def test_a_job_killed_before_its_record_is_tried_again_and_ends_the_same(project: Project) -> None:
    project.make()
    run = project.bench(3, 4)
    project.wait_patients(2)
    project.kill_job(project.holder(run, 0))
    project.pass_until(lambda: len(project.state(run).submissions) == 2, "a second submission")
    project.release(2)
    (state,) = project.settle(run)
    assert outcomes_of(state) == [["lost", "done"], ["done"]]
    assert values_of(state) == {"3": 7.5, "4": 10.0}
    lost = project.events(run, ev.TryEnded)[0]
    assert (lost.outcome, lost.rule) == ("lost", "accounting.ended"), lost
    assert len(project.bought()) == 2
