"""Budgets: what may be submitted, what waits for accounting, and what is over."""

from __future__ import annotations

from typing import Any

import pytest

from outerloop_hpc.engine.kind import Outcome, View
from outerloop_hpc.engine.spec import StepSpec
from outerloop_hpc.engine.spend import Spend
from outerloop_hpc.evolve.allowance import Allowance, allowance
from outerloop_hpc.evolve.cells import Stage, steps_of
from outerloop_hpc.evolve.work import Budget
from tests.unit.engine.made import T0, after, decided, step
from tests.unit.evolve import played
from tests.unit.evolve.played import A, B, Play, answers, policy, proposal, spec_of, work

pytestmark = pytest.mark.unit

NOTHING = Spend()


def cells(repeats: int, name: Any = "screen") -> tuple[StepSpec, ...]:
    """Four cells for each repeat, each of which asks for an hour of one CPU."""
    made = work()
    return steps_of(spec_of(made), made, Stage(0, name, (A,), {"t0": repeats, "t1": repeats}))


def asked(
    budget: Budget, *, settled: int = 0, more: int = 1, spend: Spend = NOTHING, new: tuple[StepSpec, ...] = ()
) -> Allowance:
    """Four cells for each of ``settled`` are there and settled, four for each of ``more`` are wanted."""
    there = cells(settled)
    known = {one.key: Outcome("timed out") for one in there}
    view = View(lambda: spec_of(work()), {s.key: s for s in there}, known, 0, T0, read_spend=lambda: spend)
    return allowance(budget, view, new or cells(more, "confirm"))


def test_without_a_budget_everything_may_be_submitted() -> None:
    assert asked(Budget(), more=50).word == "go"


def test_steps_that_are_there_already_cost_nothing_more() -> None:
    there = cells(1)
    view = View(lambda: spec_of(work()), {s.key: s for s in there}, {}, 0, T0)
    assert allowance(Budget(cells=1, deadline=T0), view, there).word == "go"


@pytest.mark.parametrize(("most", "word"), [(8, "go"), (7, "over")])
def test_cells_are_counted_with_those_that_are_wanted(most: int, word: str) -> None:
    assert asked(Budget(cells=most), settled=1, more=1).word == word


@pytest.mark.parametrize(("most", "word"), [(4, "go"), (3.99, "over")])
def test_before_anything_was_measured_a_cell_counts_by_its_walltime(most: float, word: str) -> None:
    assert asked(Budget(cpu_hours=most)).word == word


@pytest.mark.parametrize(("most", "word"), [(2, "go"), (1.9, "over")])
def test_a_cell_counts_like_those_that_were_measured(most: float, word: str) -> None:
    assert asked(Budget(cpu_hours=most), settled=1, spend=Spend(cpu_hours=1)).word == word


@pytest.mark.parametrize(("gpus", "most", "word"), [(8, 160, "go"), (8, 140, "over"), (1, 80, "go"), (1, 78, "over")])
def test_a_few_large_cells_do_not_count_like_the_mean_of_many_small_ones(gpus: int, most: float, word: str) -> None:
    """Pairs of a large task that were lost went over a budget many times, and those of a small one ended the sweep."""
    small = [step(f"s{n}", job="cell", minutes=60, gpus=1) for n in range(90)]
    large = [step(f"l{n}", job="cell", minutes=60, gpus=8) for n in range(10)]
    known = {one.key: Outcome("timed out") for one in (*small, *large)}
    steps = {one.key: one for one in (*small, *large)}
    # Of the 170 hours that they asked for.
    spend = Spend(gpu_hours=75)
    view = View(lambda: spec_of(work()), steps, known, 0, T0, read_spend=lambda: spend)
    new = [step(f"n{n}", job="cell", minutes=60, gpus=gpus) for n in range(20 if gpus > 1 else 8)]
    assert allowance(Budget(gpu_hours=most), view, new).word == word


def test_what_proposals_took_is_no_measure_of_a_cell() -> None:
    """A long session before short cells ended a sweep as out of budget that had most of it left."""
    spend = Spend(cpu_hours=8, by_job={"propose": (7, 0), "cell": (1, 0)})
    assert asked(Budget(cpu_hours=9.5), settled=1, spend=spend).word == "go"
    assert asked(Budget(cpu_hours=8.5), settled=1, spend=spend).word == "over"


def test_a_new_cell_never_counts_more_than_it_asks_for() -> None:
    assert asked(Budget(cpu_hours=24), settled=1, spend=Spend(cpu_hours=20)).word == "go"


def test_what_was_never_measured_counts_by_its_walltime() -> None:
    spend = Spend(cpu_hours=1, asked_cpu_hours=6)
    assert asked(Budget(cpu_hours=8), settled=2, spend=spend).word == "over"


def test_accounting_that_is_still_to_come_is_waited_for_where_it_may_allow_more() -> None:
    spend = Spend(cpu_hours=1, asked_cpu_hours=4, settling=True)
    assert asked(Budget(cpu_hours=6), settled=2, spend=spend).word == "wait"


def test_what_accounting_can_no_longer_allow_is_over_at_once() -> None:
    spend = Spend(cpu_hours=8, asked_cpu_hours=4, settling=True)
    assert asked(Budget(cpu_hours=9), settled=2, spend=spend).word == "over"


def test_cells_that_are_not_measured_yet_do_not_make_the_mean_look_small() -> None:
    """Half of the settled cells are measured, an hour each: their mean is an hour, not half of one."""
    spend = Spend(cpu_hours=4, asked_cpu_hours=4, settling=True)
    assert asked(Budget(cpu_hours=10.5), settled=2, spend=spend).word == "wait"
    assert asked(Budget(cpu_hours=12), settled=2, spend=spend).word == "go"


@pytest.mark.parametrize(("most", "word"), [(8, "go"), (7, "over")])
def test_gpu_hours_have_a_budget_of_their_own(most: float, word: str) -> None:
    new = tuple(step(f"c{n}", job="cell", minutes=60, gpus=2) for n in range(4))
    assert asked(Budget(gpu_hours=most, cpu_hours=100), new=new).word == word


def test_the_cpu_budget_says_nothing_about_gpus() -> None:
    assert asked(Budget(gpu_hours=0.1), spend=Spend(cpu_hours=99)).word == "go"


@pytest.mark.parametrize(("seconds", "word"), [(1, "go"), (0, "over")])
def test_nothing_is_submitted_from_the_deadline_on(seconds: float, word: str) -> None:
    assert asked(Budget(deadline=after(seconds))).word == word


def test_every_refusal_says_what_is_used_and_what_may_be() -> None:
    assert asked(Budget(cells=3)).reason == "0 cells were measured and 4 more are wanted, it may have 3"
    assert "0.00 CPU hours are used and 4.00 more wanted, it may use 1" in asked(Budget(cpu_hours=1)).reason
    assert "has passed" in asked(Budget(deadline=T0)).reason


# --- in a sweep -----------------------------------------------------------------------------------------------------


def test_candidates_that_were_paid_for_are_measured_and_no_further_ones_bought() -> None:
    one = Play(work(budget=Budget(money=5), gate=policy(generations=3)))
    one.play(answers({0: proposal(A, money=7.5), 1: proposal(B)}))
    assert list(one.state.conclusions) == ["screen-g0"]
    assert one.ending()[0] == "out of budget"
    assert "proposals cost 7.50, it may spend 5" in one.ending()[1]


def test_a_sweep_waits_for_accounting_and_goes_on_with_it() -> None:
    one = Play(work(budget=Budget(cpu_hours=20)))
    better = answers(gain=lambda _: 0.2)
    one.look()
    one.end(better)
    one.look()
    one.end(better)
    assert one.look() == ["conclusion.reached"]
    assert one.look() == []
    one.archive(0.5)
    assert one.look()[0] == "steps.wanted"


def test_a_sweep_beyond_its_budget_ends_with_what_it_knows() -> None:
    one = Play(work(budget=Budget(cells=8))).play(answers(gain=lambda _: 0.2))
    word, reason = one.ending()
    assert (word, "8 cells were measured and 16 more are wanted" in reason) == ("out of budget", True)
    assert list(one.state.conclusions) == ["screen-g0"]


def test_a_sweep_past_its_deadline_says_so() -> None:
    one = Play(work(budget=Budget(deadline=after(5000)))).play(answers(gain=lambda _: 0.2))
    assert one.ending()[0] == "past deadline"
    assert len(one.cells()) == 8


def test_money_that_no_proposal_named_is_none() -> None:
    one = Play(work(budget=Budget(money=1))).play(played.answers(gain=lambda _: 0.2))
    assert one.ending()[0] == "promoted"


def half_lost(budget: Budget, **more: Any) -> Play:
    """A screening of eight cells, six of which have their results; two were lost and are to be tried again."""
    one = Play(work(budget=budget, max_tries=5, **more))
    one.look()
    one.end(answers())
    one.look()
    assert one.end(answers(gain=lambda _: 0.2), most=6) == 6
    assert one.end(lambda _: played.lost()) == 2
    return one


def test_no_further_try_of_a_lost_cell_is_submitted_after_the_deadline() -> None:
    one = half_lost(Budget(deadline=after(9000)))
    assert one.look() == ["cancel.asked", "run.ended"]
    assert one.ending()[0] == "past deadline"


def test_a_sweep_that_is_resumed_after_its_deadline_submits_nothing() -> None:
    one = Play(work(budget=Budget(deadline=after(7000))))
    one.look()
    one.end(answers())
    one.look()
    one.look(decided("park", "p.json"))
    one.end(lambda _: {"outcome": "withdrawn"})
    one.resume()
    assert one.ending()[0] == "past deadline"
    assert len(one.state.submissions) == 2


def test_further_tries_have_no_hours_of_their_own_beyond_the_budget() -> None:
    one = half_lost(Budget(cpu_hours=8.5))
    one.archive(8, *one.state.submissions)
    assert one.look() == ["cancel.asked", "run.ended"]
    assert one.ending()[0] == "out of budget"


def test_a_further_try_waits_while_what_is_under_way_may_leave_room_for_it() -> None:
    one = Play(work(budget=Budget(cpu_hours=8.5), max_tries=5))
    one.look()
    one.end(answers())
    one.archive(0, *one.state.submissions)
    one.look()
    one.end(lambda _: played.lost(), most=1)
    assert one.look() == []
    one.end(answers(gain=lambda _: 0.2))
    one.archive(1, *one.state.submissions)
    assert one.look() == ["submission.intended"]


def test_a_proposal_whose_record_cannot_be_read_is_no_crash_where_money_is_counted() -> None:
    one = Play(work(budget=Budget(money=5))).play(lambda _: played.done({"candidates": 5}))
    assert one.ending()[0] == "proposer gave up"
    one = Play(work(budget=Budget(money=5), gate=policy(generations=2))).play(lambda _: played.done({"candidates": 5}))
    assert one.ending()[0] == "proposer gave up"
