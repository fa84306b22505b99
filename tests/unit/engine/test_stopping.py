"""A person stops a run and lets it go on: what was finished stays, what was under way is done again."""

from __future__ import annotations

import pytest

from outerloop_hpc.engine import events as ev
from outerloop_hpc.engine import people
from outerloop_hpc.engine.plan import Plan
from tests.unit.engine.made import ABSENT, Table, Told, decided, evidence, look, record, step, types
from tests.unit.engine.stories import when_settled

pytestmark = pytest.mark.unit


def two() -> tuple[Table, str, str]:
    one = Table(Told((step("a"), step("b", minutes=20)), when_settled))
    done, open_ = one.start()
    one.plan({(done, 0): evidence(look(), record=record(payload={"value": 1}))})
    return one, done, open_


def cancelled(one: Table, name: str) -> Plan:
    """The job has gone, and accounting says that it was cancelled."""
    seen = {(name, 0): evidence(look(ABSENT, "CANCELLED"))}
    one.plan(seen)
    return one.wait(3600).plan(seen)


def test_a_stopped_run_cancels_what_is_under_way_and_waits_for_a_person() -> None:
    one, done, open_ = two()
    made = one.plan({(open_, 0): evidence(look("RUNNING"))}, inbox=[decided("park")])
    assert types(made) == ["person.decided", "cancel.asked", "run.parked"]
    assert one.state.submissions[open_].cancel_asked
    assert not one.state.submissions[done].cancel_asked
    assert one.phase() == "parked"
    assert one.plan({(open_, 0): evidence(look("RUNNING"))}).events == ()


def test_a_run_that_is_resumed_after_its_jobs_have_gone_does_only_those_again() -> None:
    one, _, open_ = two()
    one.plan(inbox=[decided("park")])
    assert types(cancelled(one, open_)) == ["try.ended"]
    made = one.plan(inbox=[decided("resume", "later.json")])
    assert types(made) == ["person.decided", "submission.intended"]
    (again,) = [event for event in made.events if isinstance(event, ev.SubmissionIntended)]
    assert [(e.step, e.try_number) for e in again.elements] == [("b", 2)]
    assert one.state.steps["a"].payload == {"value": 1}


def test_a_job_that_is_still_going_away_when_its_run_is_resumed_is_done_again_too() -> None:
    """Its end came after the resume that would have forgiven it, so the step was over for good."""
    one, _, open_ = two()
    one.plan(inbox=[decided("park")])
    assert types(one.plan({(open_, 0): evidence(look("RUNNING"))}, inbox=[decided("resume", "later.json")])) == [
        "person.decided"
    ]
    assert types(cancelled(one, open_)) == ["try.ended", "submission.intended"]
    assert len(one.state.steps["b"].tries) == 2


def test_a_job_that_finished_although_it_was_to_be_cancelled_counts_as_finished() -> None:
    one, _, open_ = two()
    one.plan(inbox=[decided("park")])
    one.plan(inbox=[decided("resume", "later.json")])
    made = one.plan({(open_, 0): evidence(look(), record=record(step="b"))})
    assert types(made) == ["try.ended", "run.ended"]


def test_a_run_that_waits_for_a_person_already_keeps_its_question_and_its_jobs_are_cancelled() -> None:
    """Nothing short of ending such a run for good stopped what it had under way."""
    one, _, open_ = two()
    one.say(ev.RunParked(question="and now?", reason="r"))
    assert people.stoppable(one.state)
    assert types(one.plan(inbox=[decided("park")])) == ["person.decided", "cancel.asked"]
    assert one.state.submissions[open_].cancel_asked
    assert one.state.parked is not None
    assert one.state.parked.question == "and now?"
    assert not people.stoppable(one.state)


def test_a_run_that_is_stopped_while_it_asks_about_a_try_stays_stopped_when_that_try_has_ended() -> None:
    """The try's end answered the question, and the run went on although a person had stopped it."""
    one, _, open_ = two()
    asked = ev.Element(step="b", try_number=1)
    one.say(ev.RunParked(question="what became of it?", reason="r", tries=(asked,)))
    assert people.stoppable(one.state)
    assert types(one.plan(inbox=[decided("park")])) == ["person.decided", "cancel.asked", "run.parked"]
    one.plan({(open_, 0): evidence(look(), record=record("infrastructure", step="b"))})
    assert one.outcomes("b") == ["lost"]
    assert one.phase() == "parked"
    assert types(one.wait(3600).plan()) == []
