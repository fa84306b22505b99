"""A person ends and closes a run by force: what that does, what it does not, and what a crash or a rival leaves."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outerloop_hpc.engine import events as ev
from outerloop_hpc.engine import inbox, records, runs, watch
from outerloop_hpc.engine.kind import Post
from outerloop_hpc.engine.layout import element_file
from outerloop_hpc.engine.passresult import PassResult
from outerloop_hpc.engine.plan import Unbound
from outerloop_hpc.engine.tick import Pass
from outerloop_hpc.errors import TryLater
from outerloop_hpc.slurm.port import Answer, Availability, JobRef, Observation
from tests.bench.queue import MemoryCompute
from tests.bench.statefolder import StateFolder, engine
from tests.unit.engine.made import (
    ABSENT,
    DOWN,
    T0,
    Table,
    decided,
    evidence,
    look,
    record,
    rules_of,
    step,
    types,
)
from tests.unit.engine.stories import anything, table, two_submissions, waits

pytestmark = pytest.mark.unit

SILENT = evidence(look(DOWN, DOWN))
FAULT = "e0000.record.json: not a readable record document"


def force(file: str = "f.json") -> ev.PersonDecided:
    return decided("end", file).model_copy(update={"force": True})


def try_of(one: Table, key: str = "measure-1") -> Any:
    return one.state.steps[key].tries[-1]


# --- what is planned --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seen", "unknown"),
    [
        (SILENT, "the queue did not answer"),
        (evidence(look(DOWN, DOWN), fault=FAULT), FAULT),
        (evidence(look("ODD_NEW_WORD")), "ODD_NEW_WORD"),
        (evidence(look(ABSENT, ABSENT)), "neither the queue nor accounting knows the job"),
        (evidence(look("RUNNING")), "the queue says RUNNING"),
    ],
    ids=["silent", "unreadable", "odd", "nowhere", "alive"],
)
def test_force_ends_and_closes_at_once_and_says_what_was_not_known(seen: Any, unknown: str) -> None:
    one = table()
    (name,) = one.start()
    made = one.plan(seen, inbox=[force()])
    ended = try_of(one)
    assert (ended.outcome, ended.rule) == ("lost", "person.forced")
    assert ended.reason.startswith("bob ended it by force: because; unsettled: ")
    assert unknown in ended.reason
    assert one.state.ended is not None
    assert one.state.ended.ending == "operator"
    assert one.state.submissions[name].cancel_asked
    assert (made.let_go, made.close) == ((name,), True)
    assert "by force" in dict(made.archive)[name]


@pytest.mark.parametrize("action", ["end", "resume"])
def test_without_force_what_is_not_known_is_still_waited_for(action: ev.PersonAction) -> None:
    one = table()
    one.start()
    made = one.plan(SILENT, inbox=[decided(action)])
    assert one.state.steps["measure-1"].open_try is not None
    assert (made.let_go, made.archive, made.close) == ((), (), False)
    assert not one.wait(1e7).plan(SILENT).close


def test_what_the_table_knows_keeps_its_own_word_under_force() -> None:
    one = table(step("measure-1"), step("measure-2"))
    (name,) = one.start()
    one.plan({(name, 0): evidence(look(), record=record()), (name, 1): SILENT}, inbox=[force()])
    assert [try_of(one, key).rule for key in one.state.steps] == ["record.final", "person.forced"]


def test_a_submission_whose_answer_was_lost_is_let_go_and_never_given_up_for_another_one() -> None:
    one = two_submissions()
    lost = next(s.name for s in one.state.submissions.values() if s.status == "intended")
    made = one.wait(1e6).plan(SILENT, unbound={lost: Unbound(None, answered=True)}, inbox=[force()])
    assert made.abandon == ()
    assert set(made.let_go) == set(one.state.submissions)
    assert "whether this became a job is not known" in dict(made.archive)[lost]
    assert "whether it ever became a job" in try_of(one, "measure-3").reason
    assert made.close


def test_a_job_that_is_found_by_its_name_while_force_is_taken_in_is_cancelled_under_its_id() -> None:
    one = two_submissions()
    lost = next(s.name for s in one.state.submissions.values() if s.status == "intended")
    made = one.plan(SILENT, unbound={lost: Unbound("9", answered=True)}, inbox=[force()])
    assert not made.close, "nobody asked accounting about that id"
    assert one.state.submissions[lost].job_id == "9"
    made = one.plan()
    assert lost in made.let_go
    assert made.close


def test_a_run_that_has_ended_and_waits_is_closed_with_the_verdict_that_it_has() -> None:
    one = table(step("measure-1"), step("measure-2"))
    (name,) = one.start()
    one.say(ev.RunEnded(ending="measured", reason="enough"))
    waiting = {(name, 0): evidence(look(), record=record()), (name, 1): SILENT}
    assert not one.plan(waiting).close
    assert one.plan(waiting, inbox=[decided("end")]).events == (), "without force an ending is final"
    made = one.plan(waiting, inbox=[force()])
    assert types(made) == ["person.decided", "cancel.asked", "try.ended"]
    assert one.state.ended is not None
    assert (one.state.ended.ending, made.close) == ("measured", True)
    assert try_of(one, "measure-2").rule == "person.forced"


def test_what_a_crash_left_of_force_is_done_by_the_next_pass() -> None:
    one = table()
    (name,) = one.start()
    one.plan(SILENT, inbox=[force()])
    again = one.plan()
    assert (again.events, again.let_go, again.close) == ((), (name,), True)
    one.say(ev.AccountingArchived(submission=name, rows=0))
    again = one.plan()
    assert (again.let_go, again.archive, again.close) == ((), (), True)


def test_a_closed_run_hears_nobody() -> None:
    one = table()
    one.start()
    one.plan(SILENT, inbox=[force()])
    one.say(ev.RunClosed())
    made = one.plan(inbox=[force("g.json")])
    assert (made.events, made.taken) == ((), ("g.json",))


def test_force_waits_for_a_forge_alone_since_an_untold_order_would_stay_held() -> None:
    one = table()
    one.kind.last_words = (Post("released", "12", "it is over", "the claim has ended"),)
    (name,) = one.start()
    made = one.plan(SILENT, inbox=[force()])
    assert (made.post, made.let_go, made.close) == (("released",), (name,), False)
    one.say(ev.AccountingArchived(submission=name, rows=0))
    assert one.plan().let_go == (), "its jobs are asked to end once"
    one.say(ev.PostDone(key="released", comment="3"))
    assert one.plan().close


@given(st.lists(st.tuples(anything, waits), max_size=4), st.lists(st.tuples(anything, waits), max_size=3))
def test_nothing_that_is_seen_later_changes_what_force_ended(
    before: list[tuple[Any, float]], later: list[tuple[Any, float]]
) -> None:
    one = table(step("measure-1"), step("measure-2", minutes=20))
    names = one.start()
    for seen, wait in before:
        one.wait(wait).plan(seen)
        one.bind()
    asked = dict.fromkeys(((name, 0) for name in one.state.submissions), SILENT)
    one.plan(asked, inbox=[force()])
    assert not list(one.state.open_tries())
    state = one.state
    for seen, wait in later:
        made = one.wait(wait).plan(dict.fromkeys(((name, 0) for name in names), seen))
        assert made.events == ()
        assert rules_of(made) == []
    assert one.state == state


# --- what is carried out ----------------------------------------------------------------------------------------------


class Away(MemoryCompute):
    """A scheduler that does not answer; what it is asked to cancel is kept."""

    def __init__(self) -> None:
        super().__init__()
        self.cancelled: list[str] = []

    def observe(self, jobs: Sequence[JobRef]) -> Observation:
        return Observation(Answer(Availability.UNAVAILABLE), Answer(Availability.UNAVAILABLE), 2)

    def cancel(self, jobs: Sequence[JobRef]) -> None:
        self.cancelled += [job.job_id or job.name for job in jobs]
        raise TryLater("scancel: no answer")


def under_way(root: Path) -> watch.LiveRun:
    """A run of five elements of which the last two have not started."""
    folder = StateFolder(root)
    folder.add_live(1)
    run = watch.load(folder.layout, runs.live(folder.layout)[0])
    for index in (3, 4):
        claim_of(run, index).unlink()
    return run


def claim_of(run: watch.LiveRun, index: int) -> Path:
    (name,) = run.state.submissions
    return run.journal.folder.submission(name) / element_file(index, records.CLAIM)


def passed(root: Path, compute: MemoryCompute) -> PassResult:
    return Pass(engine(root, compute), launch=False).run()


def test_what_has_not_started_is_kept_from_starting_and_the_rest_is_asked_once_to_end(tmp_path: Path) -> None:
    root, compute = tmp_path / "state", Away()
    run = under_way(root)
    inbox.put(run.journal.folder, "end", who="ann", reason="the cluster is gone", at=T0, force=True)
    result = passed(root, compute)
    assert [b'"abandoned":true' in claim_of(run, n).read_bytes() for n in range(5)] == [False] * 3 + [True] * 2
    (submission,) = run.state.submissions.values()
    assert compute.cancelled == [submission.name], "its id may be another job's by now"
    ((where, fault),) = result.faults
    assert where == run.run_id
    assert "does not ask again" in fault
    assert submission.name in fault, "a quiet pass tells no problems, and nobody else will see to it"
    assert (result.closed, runs.live(StateFolder(root).layout)) == (1, [])
    report = run.journal.folder.report.read_text(encoding="utf-8")
    assert "ann, by force: the cluster is gone" in report
    assert "closed by force" in report
    passed(root, compute)
    assert len(compute.cancelled) == 1


def test_two_passes_that_take_force_in_at_once_make_one_history(tmp_path: Path) -> None:
    root = tmp_path / "state"
    run = under_way(root)
    inbox.put(run.journal.folder, "end", who="ann", reason="gone", at=T0, force=True)

    class Rival(Away):
        """While the first one looks at the scheduler, another pass does everything."""

        def observe(self, jobs: Sequence[JobRef]) -> Observation:
            passed(root, Away())
            return super().observe(jobs)

    compute = Rival()
    result = passed(root, compute)
    events = [event.type for transaction in run.journal.transactions() for event in transaction.events]
    assert (events.count("run.ended"), events.count("run.closed"), events.count("try.ended")) == (1, 1, 5)
    assert (result.faults, compute.cancelled) == ([], [])


def test_a_decision_of_an_earlier_version_has_no_force(tmp_path: Path) -> None:
    run = under_way(tmp_path / "state")
    name = inbox.put(run.journal.folder, "end", who="ann", reason="enough", at=T0)
    path = run.journal.folder.inbox / name
    path.write_bytes(path.read_bytes().replace(b',"force":false', b""))
    assert b"force" not in path.read_bytes()
    assert [one.force for one in inbox.waiting(run.journal.folder)] == [False]


class Spared(Away):
    """Nobody is asked, since somebody was just before."""

    def observe(self, jobs: Sequence[JobRef]) -> Observation:
        return replace(super().observe(jobs), calls=0, spared_s=7.0)


def test_force_is_not_taken_in_by_a_pass_that_did_not_ask(tmp_path: Path) -> None:
    """What is closed for good, and accounted for as unknown, must not rest on the minimum interval."""
    root = tmp_path / "state"
    run = under_way(root)
    inbox.put(run.journal.folder, "end", who="ann", reason="gone", at=T0, force=True)
    compute = Spared()
    assert passed(root, compute).closed == 0
    assert compute.cancelled == []
    assert passed(root, Away()).closed == 1


def test_force_on_a_host_without_the_runs_compute_says_what_to_cancel_by_hand(tmp_path: Path) -> None:
    root, elsewhere = tmp_path / "state", Away()
    run = under_way(root)
    elsewhere.name = "local"
    inbox.put(run.journal.folder, "end", who="ann", reason="gone", at=T0, force=True)
    result = passed(root, elsewhere)
    ((_, fault),) = result.faults
    assert "slurm is not at hand on login1" in fault
    assert next(iter(run.state.submissions)) in fault


def test_what_was_given_up_and_then_forced_is_kept_from_starting(tmp_path: Path) -> None:
    root = tmp_path / "state"
    run = under_way(root)
    ((step, current, submission), *_) = run.state.open_tries()
    asked = ev.RunParked(question="?", reason="!", tries=(ev.Element(step=step.spec.key, try_number=current.number),))
    by = ev.Author(host="h", pid=1, user="u", version="0")
    run.journal.commit(run.state, (asked,), by=by, at=T0, nonce="n")
    for force in (False, True):
        action: ev.PersonAction = "end" if force else "resume"
        inbox.put(run.journal.folder, action, who="ann", reason="so", at=T0 + timedelta(seconds=force), force=force)
    compute = Away()
    passed(root, compute)
    assert compute.cancelled == [submission.name]


def test_an_earlier_tool_does_not_take_force_for_an_ordinary_end(tmp_path: Path) -> None:
    folder = under_way(tmp_path / "state").journal.folder
    for force, schema in ((False, "decision/1"), (True, "decision/2")):
        name = inbox.put(folder, "end", who="ann", reason="gone", at=T0, force=force)
        assert json.loads((folder.inbox / name).read_bytes())["schema"] == schema
    assert [decided.force for decided in inbox.waiting(folder)].count(True) == 1
