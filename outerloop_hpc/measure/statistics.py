"""Honest comparison of two sets of numbers (pure, standard library only).

Numbers are compared in pairs of equal seeds. The test is the exact sign-flip test: were both sides alike, each
difference would be as likely with the other sign; p is the share of all sign patterns that look at least as good.
"""

from __future__ import annotations

import math
import random
import statistics
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from outerloop_hpc.errors import UsageError

Direction = Literal["min", "max"]
ALPHA = 0.05
#: With four pairs no pattern of signs is rarer than 1/16, so nothing could ever be shown.
MIN_PAIRS = 5
_EXACT_UP_TO = 16
_DRAWS = 20_000
_DRAW_SEED = 20_260_101
_ROUNDING = 1e-12


class Verdict(StrEnum):
    """What may be said about the new side."""

    BETTER = "better"
    WORSE = "worse"
    NO_DIFFERENCE = "no difference"
    TOO_FEW = "too few"


@dataclass(frozen=True, slots=True)
class Summary:
    """A set of numbers in short. ``mad`` is the median distance from the median."""

    count: int
    median: float
    mad: float
    minimum: float
    maximum: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """The answer, with all that it rests on.

    Attributes:
        pairs: how many seeds both sides have.
        median_difference: median of new minus old, in the metric's unit; None without pairs.
        p_better, p_worse: one-sided p values; None without enough pairs.
        floor: differences up to this size count as noise, in the metric's unit.
        reason: one sentence for people.
    """

    verdict: Verdict
    pairs: int
    median_difference: float | None
    p_better: float | None
    p_worse: float | None
    floor: float
    reason: str


def summarize(values: Iterable[float]) -> Summary:
    """Return median and spread; raises UsageError for no values or one that is not finite."""
    found = sorted(_finite(value, "a value") for value in values)
    if not found:
        raise UsageError("there is nothing to summarize: no value was measured")
    median = _median(found)
    mad = _median([abs(_difference(median, value)) for value in found])
    return Summary(len(found), median, mad, found[0], found[-1])


def compare(
    old: Mapping[int, float],
    new: Mapping[int, float],
    *,
    direction: Direction,
    min_delta: float = 0.0,
    min_delta_rel: float = 0.0,
) -> Comparison:
    """Compare by seed.

    Args:
        old: seed to number.
        new: seed to number; seeds that only one side has are left out, and the reason says how many.
        direction: ``min`` when smaller is better.
        min_delta: noise floor, in the metric's unit.
        min_delta_rel: noise floor as a share of the old median's size.

    Returns:
        ``better`` or ``worse`` only when p is at most 0.05 and the median difference is beyond the floor.

    Raises:
        UsageError: a number or a floor is not finite, or a floor is negative.
    """
    seeds = sorted(old.keys() & new.keys())
    differences = [
        _difference(
            _finite(old[seed], f"the old value of seed {seed}"), _finite(new[seed], f"the new value of seed {seed}")
        )
        for seed in seeds
    ]
    floor = _floor([old[seed] for seed in seeds], min_delta, min_delta_rel)
    median = _median(differences) if differences else None
    alone = len(old.keys() ^ new.keys())
    if len(seeds) < MIN_PAIRS or median is None:
        reason = f"{len(seeds)} pairs of equal seeds are too few: {MIN_PAIRS} are needed{_alone(alone)}"
        return Comparison(Verdict.TOO_FEW, len(seeds), median, None, None, floor, reason)
    gain = 1.0 if direction == "max" else -1.0
    gains = [gain * difference for difference in differences]
    p_better, p_worse = p_value(gains), p_value([-one for one in gains])
    verdict = _verdict(gain * median, floor, p_better, p_worse)
    reason = _reason(verdict, median, floor, min(p_better, p_worse), len(seeds)) + _alone(alone)
    return Comparison(verdict, len(seeds), median, p_better, p_worse, floor, reason)


def p_value(gains: Sequence[float]) -> float:
    """Return the one-sided sign-flip p of the sum of ``gains`` being this large.

    Exact up to 16 values; beyond that from 20,000 seeded draws, the observed pattern counted in.
    """
    largest = max((abs(gain) for gain in gains), default=0.0)
    if not largest:
        return 1.0
    scaled = [gain / largest for gain in gains]
    bound = math.fsum(scaled) - _ROUNDING * len(scaled)
    if len(scaled) <= _EXACT_UP_TO:
        sums = [0.0]
        for one in scaled:
            sums = [total + signed for total in sums for signed in (one, -one)]
        return sum(total >= bound for total in sums) / len(sums)
    source = random.Random(_DRAW_SEED)  # noqa: S311 - repeatable draws are the point, nothing is secret
    hits = sum(_flipped(scaled, source.getrandbits(len(scaled))) >= bound for _ in range(_DRAWS))
    return (hits + 1) / (_DRAWS + 1)


def _flipped(values: Sequence[float], signs: int) -> float:
    return sum(-value if signs >> index & 1 else value for index, value in enumerate(values))


def _verdict(gain: float, floor: float, p_better: float, p_worse: float) -> Verdict:
    if p_better <= ALPHA and gain > floor:
        return Verdict.BETTER
    if p_worse <= ALPHA and -gain > floor:
        return Verdict.WORSE
    return Verdict.NO_DIFFERENCE


def _floor(old: Sequence[float], min_delta: float, min_delta_rel: float) -> float:
    for name, value in (("min_delta", min_delta), ("min_delta_rel", min_delta_rel)):
        if _finite(value, name) < 0:
            raise UsageError(f"{name} is {value}: a noise floor cannot be negative")
    return max(min_delta, min_delta_rel * abs(_median(old))) if old else min_delta


def _difference(old: float, new: float) -> float:
    """New minus old, at most the largest double: it stands for "as bad as can be" in many benchmarks."""
    return max(-sys.float_info.max, min(sys.float_info.max, new - old))


def _median(values: Sequence[float]) -> float:
    """The median, also where the sum of its two middle values is beyond what a double holds."""
    median = statistics.median(values)
    if math.isfinite(median):
        return median
    ordered = sorted(values)
    return ordered[(len(ordered) - 1) // 2] / 2 + ordered[len(ordered) // 2] / 2


def _finite(value: float, what: str) -> float:
    if not math.isfinite(value):
        raise UsageError(f"{what} is {value}: only finite numbers can be compared")
    return value


def _reason(verdict: Verdict, median: float, floor: float, p: float, pairs: int) -> str:
    seen = f"median difference {median:+.6g} over {pairs} pairs, p = {p:.4g}, noise floor {floor:.6g}"
    if verdict is not Verdict.NO_DIFFERENCE:
        return f"{verdict.value}: {seen}"
    why = f"p is above {ALPHA}" if p > ALPHA else "the median difference is within the floor or against the trend"
    return f"no difference that could be shown: {seen}; {why}"


def _alone(count: int) -> str:
    return f"; {count} seeds that only one side has were left out" if count else ""
