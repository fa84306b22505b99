"""The tests and estimates themselves, beside brute force and beside scipy."""

from __future__ import annotations

import math
import random
import sys
import tracemalloc
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from outerloop_hpc.errors import ConfigError, UsageError
from outerloop_hpc.evolve.gate import exact, flips, levels, libraries
from outerloop_hpc.evolve.gate.differences import allowed, asked, difference, gain
from outerloop_hpc.evolve.gate.estimate import estimate, spread
from outerloop_hpc.evolve.gate.policy import Direction, Guardrail, Metric, Repeats, Scale
from tests.unit.evolve.gate.made import policy

pytestmark = pytest.mark.unit

SMALL = st.lists(st.integers(-20, 20).map(float), min_size=1, max_size=9)
COUNT = st.integers(0, 12)


@given(SMALL)
def test_p_is_the_share_of_sign_patterns_at_least_as_good(weights: list[float]) -> None:
    patterns = product((1, -1), repeat=len(weights))
    sums = [sum(sign * weight for sign, weight in zip(one, weights, strict=True)) for one in patterns]
    assert flips.p_value(weights, "") == sum(one >= sum(weights) for one in sums) / len(sums)


def test_ties_that_rounding_would_part_are_ties() -> None:
    assert flips.p_value([0.1, 0.2, -0.3], "") == 5 / 8


def test_beyond_sixteen_drawn_patterns_stand_for_all() -> None:
    weights = [1.0] * 12 + [-1.0] * 8
    every = sum(math.comb(20, count) for count in range(12, 21)) / 2**20
    assert flips.p_value(weights, "salt") == pytest.approx(every, abs=0.01)
    assert flips.p_value(weights, "salt") == flips.p_value(weights, "salt")
    assert flips.p_value(weights, "salt") != flips.p_value(weights, "other")
    assert flips.p_value([1.0] * 30, "salt") == pytest.approx(1 / (flips.DRAWS + 1))


def test_each_drawn_sign_is_as_likely_as_the_other() -> None:
    patterns = libraries.numpy().unpackbits(flips._patterns("salt", 30), axis=1, count=30)
    assert patterns.shape == (flips.DRAWS, 30)
    # Five standard errors of a share of one half.
    assert abs(patterns.mean(axis=0) - 0.5).max() < 5 * 0.5 / math.sqrt(flips.DRAWS)


def test_many_pairs_are_decided_in_little_memory() -> None:
    """What was drawn for 16,000 pairs took 1 GB, more than a gate's job has."""
    chance = random.Random(1)
    weights = [chance.gauss(0.01, 1) for _ in range(4000)]
    tracemalloc.start()
    try:
        assert 0 < flips.p_value(weights, "many") < 1
        assert tracemalloc.get_traced_memory()[1] < 64 * 1024 * 1024
    finally:
        tracemalloc.stop()


def test_sixteen_differences_are_still_exact() -> None:
    assert flips.p_value([1.0] * 16, "") == 2.0**-16 == flips.smallest_p(16)


@pytest.mark.parametrize("weights", [[], [0.0] * 4])
def test_without_a_difference_nothing_is_shown(weights: list[float]) -> None:
    assert flips.p_value(weights, "") == 1.0


def test_the_estimate_is_the_t_interval_of_one_task() -> None:
    values = [0.1, 0.3, -0.2, 0.5, 0.05, 0.2]
    found = estimate([values])
    low, high = stats.t.interval(0.95, len(values) - 1, loc=sum(values) / 6, scale=stats.sem(values))
    assert (found.lower(0.025), found.upper(0.025)) == pytest.approx((low, high))
    assert found.freedom == pytest.approx(5)


def test_two_tasks_of_unequal_spread_are_welchs_interval() -> None:
    quiet, loud = [0.1, 0.11, 0.12, 0.1], [0.5, -0.4, 0.9, 0.1, 0.7, -0.6]
    found = estimate([quiet, loud])
    welch = stats.ttest_ind(quiet, [-value for value in loud], equal_var=False)
    low, high = welch.confidence_interval(0.9)
    assert found.freedom == pytest.approx(welch.df)
    assert (found.lower(0.05), found.upper(0.05)) == pytest.approx((low / 2, high / 2))


def test_each_task_counts_alike_however_many_pairs_it_has() -> None:
    assert estimate([[0.0, 0.0], [1.0] * 50]).mean == 0.5


def test_equal_differences_have_no_spread_and_do_not_divide_by_zero() -> None:
    found = estimate([[0.25] * 3, [0.75] * 3])
    assert (found.mean, found.error, found.lower(0.01)) == (0.5, 0.0, 0.5)


def test_tiny_spreads_do_not_vanish_into_a_division_by_zero() -> None:
    assert math.isfinite(estimate([[0.0, 1e-160], [0.0, 1e-160]]).freedom)


def test_s_d_is_what_the_standard_error_comes_from() -> None:
    tasks = [[0.1, 0.4, -0.2], [0.0, 1.0, 2.0]]
    assert estimate(tasks).error == pytest.approx(spread(tasks) / math.sqrt(6))


@given(COUNT, COUNT, COUNT, COUNT)
def test_fisher_is_scipys(less: int, less_failed: int, more: int, more_failed: int) -> None:
    table = [[less, less_failed], [more, more_failed]]
    found = exact.fisher(less, less + less_failed, more, more + more_failed)
    assert found == pytest.approx(stats.fisher_exact(table, alternative="less").pvalue)


@given(COUNT, COUNT)
def test_the_sign_test_is_the_binomial_one(won: int, lost: int) -> None:
    expected = stats.binomtest(won, won + lost, alternative="greater").pvalue if won + lost else 1.0
    assert exact.sign(won, lost) == pytest.approx(expected)


def test_counts_beyond_a_double_do_not_overflow() -> None:
    assert 0 < exact.sign(1200, 900) < 1e-9
    assert 0 < exact.fisher(400, 1000, 900, 1000) < 1e-9


def test_holm_multiplies_the_smallest_and_never_falls() -> None:
    assert exact.holm([0.04, 0.01, 0.03]) == pytest.approx([0.06, 0.03, 0.06])
    assert exact.holm([0.9, 0.8]) == [1.0, 1.0]
    assert exact.holm([]) == []


@pytest.mark.parametrize(
    ("new", "of_new", "old", "of_old", "low", "high"),
    [
        # From table II of Newcombe's paper: method 10, two-sided 95 %.
        (56, 70, 48, 80, 0.0524, 0.3339),
        (9, 10, 3, 10, 0.1705, 0.8090),
        (5, 56, 0, 29, -0.0381, 0.1926),
        (10, 10, 0, 10, 0.6075, 1.0),
    ],
)
def test_newcombes_published_intervals(new: int, of_new: int, old: int, of_old: int, low: float, high: float) -> None:
    assert exact.newcombe(new, of_new, old, of_old, 0.025) == pytest.approx(low, abs=1e-4)
    assert -exact.newcombe(old, of_old, new, of_new, 0.025) == pytest.approx(high, abs=1e-4)


@pytest.mark.parametrize(
    ("direction", "scale", "old", "new", "d"),
    [
        ("min", "ratio", 100.0, 80.0, math.log(1.25)),
        ("max", "ratio", 80.0, 100.0, math.log(1.25)),
        ("min", "linear", 3.0, -1.0, 4.0),
        ("max", "linear", -1.0, 3.0, 4.0),
        ("min", "ratio", 0.0, 1.0, None),
        ("min", "ratio", 1.0, -1.0, None),
        ("min", "linear", 1e308, -1e308, None),
    ],
)
def test_a_difference_is_above_zero_when_the_candidate_is_better(
    direction: Direction, scale: Scale, old: float, new: float, d: float | None
) -> None:
    found = difference(Metric(name="m", direction=direction, scale=scale), old, new)
    assert found == (None if d is None else pytest.approx(d))


def test_gains_and_bounds_are_shares_of_the_incumbents_cost() -> None:
    assert gain("ratio", math.log(100 / 80)) == pytest.approx(0.20)
    assert asked("ratio", 0.20) == pytest.approx(math.log(100 / 80))
    assert gain("ratio", allowed("ratio", 0.20)) == pytest.approx(-0.20)
    assert (gain("linear", 3.0), asked("linear", 3.0), allowed("linear", 3.0)) == (3.0, 3.0, -3.0)
    assert asked("ratio", 1.0) is None
    assert gain("ratio", -1000.0) == -sys.float_info.max


def test_the_level_is_shared_by_generations_and_looks() -> None:
    assert levels.level(policy()) == 0.05
    assert levels.level(policy(generations=4)) == 0.0125
    two = policy(generations=4, repeats=Repeats(confirm=10, most=20))
    assert (levels.looks(two), levels.level(two)) == (2, 0.00625)
    assert (levels.planned(two, 1), levels.planned(two, 2)) == (10, 20)


@pytest.mark.parametrize(("level", "tasks", "least"), [(0.05, 1, 5), (0.0125, 1, 7), (0.05, 3, 6), (0.00625, 3, 8)])
def test_so_many_pairs_are_the_least_that_can_decide(level: float, tasks: int, least: int) -> None:
    assert levels.least(level, tasks) == least


@pytest.mark.parametrize(("generation", "look"), [(1, 1), (-1, 1), (0, 2), (0, 0)])
def test_what_the_level_was_not_spread_over_is_refused(generation: int, look: int) -> None:
    with pytest.raises(UsageError, match="not one of"):
        levels.check(policy(), generation, look)


@pytest.mark.parametrize("name", ["numpy", "scipy"])
def test_without_the_extra_the_error_names_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ConfigError, match=rf"{name} cannot be imported here.*outerloop-hpc\[stats\]"):
        libraries.require()


def test_less_than_the_confirming_pairs_cannot_be_the_most() -> None:
    with pytest.raises(ValueError, match="most is 5, less than the 10"):
        Repeats(confirm=10, most=5)


def test_a_metric_cannot_be_its_own_guardrail() -> None:
    rail = Guardrail(name="seconds", direction="max", scale="linear", max_regression=1.0)
    with pytest.raises(ValueError, match="seconds is named twice"):
        policy(guardrails=(rail,))


def test_p_does_not_depend_on_the_unit_of_the_metric() -> None:
    source = random.Random(3)
    weights = [source.gauss(0.2, 1.0) for _ in range(12)]
    assert flips.p_value(weights, "") == flips.p_value([1e-200 * weight for weight in weights], "")
