"""GPU hours: what a run may ask for before a person grants more."""

from __future__ import annotations

import pytest

from outerloop_hpc.engine import events as ev
from tests.unit.engine.made import ABSENT, POLICY, SPEC, Table, Told, decided, evidence, look, rules_of, step, types

pytestmark = pytest.mark.unit

LOST = evidence(look(ABSENT, "NODE_FAIL"))


def table(hours: float | None, *, gpus: int = 2) -> Table:
    """Two steps of half an hour each: two GPU hours with two GPUs."""
    steps = tuple(step(key, minutes=30, gpus=gpus) for key in ("a", "b"))
    return Table(Told(steps, lambda _view: ()), spec=SPEC.model_copy(update={"gpu_hours": hours}))


def lose_and_wait(one: Table) -> None:
    one.plan(LOST)
    one.wait(POLICY.soft_window_s).plan(LOST)
    one.wait(3600)


def test_repeats_of_lost_tries_cannot_spend_more_than_the_budget() -> None:
    one = table(3.0)
    one.start()
    lose_and_wait(one)
    made = one.plan()
    assert types(made) == ["run.parked"]
    assert "launch.budget" in rules_of(made)
    assert one.state.parked is not None
    assert "asked for 2.0 GPU hours and needs 2.0 more, the budget is 3" in one.state.parked.question


def test_a_resume_grants_the_budget_once_more() -> None:
    one = table(3.0)
    one.start()
    lose_and_wait(one)
    one.plan()
    assert "submission.intended" in types(one.plan(inbox=[decided("resume")]))
    one.bind("8")
    lose_and_wait(one)
    assert types(one.plan()) == ["submission.intended"]
    one.bind("9")
    lose_and_wait(one)
    assert "run.parked" not in types(one.plan(inbox=[decided("resume", "b.json")]))


def test_submissions_that_never_became_a_job_cost_nothing() -> None:
    one = table(2.0)
    one.plan()
    for name in list(one.state.submissions):
        one.say(ev.SubmissionRefused(name=name, complaint="no"))
    assert types(one.wait(3600).plan()) == ["submission.intended"]


@pytest.mark.parametrize(("hours", "gpus"), [(None, 2), (0.1, 0)])
def test_without_a_budget_or_gpus_nothing_is_asked(hours: float | None, gpus: int) -> None:
    one = table(hours, gpus=gpus)
    one.start()
    lose_and_wait(one)
    assert types(one.plan()) == ["submission.intended"]


def test_to_stop_a_run_and_let_it_go_on_grants_no_hours() -> None:
    one = table(3.0)
    one.start()
    one.plan(inbox=[decided("park", "1.json"), decided("park", "2.json")])
    lose_and_wait(one)
    assert types(one.plan(inbox=[decided("resume", "3.json")])) == ["person.decided", "run.parked"]
    assert types(one.plan(inbox=[decided("resume", "4.json")])) == ["person.decided", "submission.intended"]
