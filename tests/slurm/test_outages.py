"""Machines and daemons go away under a run: nothing is concluded from silence, and all goes on when they are back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from outerloop_hpc.engine import events as ev
from tests.slurm.project import WINDOWS, Project, outcomes_of, values_of

_MINUTE = timedelta(seconds=60)
#: What a busy machine needs to start slurmdbd; less than a minute, so that the silence is longer.
_STARTED_S = 45


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
    project.wait(lambda: cluster.node_states()[second].startswith("down"), f"{second} given up")
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


def test_accounting_that_is_gone_for_a_minute_ends_nothing_and_is_archived_whole_when_it_is_back(
    project: Project,
) -> None:
    """The silence is longer than accounting is waited for; just after it sacct has no rows of the jobs for seconds."""
    cluster = project.cluster
    project.configure(reconcile={"archive_wait_s": _STARTED_S})
    project.make()
    measured, killed = project.bench(1), project.bench(2)
    project.wait_patients(2)
    cluster.accounting_down()
    project.kill_job(project.holder(killed))
    project.release(1)
    project.pass_until(lambda: outcomes_of(project.state(measured)) == [["done"]], "the record", statuses=(75,))
    assert project.state(measured).phase == "ended"
    silent = datetime.now(UTC)
    assert outcomes_of(project.state(killed)) == [["open"]], "a job was declared lost without a word of accounting"
    (line,) = [row for row in project.rows("reconcile", status=75) if row["run"] == killed]
    assert line["rule"] == "accounting.unavailable"
    project.pass_until(lambda: datetime.now(UTC) - silent > _MINUTE, "a minute of silence", statuses=(75,))
    assert [project.state(run).phase for run in (measured, killed)] == ["ended", "running"]

    cluster.accounting_up()
    # Who counts the silence has waited long enough in this very pass. How late the rows then are is not the question.
    looked = project.tool("reconcile", "--quiet")
    assert looked.status in {0, 20}, looked.stderr
    project.configure(reconcile={"archive_wait_s": WINDOWS["archive_wait_s"]})
    project.pass_until(lambda: len(project.state(killed).submissions) == 2, "a second try")
    project.release(1)
    states = project.settle(measured, killed)
    assert [outcomes_of(state) for state in states] == [[["done"]], [["lost", "done"]]]
    first = project.events(killed, ev.TryEnded)[0]
    assert (first.rule, first.word) == ("accounting.ended", "FAILED"), "an empty answer was taken for a death"
    assert [values_of(state) for state in states] == [{"1": 2.5}, {"2": 5.0}]
    archives = [archive for run in (measured, killed) for archive in project.archived(run).values()]
    assert [archive["note"] for archive in archives] == ["", "", ""]
    assert [archive["rows"][0]["State"] for archive in archives] == ["COMPLETED", "FAILED", "COMPLETED"]
    assert len(project.bought()) == 3
    reported = sorted((row["run_id"], row["outcome"]) for row in project.rows("report", "jobs"))
    assert reported == sorted([(measured, "completed"), (killed, "completed"), (killed, "failed")])


def test_a_database_that_is_gone_under_slurmdbd_ends_nothing_and_stops_no_submission(project: Project) -> None:
    """slurmdbd runs and answers with an error; when the database is back its rows still say RUNNING for a while."""
    cluster = project.cluster
    project.make()
    measured, killed = project.bench(1), project.bench(2)
    project.wait_patients(2)
    cluster.database_down()
    project.kill_job(project.holder(killed))
    project.release(1)
    begun = project.json("tick", status=75)
    assert begun["submitted"] == 1
    assert any("Unable to connect to database" in problem for problem in begun["problems"])
    late = project.runs()[-1]

    def told() -> bool:
        return [project.state(run).phase for run in (measured, late)] == ["ended", "ended"]

    project.pass_until(told, "what the records say", statuses=(75,))
    (line,) = [row for row in project.rows("reconcile", status=75) if row["run"] == killed]
    assert line["rule"] == "accounting.unavailable"
    assert outcomes_of(project.state(killed)) == [["open"]], "a job was declared lost without a word of accounting"

    cluster.database_up()
    project.pass_until(lambda: len(project.state(killed).submissions) == 2, "a second try")
    project.release(1)
    states = project.settle(measured, killed, late)
    assert [outcomes_of(state) for state in states] == [[["done"]], [["lost", "done"]], [["done"]] * 5]
    first = project.events(killed, ev.TryEnded)[0]
    assert (first.rule, first.word) == ("accounting.ended", "FAILED"), "a stale answer was taken for a death"
    assert [values_of(state) for state in states[:2]] == [{"1": 2.5}, {"2": 5.0}]
    archives = [archive for run in (measured, killed, late) for archive in project.archived(run).values()]
    assert [archive["note"] for archive in archives] == [""] * 4
    assert [archive["rows"][0]["State"] for archive in archives] == ["COMPLETED", "FAILED", "COMPLETED", "COMPLETED"]
    assert len(project.bought()) == 4
