"""The plan, branch by branch: what a settled session, trial or change leads to."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from outerloop_hpc.engine.kind import Ask, End, Outcome, Post, Propose, Submit
from outerloop_hpc.engine.state import Change
from outerloop_hpc.forge.markers import read
from outerloop_hpc.steward.findings import ValidationFound
from tests.unit.steward.made import PASSED, TREE, VALUE, Story, done, found, said

pytestmark = pytest.mark.unit


def whole(**more: Any) -> Story:
    given = {"session": said(found()), "validation": PASSED, "measures": (VALUE, VALUE)}
    return Story(**{**given, **more})


def test_nothing_is_bought_before_the_claim_can_be_seen() -> None:
    decision = Story(begun=False, said=frozenset()).one()
    assert isinstance(decision, Post)
    marker = read(decision.text)
    assert marker is not None
    assert (decision.order, marker.attempt, marker.reason) == ("7", 1, None)


def test_a_claim_that_is_seen_leads_to_one_session() -> None:
    decision = Story(begun=False).one()
    assert isinstance(decision, Submit)
    assert [step.job for step in decision.steps] == ["session"]


def test_no_session_is_bought_for_an_order_that_is_gone() -> None:
    """Whether the claim was said or can never be said was the same to the plan: an order that was deleted cost one."""
    ending, reason = Story(begun=False, unheard=frozenset({"claimed"})).end()
    assert ending == "refused"
    assert "not there any more" in reason


def test_an_order_that_goes_while_its_session_runs_stops_nothing() -> None:
    assert Story(unheard=frozenset({"claimed"})).plan() == ()


def test_a_session_that_is_under_way_is_waited_for() -> None:
    assert Story().plan() == ()


@pytest.mark.parametrize(
    ("word", "ending"),
    [
        ("no-change", "answered"),
        ("budget", "budget-exhausted"),
        ("outage", "outage"),
        ("failed", "aborted"),
        ("out-of-scope", "out-of-scope"),
    ],
)
def test_a_session_without_a_candidate_ends_the_run(word: str, ending: str) -> None:
    more = {"strays": [{"path": "solver.py", "reason": "not yours"}]} if word == "out-of-scope" else {}
    found_ending, reason = Story(session=said(found(word, **more))).end()
    assert found_ending == ending
    assert reason
    assert ("solver.py" in reason) == (word == "out-of-scope")


def test_many_strays_are_counted_and_the_first_ones_named() -> None:
    strays = [{"path": f"p{number}", "reason": "no"} for number in range(9)]
    _, reason = Story(session=said(found("out-of-scope", strays=strays))).end()
    assert "p4" in reason
    assert "p5" not in reason
    assert "4 more" in reason


@pytest.mark.parametrize(
    ("outcome", "ending"),
    [
        (Outcome("tries exhausted"), "aborted"),
        (Outcome("tries exhausted", "infrastructure"), "aborted"),
        (Outcome("timed out"), "budget-exhausted"),
        (done({}, "timed_out"), "budget-exhausted"),
        (Outcome("out of memory"), "aborted"),
        (done({}, "failed"), "aborted"),
    ],
)
def test_a_session_that_left_no_end_costs_an_attempt_only_when_it_was_begun(outcome: Outcome, ending: str) -> None:
    assert Story(session=replace(outcome, begun=True)).end()[0] == ending
    assert Story(session=outcome).end()[0] == "refused"


@pytest.mark.parametrize("payload", [{"word": "unheard of"}, {}])
def test_a_session_of_another_version_is_a_failed_one(payload: dict[str, object]) -> None:
    assert Story(session=done(payload)).end()[0] == "aborted"


def test_a_step_that_a_person_cancelled_is_asked_about() -> None:
    decision = Story(session=Outcome("cancelled by a person", reason="CANCELLED by uid 7")).one()
    assert isinstance(decision, Ask)
    assert "runs resume" in decision.question
    assert "do it again" in decision.question


def test_nobody_is_promised_a_second_session_for_one_that_was_begun_and_cancelled() -> None:
    """The question said that a resume does it again; it has the claim counted as failed."""
    decision = Story(session=Outcome("cancelled by a person", reason="CANCELLED by uid 7", begun=True)).one()
    assert isinstance(decision, Ask)
    assert "do it again" not in decision.question
    assert "counted as failed" in decision.question


def test_a_candidate_is_validated_and_measured_with_each_seed_at_its_own_tree() -> None:
    decision = Story(session=said(found())).one()
    assert isinstance(decision, Submit)
    assert [step.job for step in decision.steps] == ["validate", "measure", "measure"]
    assert {step.parameters["tree"] for step in decision.steps} == {TREE}
    assert [step.parameters.get("seed") for step in decision.steps] == [None, 11, 12]


def test_a_trial_that_is_under_way_is_waited_for() -> None:
    assert whole(measures=(VALUE,)).plan() == ()
    assert whole(validation=None).plan() == ()


def test_what_passed_and_was_measured_is_proposed() -> None:
    decision = whole().one()
    assert isinstance(decision, Propose)
    assert (decision.tree, decision.order) == (TREE, "7")
    assert set(decision.files) == {"results/leader.json", "BENCHMARKS.md"}
    assert decision == whole().one(), "a repetition proposes the same"


FAILED = done(ValidationFound(passed=False, what="benchmark other", reason="no JSON").model_dump(mode="json"))


@pytest.mark.parametrize(
    ("more", "ending", "told"),
    [
        ({"validation": FAILED}, "invalid", "benchmark other"),
        ({"validation": done({"odd": 1})}, "invalid", "this version"),
        ({"validation": Outcome("timed out")}, "budget-exhausted", "validation"),
        ({"validation": done({}, "timed_out")}, "budget-exhausted", "timed out"),
        ({"validation": Outcome("tries exhausted", "infrastructure")}, "aborted", "validation"),
        ({"validation": done({}, "refused")}, "aborted", "refused"),
        ({"measures": (VALUE, done({"value": "NaN"}))}, "invalid", "seed 12"),
        ({"measures": (VALUE, done({}, "failed"))}, "invalid", "seed 12"),
        ({"measures": (Outcome("tries exhausted"), VALUE)}, "invalid", "seed 11"),
        ({"measures": (done({"value": True}), VALUE)}, "invalid", "seed 11"),
    ],
)
def test_a_candidate_that_did_not_pass_costs_the_attempt_that_its_session_was(
    more: dict[str, Any], ending: str, told: str
) -> None:
    """After a session nothing is a refusal that costs nothing: it would be bought again without end."""
    found_ending, reason = whole(**more).end()
    assert (found_ending, told in reason) == (ending, True), reason


def test_a_change_that_the_forge_has_not_got_is_waited_for() -> None:
    assert whole(change=Change(branch="feat/steward/x")).plan() == ()


def test_an_open_change_is_told_once_and_then_waited_for() -> None:
    opened = Change(branch="b", change="c1", status="open", where="change c1")
    decision = whole(change=opened).one()
    assert isinstance(decision, Post)
    assert "change c1" in decision.text
    assert read(decision.text) is None
    assert whole(change=opened, said=frozenset({"claimed", "published"})).plan() == ()


@pytest.mark.parametrize(
    ("status", "ending", "how"),
    [
        ("merged", "merged", "was merged"),
        ("closed", "rejected", "without being merged"),
        ("gone", "rejected", "not there any more"),
    ],
)
def test_what_people_made_of_a_change_ends_the_run_with_its_numbers(status: str, ending: str, how: str) -> None:
    change = Change.model_validate({"branch": "b", "change": "c1", "status": status, "where": "change c1"})
    decision = whole(change=change).one()
    assert isinstance(decision, End)
    assert (decision.ending, decision.result) == (ending, {"values": {"11": 4.0, "12": 4.0}})
    assert how in decision.reason
