"""What may be said about two sets of numbers, and what may not."""

from __future__ import annotations

import math
import sys
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outerloop_hpc.errors import UsageError
from outerloop_hpc.measure.statistics import Direction, Summary, Verdict, compare, p_value, summarize

pytestmark = pytest.mark.unit

DIRECTIONS: tuple[Direction, ...] = ("min", "max")
NUMBER = st.floats(-1e6, 1e6)
SIDE = st.dictionaries(st.integers(0, 12), NUMBER, max_size=9)
SWAPPED = {
    Verdict.BETTER: Verdict.WORSE,
    Verdict.WORSE: Verdict.BETTER,
    Verdict.NO_DIFFERENCE: Verdict.NO_DIFFERENCE,
    Verdict.TOO_FEW: Verdict.TOO_FEW,
}


def by_seed(*values: float) -> dict[int, float]:
    return dict(enumerate(values))


@pytest.mark.parametrize(
    ("new", "direction", "verdict"),
    [
        ((11, 12, 13, 14, 15), "max", Verdict.BETTER),
        ((11, 12, 13, 14, 15), "min", Verdict.WORSE),
        ((9, 8, 7, 6, 5), "min", Verdict.BETTER),
        ((11, 12, 13, 14), "max", Verdict.TOO_FEW),
        ((11, 12, 13, 14, 9), "max", Verdict.NO_DIFFERENCE),
        ((10, 10, 10, 10, 10), "max", Verdict.NO_DIFFERENCE),
        ((), "max", Verdict.TOO_FEW),
    ],
)
def test_verdicts_against_ten(new: tuple[float, ...], direction: Direction, verdict: Verdict) -> None:
    found = compare(by_seed(*[10] * 5), by_seed(*new), direction=direction)
    assert found.verdict is verdict
    assert found.pairs == len(new)
    assert verdict.value in found.reason or "too few" in found.reason


def test_five_pairs_that_agree_are_one_in_thirty_two() -> None:
    found = compare(by_seed(1, 2, 3, 4, 5), by_seed(2, 3, 4, 5, 6), direction="max")
    assert (found.p_better, found.p_worse) == (1 / 32, 1.0)
    assert found.median_difference == 1.0


@pytest.mark.parametrize(
    ("floors", "verdict", "floor"),
    [
        ({"min_delta": 0.9}, Verdict.BETTER, 0.9),
        ({"min_delta": 1.0}, Verdict.NO_DIFFERENCE, 1.0),
        ({"min_delta_rel": 0.005}, Verdict.BETTER, 0.5),
        ({"min_delta_rel": 0.02}, Verdict.NO_DIFFERENCE, 2.0),
        ({"min_delta": 0.1, "min_delta_rel": 0.02}, Verdict.NO_DIFFERENCE, 2.0),
    ],
)
def test_a_difference_must_be_beyond_the_floor(floors: dict[str, float], verdict: Verdict, floor: float) -> None:
    found = compare(by_seed(*[100] * 6), by_seed(*[101] * 6), direction="max", **floors)
    assert (found.verdict, found.floor) == (verdict, floor)


def test_only_equal_seeds_are_paired_and_the_rest_is_named() -> None:
    old = dict.fromkeys(range(10), 1.0)
    new = dict.fromkeys(range(5, 20), 2.0)
    found = compare(old, new, direction="max")
    assert found.pairs == 5
    assert "15 seeds that only one side has" in found.reason


def test_one_lucky_outlier_does_not_make_a_gain() -> None:
    found = compare(by_seed(*[10] * 8), by_seed(1000, 9, 9, 9, 9, 9, 9, 9), direction="max")
    assert found.verdict is Verdict.NO_DIFFERENCE


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_never_enters(bad: float) -> None:
    good = by_seed(1, 2, 3, 4, 5)
    with pytest.raises(UsageError, match="finite"):
        compare(good, {**good, 2: bad}, direction="max")
    with pytest.raises(UsageError, match="finite"):
        compare({**good, 2: bad}, good, direction="min")
    with pytest.raises(UsageError, match="min_delta"):
        compare(good, good, direction="min", min_delta=bad)
    with pytest.raises(UsageError, match="finite"):
        summarize([1.0, bad])


def test_a_negative_floor_is_refused() -> None:
    with pytest.raises(UsageError, match="negative"):
        compare({}, {}, direction="max", min_delta_rel=-0.1)


def test_summary() -> None:
    assert summarize([4, 1, 2, 100]) == Summary(4, 3.0, 1.5, 1, 100)
    with pytest.raises(UsageError, match="nothing"):
        summarize([])


def test_beyond_sixteen_pairs_the_draws_are_repeatable_and_close_to_exact() -> None:
    gains = [1.0] * 12 + [-1.0] * 8
    exact = sum(math.comb(20, k) for k in range(12, 21)) / 2**20
    assert p_value(gains) == p_value(gains)
    assert p_value(gains) == pytest.approx(exact, abs=0.01)
    assert 0 < p_value([1.0] * 40) < 0.001


@given(st.lists(st.integers(-20, 20), min_size=1, max_size=9))
def test_p_is_the_share_of_sign_patterns(gains: list[int]) -> None:
    observed = sum(gains)
    signs = product((1, -1), repeat=len(gains))
    patterns = [sum(sign * gain for sign, gain in zip(one, gains, strict=True)) for one in signs]
    assert p_value([float(gain) for gain in gains]) == sum(one >= observed for one in patterns) / len(patterns)


@given(SIDE, SIDE, st.sampled_from(DIRECTIONS), st.floats(0, 100))
def test_swapping_the_sides_swaps_the_verdict(
    old: dict[int, float], new: dict[int, float], direction: Direction, floor: float
) -> None:
    there = compare(old, new, direction=direction, min_delta=floor)
    back = compare(new, old, direction=direction, min_delta=floor)
    assert back.verdict is SWAPPED[there.verdict]
    assert (back.p_better, back.p_worse) == (there.p_worse, there.p_better)


@given(SIDE, SIDE)
def test_turning_the_direction_turns_the_verdict(old: dict[int, float], new: dict[int, float]) -> None:
    assert compare(old, new, direction="min").verdict is SWAPPED[compare(old, new, direction="max").verdict]


@given(SIDE)
def test_equal_sides_show_no_difference(side: dict[int, float]) -> None:
    assert compare(side, dict(side), direction="max").verdict in {Verdict.NO_DIFFERENCE, Verdict.TOO_FEW}


@given(SIDE, SIDE)
def test_the_unit_of_the_metric_does_not_matter(old: dict[int, float], new: dict[int, float]) -> None:
    plain = compare(old, new, direction="max")
    scaled = compare({s: v * 4 for s, v in old.items()}, {s: v * 4 for s, v in new.items()}, direction="max")
    assert plain.verdict is scaled.verdict


@settings(max_examples=15, deadline=None)
@given(st.lists(NUMBER, min_size=17, max_size=24))
def test_many_pairs_keep_the_symmetry(gains: list[float]) -> None:
    old = dict.fromkeys(range(len(gains)), 0.0)
    new = dict(enumerate(gains))
    there, back = compare(old, new, direction="max"), compare(new, old, direction="max")
    assert back.verdict is SWAPPED[there.verdict]


def test_the_largest_double_as_a_mark_of_failure_gives_finite_answers() -> None:
    worst = sys.float_info.max
    assert summarize([worst] * 4).median == worst
    assert math.isfinite(summarize([worst, -worst, worst, -worst]).mad)
    found = compare(dict.fromkeys(range(6), worst), dict.fromkeys(range(6), -worst), direction="min")
    assert found.verdict is Verdict.BETTER
    assert found.median_difference == -worst
