"""What a run has to say at its forge is wanted once, said before anything that rests on it, and outlives its ending."""

from __future__ import annotations

from dataclasses import replace

import pytest

from outerloop_hpc.engine import events as ev
from outerloop_hpc.engine.kind import Decision, End, Post, Propose, Submit, View
from outerloop_hpc.engine.plan import Here, Input, Plan
from outerloop_hpc.engine.reconcile import plan
from outerloop_hpc.engine.spec import StepSpec
from outerloop_hpc.forge.port import Change, ChangeStatus
from tests.unit.engine.made import SPEC, Table, Told, step, types

pytestmark = pytest.mark.unit

CLAIMED = Post("claimed", "7", "This order is taken.", "the order is ours")
RELEASED = Post("released", "7", "Done with it.", "the run is over")
CHANGE = Propose(
    key="change",
    order="7",
    branch="feat/steward/x",
    onto="main",
    candidate="c" * 40,
    tree="d" * 40,
    files={"BENCHMARKS.md": "new"},
    message="Re-base",
    title="A fairer ruler",
    body="because",
    reason="it was measured",
)
SESSION: StepSpec = step("session-1")


def protocol(view: View) -> tuple[Decision, ...]:
    """Say it, then work, then propose, then wait for what people do."""
    if "claimed" not in view.said:
        return (CLAIMED,)
    if not view.steps:
        return (Submit((SESSION,), "now that it is said"),)
    if view.under_way:
        return ()
    change = view.changes.get("change")
    if change is None or change.status == "wanted":
        return (CHANGE,)
    return () if change.status == "open" else (End(change.status, "somebody decided", {}),)


class Forged(Table):
    """A table whose plans can hear from a forge."""

    def heard(self, *, speechless: bool = False, **changes: Change | None) -> Plan:
        here = Here(self.host, "ann", "slurm", self.cluster, self.launches, self.largest)
        given = Input(
            read_spec=lambda: SPEC,
            state=self.state,
            kind=self.kind,
            policies=self.policies,
            here=here,
            now=self.now,
            changes=changes,
            speechless=speechless,
        )
        made = plan(given)
        self.state = made.after if made.events else self.state
        return made


def table() -> Forged:
    return Forged(Told(then=protocol, last_words=(RELEASED,)))


def opened(table: Forged) -> Change:
    table.say(ev.ChangeBound(key="change", change="c1", commit="e" * 40, where="there"))
    return Change("c1", CHANGE.branch, "e" * 40, "open", "there")


def test_nothing_is_submitted_before_the_claim_is_on_the_order() -> None:
    run = table()
    first = run.heard()
    assert types(first) == ["run.started", "post.wanted"]
    assert first.post == ("claimed",)
    again = run.heard()
    assert (types(again), again.post) == ([], ("claimed",)), "wanted twice, or forgotten"
    run.say(ev.PostDone(key="claimed", comment="1"))
    assert types(run.heard()) == ["steps.wanted", "submission.intended"]


def test_a_forge_that_cannot_be_reached_leaves_the_wish_for_later() -> None:
    run = table()
    run.heard()
    quiet = run.heard(speechless=True)
    assert quiet.idle
    assert run.heard().post == ("claimed",)


def at_change() -> Forged:
    run = table()
    run.heard()
    run.say(ev.PostDone(key="claimed", comment="1"))
    run.heard()
    (name,) = run.bind()
    run.say(
        ev.TryEnded(step=SESSION.key, try_number=1, outcome="done", rule="record.final", reason="", record_outcome="x")
    )
    assert run.state.submissions[name].status == "bound"
    return run


def test_a_change_is_wanted_once_and_its_text_is_kept_until_the_forge_has_it() -> None:
    run = at_change()
    assert types(run.heard()) == ["change.wanted"]
    made = run.heard()
    assert (types(made), made.propose) == ([], ("change",))
    assert run.state.changes["change"].wanted is not None
    opened(run)
    assert run.heard().idle
    assert run.state.changes["change"].wanted is None


@pytest.mark.parametrize("status", ["merged", "closed"])
def test_what_people_did_with_a_change_ends_the_run(status: ChangeStatus) -> None:
    run = at_change()
    run.heard()
    change = opened(run)
    assert run.heard(change=change).idle
    made = run.heard(change=replace(change, status=status, merged_as="f" * 40))
    assert types(made) == ["change.seen", "run.ended", "post.wanted"]
    assert run.state.ended is not None
    assert run.state.ended.ending == status


def test_a_change_that_was_deleted_is_gone_and_one_nobody_answered_about_is_not() -> None:
    run = at_change()
    run.heard()
    opened(run)
    assert run.heard().idle
    run.heard(change=None)
    assert run.state.changes["change"].status == "gone"


def test_a_run_is_not_closed_before_its_last_word_is_on_the_order() -> None:
    run = at_change()
    run.heard()
    change = opened(run)
    made = run.heard(change=replace(change, status="merged"))
    run.state = run.state.model_copy(
        update={"submissions": {n: s.model_copy(update={"archived": True}) for n, s in run.state.submissions.items()}}
    )
    assert not made.close
    waiting = run.heard()
    assert (waiting.post, waiting.close) == (("released",), False)
    assert not run.heard(speechless=True).close, "the order would stay claimed for ever"
    run.say(ev.PostDone(key="released", comment="2"))
    assert run.heard().close


def test_a_run_that_a_person_ended_says_so_and_proposes_nothing_any_more() -> None:
    run = at_change()
    run.heard()
    run.say(ev.RunEnded(ending="operator", reason="ann: enough"))
    made = run.heard()
    assert (made.post, made.propose) == (("released",), ())
