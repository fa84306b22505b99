"""What a plan can see: tables, and the power that the t distribution gives where the spread has to be estimated."""

from __future__ import annotations

import math
import random

import pytest
import scipy.stats

from outerloop_hpc.errors import UsageError
from outerloop_hpc.evolve.gate import power
from outerloop_hpc.evolve.gate.pairs import Pair
from outerloop_hpc.evolve.gate.policy import Metric
from tests.unit.evolve.gate.made import FAILED, TWO_LOOKS, everywhere, measured, pair, pairs, policy

pytestmark = pytest.mark.unit

SQUARE = (100.0, 100.0 * math.exp(0.2), 100.0, 100.0 * math.exp(0.2))


def spread_of(cv: float, correlation: float = 0.0) -> float:
    """Return s_d of two log-normal readings of this coefficient of variation."""
    return math.sqrt(2 * math.log1p(cv * cv) * (1 - correlation))


@pytest.mark.parametrize(
    ("cv", "correlation", "needed"),
    [(0.1, 0, 13), (0.2, 0, 46), (0.3, 0, 98), (0.1, 0.7, 5), (0.2, 0.7, 15), (0.3, 0.7, 31)],
)
def test_pairs_that_a_gain_of_a_tenth_needs(cv: float, correlation: float, needed: int) -> None:
    assert power.needed_pairs(0.05, spread_of(cv, correlation), -math.log(0.9)) == needed


@pytest.mark.parametrize(
    ("cv", "count", "percent"),
    [(0.1, 9, 11.9), (0.2, 9, 22.3), (0.3, 9, 31.2), (0.1, 40, 5.5), (0.2, 40, 10.6), (0.3, 40, 15.3)],
)
def test_gains_that_a_number_of_pairs_shows(cv: float, count: int, percent: float) -> None:
    found = power.of(policy(), spread_of(cv), 1, count)
    assert 100 * found.detectable == pytest.approx(percent, abs=0.05)


@pytest.mark.parametrize("level", [0.05, 0.0125, 0.00625])
@pytest.mark.parametrize("count", [8, 10, 20, 60, 400])
def test_a_plan_of_few_pairs_promises_no_more_than_it_keeps(level: float, count: int) -> None:
    """A chance of 80 % was promised where it was 57: as if the spread were known beforehand."""
    seen = power.detectable(level, 1.0, count)
    critical = scipy.stats.t.ppf(1 - level, count - 1)
    chance = 1 - scipy.stats.nct.cdf(critical, count - 1, seen * math.sqrt(count))
    assert chance == pytest.approx(power.CHANCE, abs=0.025)
    assert power.needed_pairs(level, 1.0, seen * (1 + 1e-9)) == count


def test_a_plan_says_whether_it_sees_what_is_asked_for() -> None:
    pilot = pairs({"a": SQUARE, "b": SQUARE})
    found = power.plan(policy(), pilot)
    assert found.sd == pytest.approx(0.2 / math.sqrt(3))
    assert (found.tasks, found.pairs) == (2, 20)
    assert (found.sees, found.needed, found.needed_each) == (False, 33, 17)
    assert found.text == (
        "20 pairs over 2 tasks show a gain of 6.433 % or more with a chance of 80 %; 5 % is asked for, "
        "which needs 17 pairs a task"
    )
    large = power.plan(policy(), pilot, effect=0.2)
    assert (large.sees, large.needed) == (True, 5)


def test_a_plan_of_two_looks_and_more_generations_needs_more() -> None:
    pilot = pairs({"a": SQUARE, "b": SQUARE})
    found = power.plan(policy(repeats=TWO_LOOKS, generations=4), pilot, tasks=5)
    assert (found.level, found.tasks, found.pairs) == (0.00625, 5, 100)
    assert found.needed is not None
    assert found.needed > 33


def test_a_difference_between_the_arms_of_a_pilot_does_not_matter() -> None:
    doubled = pairs({"a": [2 * one for one in SQUARE], "b": SQUARE})
    assert power.plan(policy(), doubled).sd == pytest.approx(power.plan(policy(), pairs({"a": SQUARE, "b": SQUARE})).sd)


def test_without_spread_the_least_pairs_are_needed() -> None:
    found = power.plan(policy(), everywhere([100.0] * 2))
    assert (found.detectable, found.needed, found.needed_each) == (0.0, 6, 2)


def test_what_no_number_of_pairs_shows_is_said() -> None:
    found = power.plan(policy(primary=Metric(name="seconds", direction="min", min_effect=0)), everywhere(SQUARE))
    assert (found.needed, found.sees, "no number of pairs" in found.text) == (None, False, True)


def test_a_linear_metric_is_planned_in_its_own_unit() -> None:
    linear = policy(primary=Metric(name="seconds", direction="min", scale="linear", min_effect=3.0))
    found = power.plan(linear, pairs({"a": [-1.0, 1.0] * 4}, incumbent=0.0))
    assert found.detectable == pytest.approx((1.6449 + 0.8416) * found.sd / math.sqrt(10 - 1.6449**2 / 2), rel=1e-3)
    assert "; 3 is asked for" in found.text


@pytest.mark.parametrize("pilot", [[], pairs({"a": [1.0]}), [pair("a", n, FAILED, FAILED) for n in range(3)]])
def test_a_pilot_without_two_comparable_pairs_says_nothing(pilot: list[Pair]) -> None:
    with pytest.raises(UsageError, match="measure at least 2 pairs"):
        power.plan(policy(), pilot)


def test_a_pilot_of_independent_runs_finds_their_spread() -> None:
    source = random.Random(5)
    sigma = math.sqrt(math.log1p(0.04))
    pilot = [
        pair(task, n, *(measured(math.exp(source.gauss(0, sigma))) for _ in range(2)))
        for task in "abcd"
        for n in range(100)
    ]
    assert power.plan(policy(), pilot).sd == pytest.approx(spread_of(0.2), rel=0.1)
