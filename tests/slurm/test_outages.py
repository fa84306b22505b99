"""Machines and daemons go away under a run: nothing is concluded from silence, and all goes on when they are back."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from outerloop_hpc.engine import events as ev
from outerloop_hpc.engine.layout import parse_run_id
from tests.cluster import rootfs
from tests.cluster.cluster import start
from tests.cluster.configuration import SLURMD_TIMEOUT_S, Settings
from tests.slurm.project import Project, outcomes_of, values_of


def test_a_lost_node_gives_a_new_try_elsewhere_and_the_same_value(project: Project) -> None:
    """First a node that an admin sets down, then one whose slurmd is gone and whose job lives on unseen."""
    cluster = project.cluster
    project.make()
    run = project.bench(8)
    project.wait_patients(1)
    first = project.holder(run)["host"]
    cluster.node_set_down(first)
    project.pass_until(lambda: len(project.state(run).submissions) == 2, "a second try")
    project.wait_patients(1)
    second = project.holder(run)["host"]
    cluster.node_down(second)
    project.wait(lambda: cluster.node_states()[second].startswith("down"), f"{second} given up", 4 * SLURMD_TIMEOUT_S)
    assert len(project.patients()) == 1, "its job should live on, without anybody who could tell"
    project.pass_until(lambda: len(project.state(run).submissions) == 3, "a third try")
    project.release(2)
    (state,) = project.settle(run)
    assert outcomes_of(state) == [["lost", "lost", "done"]]
    assert values_of(state) == {"8": 20.0}
    (step,) = state.steps.values()
    assert [one.word for one in step.tries] == ["NODE_FAIL", "NODE_FAIL", ""]
    assert [one.node for one in step.tries[:2]] == [first, second]
    assert len({one.node for one in step.tries}) == 3
    excluded = [one.exclude_nodes for one in project.events(run, ev.SubmissionIntended)]
    assert excluded == [(), (first,), (second, first)]
    states = [archive["rows"][0]["State"] for archive in project.archived(run).values()]
    assert states == ["NODE_FAIL", "NODE_FAIL", "COMPLETED"]
    assert sorted(project.reported(run)) == [("completed", "COMPLETED"), *[("failed", "NODE_FAIL")] * 2]
    report = cluster.read(f"{project.run_folder(run)}/report.md")
    assert [report.count(f"| lost | {node} | `accounting says NODE_FAIL") for node in (first, second)] == [1, 1]
    assert len(project.bought()) == 3


def test_a_silent_controller_changes_nothing_until_it_answers(project: Project) -> None:
    """Running, ended by a person, and wanted only now: three runs, and no word of Slurm about any of them."""
    cluster = project.cluster
    project.targets = ("demo", "late")
    project.make()
    stopped = project.bench(2, 3, 4)
    project.release(1, of=3)
    project.pass_until(lambda: ["done"] in outcomes_of(project.state(stopped)), "a record")
    running = project.bench(1)
    project.wait_patients(3)
    project.hurry()
    cluster.controller_down()
    project.done("runs", "end", stopped, "--reason", "enough")
    seen = project.state(running)
    assert project.tool("tick").status == 75
    assert project.state(running) == seen, "silence was taken for news"
    assert project.state(stopped).phase == "ended"
    assert {parse_run_id(run).target for run in project.runs()} == {"demo"}, "begun without a controller to run it"
    project.release(3)
    cluster.controller_up()
    project.done("tick")
    late = project.run_of("late")
    states = project.settle(running, stopped, late)
    assert values_of(states[0]) == {"1": 2.5}
    assert states[1].ended is not None
    assert states[1].ended.ending == "operator"
    assert len(values_of(states[2])) == 5
    assert project.tool("reconcile").status == 0


def test_silent_accounting_ends_nothing_and_is_archived_whole_when_it_is_back(project: Project) -> None:
    """The silence is longer than accounting is waited for; just after it sacct has no rows of the jobs for seconds."""
    cluster = project.cluster
    project.configure(reconcile={"archive_wait_s": 15})
    project.make()
    measured, killed = project.bench(1), project.bench(2)
    project.wait_patients(2)
    cluster.accounting_down()
    project.kill_job(project.holder(killed))
    project.release(1)
    project.pass_until(lambda: outcomes_of(project.state(measured)) == [["done"]], "the record", statuses=(75,))
    assert project.state(measured).phase == "ended"
    assert outcomes_of(project.state(killed)) == [["open"]], "a job was declared lost without a word of accounting"
    (line,) = [row for row in project.rows("reconcile", status=75) if row["run"] == killed]
    assert line["rule"] == "accounting.unavailable"
    waited = project.state(measured).ended
    assert waited is not None
    project.pass_until(lambda: datetime.now(UTC) - waited.at > timedelta(seconds=16), "a long silence", statuses=(75,))
    assert [project.state(run).phase for run in (measured, killed)] == ["ended", "running"]

    cluster.accounting_up()
    project.pass_until(lambda: len(project.state(killed).submissions) == 2, "a second try")
    project.release(1)
    states = project.settle(measured, killed)
    assert [outcomes_of(state) for state in states] == [[["done"]], [["lost", "done"]]]
    assert [values_of(state) for state in states] == [{"1": 2.5}, {"2": 5.0}]
    archives = [archive for run in (measured, killed) for archive in project.archived(run).values()]
    assert [archive["note"] for archive in archives] == ["", "", ""]
    assert [archive["rows"][0]["State"] for archive in archives] == ["COMPLETED", "FAILED", "COMPLETED"]


@pytest.fixture
def unaccounted(request: pytest.FixtureRequest) -> Iterator[Project]:
    """A project on a cluster that keeps no accounts."""
    with start(rootfs.SLURM26, settings=Settings(accounting=False)) as cluster:
        yield Project(cluster, "unaccounted")


def test_without_accounting_everything_works_and_reports_say_not_measured(unaccounted: Project) -> None:
    project = unaccounted
    project.make()
    run = project.bench(1, 2)
    project.wait_patients(2)
    project.kill_job(project.holder(run, 0))
    project.pass_until(lambda: len(project.state(run).submissions) == 2, "a second try")
    cancelled = project.bench(3)
    project.wait_patients(3)
    project.cluster.check(["scancel", project.submission(cancelled).job_id], user="alice")
    project.release(2)
    (state,) = project.settle(run)
    assert outcomes_of(state) == [["lost", "done"], ["done"]]
    assert values_of(state) == {"1": 2.5, "2": 5.0}
    lost = project.events(run, ev.TryEnded)[0]
    assert (lost.rule, lost.word) == ("no-accounting.ended", "FAILED")
    (parked,) = project.settle(cancelled, phase="parked")
    assert outcomes_of(parked) == [["cancelled"]]
    project.done("runs", "end", cancelled, "--reason", "enough")
    project.settle(cancelled)
    for archive in project.archived(run).values():
        assert (archive["rows"], archive["note"]) == ([], "accounting is switched off here: not measured")
    document = project.json("report", "jobs")
    rows = document["rows"]
    assert sorted(row["outcome"] for row in rows) == ["cancelled", "completed", "completed", "failed"]
    assert {row[name] for row in rows for name in ("elapsed_s", "cpu_s", "cpu_hours", "gpu_hours")} == {None}
    assert [problem for problem in document["problems"] if "not measured" in problem]
    assert "0.0" not in project.done("report", "runs")
    states = project.cluster.check(["squeue", "-h", "-t", "all", "-o", "%T"]).split()
    assert sorted(set(states)) == ["CANCELLED", "COMPLETED", "FAILED"], states
    assert states.count("FAILED") == 1
