"""Every rule of ``paired-v1``, one by one."""

from __future__ import annotations

import math
from typing import Any

import pytest
from scipy import stats

from outerloop_hpc.errors import Fault, UsageError
from outerloop_hpc.evolve.gate.pairs import Reading
from outerloop_hpc.evolve.gate.policy import Guardrail, Metric, Success
from tests.unit.evolve.gate.made import (
    BETTER,
    EQUAL,
    FAILED,
    MISSING,
    TASKS,
    TWO_LOOKS,
    WORSE,
    answers,
    decided,
    everywhere,
    measured,
    pair,
    pairs,
    policy,
    why,
    with_reading,
)

pytestmark = pytest.mark.unit

#: Some 10 % better on average, each pair between 70 % worse and 50 % better: not shown by ten pairs.
LOUD = (60.0, 160.0, 50.0, 170.0, 70.0, 55.0, 150.0, 65.0, 140.0, 80.0)
TESTED = Success(deterministic=False)
YES, NO = True, False


def test_a_clear_gain_is_promoted_with_its_numbers() -> None:
    found = decided(everywhere(BETTER))
    assert (found.decision, why(found)) == ("promote", "seconds: a gain of 20.02 %, p = 5e-05, at most 0.05")
    assert found.gain is not None
    assert found.gain_low is not None
    assert found.gain_high is not None
    assert 0.19 < found.gain_low < found.gain < found.gain_high < 0.21
    assert [one.compared for one in found.found] == [10, 10, 10]
    assert found.power is not None
    assert found.power.sees


def test_intervals_are_those_of_t_at_the_level_of_the_sweep() -> None:
    found = decided(pairs({"a": LOUD}), policy(generations=2), tasks=["a"])
    d = [math.log(100.0 / one) for one in LOUD]
    low, high = stats.t.interval(0.95, 9, loc=sum(d) / 10, scale=stats.sem(d))
    assert (found.gain_low, found.gain_high) == pytest.approx((1 - math.exp(-low), 1 - math.exp(-high)))
    (task,) = found.found
    assert (task.gain_low, task.gain_high, task.sd) == pytest.approx((found.gain_low, found.gain_high, stats.tstd(d)))
    assert (found.level, found.bound) == pytest.approx((0.025, low))


def test_where_more_is_better_the_same_holds_the_other_way_round() -> None:
    more = policy(primary=Metric(name="seconds", direction="max"))
    assert decided(everywhere(WORSE), more).decision == "promote"
    assert decided(everywhere(BETTER), more).decision == "keep_incumbent"


def test_an_equal_candidate_is_not_promoted() -> None:
    found = decided(everywhere(EQUAL))
    assert found.decision == "keep_incumbent"
    assert "is not shown, p = " in why(found)


def test_a_gain_below_the_one_asked_for_is_not_promoted_however_sure_it_is() -> None:
    found = decided(everywhere([97.0] * 10))
    assert found.decision == "keep_incumbent"
    assert found.p == pytest.approx(1 / 20_001)
    assert why(found) == "seconds: a gain of 3 % is below 5 %, which is asked for"


@pytest.mark.parametrize(("least", "word"), [(0.2, "promote"), (0.2 + 1e-9, "keep_incumbent")])
def test_a_gain_of_exactly_what_is_asked_for_is_enough(least: float, word: str) -> None:
    rules = policy(primary=Metric(name="seconds", direction="min", min_effect=least))
    assert decided(everywhere([80.0] * 10), rules).decision == word


@pytest.mark.parametrize("asked", [1.0, 5.0])
def test_no_candidate_saves_all_of_the_cost(asked: float) -> None:
    rules = policy(primary=Metric(name="seconds", direction="min", min_effect=asked), repeats=TWO_LOOKS)
    found = decided(everywhere(BETTER), rules)
    assert found.decision == "keep_incumbent"
    assert found.power is not None
    assert found.power.needed is None


def test_p_above_the_level_of_the_look_is_not_enough() -> None:
    five = pairs({"a": BETTER[:5]})
    rules: dict[str, Any] = {"repeats": {"screen": 3, "confirm": 5, "most": 5}}
    assert decided(five, policy(**rules), tasks=["a"]).decision == "promote"
    spread = decided(five, policy(**rules, generations=2), tasks=["a"])
    assert spread.decision == "insufficient_evidence"
    assert why(spread) == "5 pairs that both arms solved can never reach the level 0.025: 6 are needed"


def test_a_level_that_no_draw_can_reach_is_said() -> None:
    found = decided(everywhere(BETTER), policy(generations=2000))
    assert (found.decision, "plan fewer generations" in why(found)) == ("insufficient_evidence", True)


def test_a_gain_that_is_not_shown_yet_gets_its_second_look_and_no_third() -> None:
    rules = policy(repeats=TWO_LOOKS)
    first = decided(everywhere(LOUD), rules)
    assert (first.decision, first.level, first.looks) == ("extend", 0.025, 2)
    again = decided(everywhere([*LOUD, *EQUAL]), rules, look=2)
    assert again.decision == "keep_incumbent"
    assert decided(everywhere([*LOUD, *BETTER]), rules, look=2).decision == "promote"


def test_what_can_hardly_be_promoted_is_not_extended() -> None:
    rules = policy(repeats=TWO_LOOKS)
    assert decided(everywhere([100.5 + one / 1000 for one in EQUAL]), rules).decision == "keep_incumbent"
    small = decided(everywhere([98.0 + one / 1000 for one in EQUAL]), rules)
    assert small.decision == "keep_incumbent"
    losing = decided(everywhere([10_000.0 / one for one in LOUD]), rules)
    assert losing.gain_high is not None
    assert losing.gain_high > 0.05
    assert losing.decision == "keep_incumbent"


def test_harm_of_one_task_is_a_veto_where_it_is_shown() -> None:
    found = decided(pairs({"a": BETTER, "b": [60.0] * 10, "c": WORSE}))
    assert found.decision == "keep_incumbent"
    assert why(found) == "task c: a gain of -29.99 % is worse than the cap of -20 %, p = 0.00293 after Holm"
    assert [one.harm for one in found.found] == ["none", "none", "shown"]


def test_harm_that_may_be_chance_is_extended_once_and_then_not_decided() -> None:
    loud = (60.0, 200.0, 190.0, 60.0, 210.0, 60.0, 220.0, 180.0, 60.0, 200.0)
    rules = policy(repeats=TWO_LOOKS, harm_level=0.01)
    given = {"a": [20.0] * 10, "b": [20.0] * 10, "c": loud}
    first = decided(pairs(given), rules)
    assert (first.decision, first.found[2].harm) == ("extend", "suspected")
    assert "which may be chance" in why(first)
    louder = {"a": [20.0] * 20, "b": [20.0] * 20, "c": (*loud, *[60.0] * 10)}
    assert decided(pairs(louder), rules, look=2).decision == "promote"
    doubled = {task: [*values, *values] for task, values in given.items()}
    last = decided(pairs(doubled), policy(repeats=TWO_LOOKS, harm_level=0.001), look=2)
    assert last.decision == "insufficient_evidence"


def test_getting_worse_within_the_cap_is_no_veto() -> None:
    assert decided(pairs({"a": BETTER, "b": [60.0] * 10, "c": [119.0] * 10})).decision == "promote"
    assert decided(pairs({"a": BETTER, "b": [60.0] * 10, "c": [121.0] * 10})).decision == "keep_incumbent"


def test_harm_is_adjusted_for_the_number_of_tasks() -> None:
    four: dict[str, Any] = {"repeats": {"screen": 3, "confirm": 4, "most": 4}}
    names = [f"t{number}" for number in range(4)]
    given = pairs({**dict.fromkeys(names[:3], (50.0, 51.0, 49.0, 50.0)), names[3]: (130.0, 128.0, 131.0, 129.0)})
    found = decided(given, policy(**four), tasks=names)
    assert found.found[3].p_harm == pytest.approx(4 / 16)
    assert (found.decision, found.found[3].harm) == ("insufficient_evidence", "suspected")


def test_one_failure_of_the_candidate_where_the_incumbent_succeeds_is_a_veto() -> None:
    found = decided(with_reading(everywhere(BETTER), "b", [4], candidate=FAILED))
    assert (found.decision, why(found)) == (
        "keep_incumbent",
        "the candidate failed 1 of 30 pairs that the incumbent solved; none may fail",
    )


def test_the_same_with_a_success_flag() -> None:
    given = answers("a", [YES] * 10, [YES] * 9 + [NO], seconds=(100.0, 50.0))
    assert decided(given, policy(success=Success()), tasks=["a"]).decision == "keep_incumbent"
    assert decided(given, policy(success=TESTED), tasks=["a"]).decision != "promote"


def test_a_failure_of_the_incumbent_alone_does_not_count_against_the_candidate() -> None:
    found = decided(with_reading(everywhere(BETTER), "b", [4], incumbent=FAILED))
    assert found.decision == "promote"
    assert [row.use for row in found.rows if row.pair.task == "b"].count("counted") == 1


def test_an_incumbent_that_solves_nothing_is_a_broken_harness_and_no_lost_race() -> None:
    given = [one for task in TASKS for one in answers(task, [NO] * 10, [YES] * 10)]
    found = decided(given, policy(success=Success()))
    assert (found.decision, "solved none of 30 pairs" in why(found)) == ("harness_broken", True)
    failing = [pair("a", repeat, FAILED, FAILED) for repeat in range(10)]
    broken = decided(failing, tasks=["a"])
    assert (broken.decision, "(10 times: exit 1)" in why(broken)) == ("harness_broken", True)


def test_without_a_whole_pair_nothing_is_called_broken() -> None:
    assert decided([pair("a", 0, FAILED, MISSING)], tasks=["a"]).decision == "insufficient_evidence"
    assert decided([], tasks=[]).decision == "insufficient_evidence"


def test_tested_success_bears_a_failure_and_vetoes_a_difference() -> None:
    few = answers("a", [YES] * 20, [YES] * 19 + [NO], seconds=(100.0, 50.0))
    twenty: dict[str, Any] = {"repeats": {"screen": 3, "confirm": 20, "most": 20}}
    loose = policy(success=Success(deterministic=False, margin=0.5), **twenty)
    assert decided(few, loose, tasks=["a"]).decision == "promote"
    many = answers("a", [YES] * 20, [YES] * 12 + [NO] * 8, seconds=(100.0, 50.0))
    found = decided(many, loose, tasks=["a"])
    assert (found.decision, "p = 0.001638 after Holm" in why(found)) == ("keep_incumbent", True)


def test_success_that_may_be_lower_than_the_margin_allows_is_not_decided() -> None:
    given = [one for task in TASKS for one in answers(task, [YES] * 10, [YES] * 9 + [NO], seconds=(100.0, 50.0))]
    found = decided(given, policy(success=TESTED))
    assert found.decision == "insufficient_evidence"
    assert "may succeed less often" in why(found)
    assert decided(given, policy(success=TESTED, repeats=TWO_LOOKS)).decision == "extend"


def test_success_is_won_by_its_own_test_without_any_gain_of_the_metric() -> None:
    given = [one for task in TASKS for one in answers(task, [YES] * 4 + [NO] * 6, [YES] * 10)]
    found = decided(given, policy(success=Success()))
    assert found.decision == "promote"
    assert why(found).startswith("the candidate solved 30 and the incumbent 12 of 30 pairs, p = ")
    assert found.success is not None
    assert (found.success.won, found.success.level, found.metric_level) == (18, 0.025, 0.025)


def test_a_metric_has_the_whole_level_where_success_cannot_win() -> None:
    given = with_reading(everywhere(BETTER), "a", range(4), incumbent=FAILED)
    found = decided(given)
    assert found.success is not None
    assert (found.success.level, found.metric_level) == (0.0, 0.05)


def test_success_is_won_although_no_pair_can_be_compared_in_a_task() -> None:
    given = [*answers("a", [NO] * 10, [YES] * 10), *answers("b", [YES] * 10, [YES] * 10)]
    found = decided(given, policy(success=Success()), tasks=["a", "b"])
    assert (found.decision, found.p) == ("promote", None)


def test_too_few_pairs_that_both_arms_solved_are_not_decided() -> None:
    given = [
        *answers("a", [YES] + [NO] * 9, [YES] + [NO] * 9, seconds=(100.0, 50.0)),
        *answers("b", [YES] * 10, [YES] * 10, seconds=(100.0, 50.0)),
    ]
    found = decided(given, policy(success=Success()), tasks=["a", "b"])
    assert (found.decision, "both arms solved 1 of 10 pairs of task a: 2 are" in why(found)) == (
        "insufficient_evidence",
        True,
    )


def test_a_task_that_neither_arm_ever_solved_does_not_take_part() -> None:
    given = [*pairs({"a": BETTER, "b": BETTER}), *(pair("c", repeat, FAILED, FAILED) for repeat in range(10))]
    found = decided(given)
    assert (found.decision, found.notes) == ("promote", ("neither arm ever solved c: not counted",))
    assert [one.gated for one in found.found] == [True, True, False]


def test_half_of_the_tasks_must_take_part() -> None:
    unsolved = [pair(task, repeat, FAILED, FAILED) for task in "bc" for repeat in range(10)]
    found = decided([*pairs({"a": BETTER}), *unsolved])
    assert (found.decision, why(found)) == (
        "insufficient_evidence",
        "1 of 3 tasks were solved by any arm, and half of them are needed",
    )


@pytest.mark.parametrize("reading", [{"candidate": MISSING}, {"incumbent": MISSING, "candidate": MISSING}])
def test_a_pair_that_lacks_a_reading_is_dropped_and_never_made_up(reading: dict[str, Reading]) -> None:
    found = decided(with_reading(everywhere(BETTER), "b", [4], **reading))
    assert found.decision == "insufficient_evidence"
    assert why(found) == "task b has 9 whole pairs of the 10 that were planned"


def test_a_refill_takes_the_place_of_a_missing_pair() -> None:
    given = with_reading(everywhere(BETTER), "b", [4], candidate=MISSING, incumbent=MISSING)
    found = decided([*given, pair("b", 10, measured(100.0), measured(80.0))])
    assert found.decision == "promote"
    assert found.notes == ("readings are missing: 1 of the incumbent, 1 of the candidate",)


def test_pairs_beyond_the_plan_are_kept_and_not_used() -> None:
    found = decided([*everywhere(EQUAL), *(pair("a", 10 + n, measured(100.0), measured(1.0)) for n in range(50))])
    assert (found.decision, found.notes) == ("keep_incumbent", ("50 whole pairs beyond the plan were left out",))
    assert [row.use for row in found.rows].count("surplus") == 50


def test_a_task_without_any_pair_is_too_little_and_not_one_less_to_pass() -> None:
    assert decided(pairs({"a": BETTER, "b": BETTER})).decision == "insufficient_evidence"


def test_a_candidate_that_lacks_clearly_more_readings_may_cause_the_faults() -> None:
    refills = [pair("b", 10 + more, measured(100.0), measured(80.0)) for more in range(2)]
    one = [*with_reading(everywhere(BETTER), "b", [4], candidate=MISSING), *refills]
    assert decided(one).decision == "promote"
    two = [*with_reading(everywhere(BETTER), "b", [4, 5], candidate=MISSING), *refills]
    assert (decided(two).decision, "may cause the faults" in why(decided(two))) == ("insufficient_evidence", True)
    both = [*with_reading(everywhere(BETTER), "b", [4, 5], candidate=MISSING, incumbent=MISSING), *refills]
    assert decided(both).decision == "promote"


@pytest.mark.parametrize("bad", [measured(other=1.0), measured(float("nan")), measured(float("inf"))])
def test_numbers_that_are_none_are_the_candidates_failure_and_the_incumbents_end_of_the_matter(bad: Reading) -> None:
    ours = decided(with_reading(everywhere(BETTER), "b", [4], candidate=bad))
    assert (ours.decision, "the candidate failed 1 of 30 pairs" in why(ours)) == ("keep_incumbent", True)
    theirs = decided(with_reading(everywhere(BETTER), "b", [4], incumbent=bad))
    assert theirs.decision == "insufficient_evidence"
    assert why(theirs) == "task b, repeat 4: the incumbent printed no finite number for seconds"


def test_a_failed_answer_needs_no_metric() -> None:
    unsolved = measured(success=False)
    given = [pair("b", n, unsolved, unsolved) if n < 2 else one for n, one in enumerate(pairs({"b": BETTER}))]
    assert decided(given, policy(success=Success()), tasks=["b"]).decision == "promote"


@pytest.mark.parametrize("value", [0.0, -3.0])
def test_no_logarithm_is_taken_of_what_has_none(value: float) -> None:
    found = decided(with_reading(everywhere(BETTER), "b", [4, 5, 6, 7, 8], candidate=measured(value)))
    assert found.decision == "insufficient_evidence"
    assert "give the metric `scale: linear`" in found.reasons[0]
    assert found.reasons[-1] == "2 more pairs are like that"


def test_a_linear_scale_takes_any_number_in_its_own_unit() -> None:
    rules = policy(primary=Metric(name="seconds", direction="min", scale="linear", min_effect=3.0))
    found = decided(pairs(dict.fromkeys(TASKS, [-5.0, -4.0, -6.0, -5.5, -4.5] * 2), incumbent=0.0), rules)
    assert (found.decision, found.gain) == ("promote", 5.0)


def test_numbers_as_large_as_doubles_go_do_not_overflow() -> None:
    linear = Metric(name="seconds", direction="min", scale="linear")
    for rules in (policy(), policy(primary=linear)):
        for old, new in ((1e308, 1e-308), (1e-308, 1e308), (1e308, -1e308), (5e-324, 5e-324)):
            assert decided(pairs(dict.fromkeys(TASKS, [new] * 10), incumbent=old), rules).encoded()


MEMORY = Guardrail(name="memory", direction="min", max_regression=0.1)


def guarded(*memory: float) -> list[Any]:
    return [
        pair(task, n, measured(100.0, memory=10.0), measured(80.0 + n / 10, memory=memory[n % len(memory)]))
        for task in TASKS
        for n in range(10)
    ]


@pytest.mark.parametrize(
    ("memory", "word", "says"),
    [
        ((10.0, 10.2, 9.8), "promote", "holds"),
        ((10.9, 9.1, 10.9), "promote", "holds"),
        ((14.0, 8.0, 14.0, 8.0), "extend", "not-shown"),
        ((14.0, 13.0, 15.0), "keep_incumbent", "broken"),
    ],
)
def test_a_guardrail_must_hold_surely(memory: tuple[float, ...], word: str, says: str) -> None:
    found = decided(guarded(*memory), policy(guardrails=(MEMORY,), repeats=TWO_LOOKS))
    assert (found.decision, found.guardrails[0].word) == (word, says)


def test_a_guardrail_that_is_still_open_in_the_end_is_not_promoted() -> None:
    found = decided(guarded(14.0, 8.0), policy(guardrails=(MEMORY,)))
    assert (found.decision, "memory may have got worse" in why(found)) == ("insufficient_evidence", True)


def test_a_guardrail_without_numbers_is_as_a_metric_without() -> None:
    rules = policy(guardrails=(MEMORY,))
    assert decided(everywhere(BETTER), rules).decision == "insufficient_evidence"
    mute = with_reading(guarded(10.0), "a", [0], candidate=measured(80.0))
    assert decided(mute, rules).decision == "keep_incumbent"


def test_a_pair_that_comes_twice_counts_once() -> None:
    assert decided([*everywhere(BETTER), *everywhere(BETTER)]) == decided(everywhere(BETTER))


def test_two_different_pairs_for_one_place_stop_everything() -> None:
    with pytest.raises(Fault, match="task 'b' has two different pairs for repeat 4"):
        decided([*everywhere(BETTER), pair("b", 4, measured(100.0), measured(1.0))])


def test_a_pair_of_a_task_that_the_sweep_does_not_have_stops_everything() -> None:
    with pytest.raises(Fault, match="task 'c', which the sweep does not have"):
        decided(everywhere(BETTER), tasks=["a", "b"])


def test_a_generation_beyond_the_plan_is_refused() -> None:
    with pytest.raises(UsageError, match="generation 1 is not one of the 1"):
        decided(everywhere(BETTER), generation=1)
