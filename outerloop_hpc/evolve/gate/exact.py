"""Tests of success counts, Holm's correction and Newcombe's bound: standard formulas in plain arithmetic. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist


def fisher(less: int, of_less: int, more: int, of_more: int) -> float:
    """Return Fisher's one-sided p for the first side succeeding less often: ``less`` of ``of_less`` against ``more``.

    Source: R. A. Fisher, The Design of Experiments (1935): the lower tail of the hypergeometric distribution.
    """
    successes = less + more
    total = math.comb(of_less + of_more, successes)
    tail = sum(
        math.comb(of_less, count) * math.comb(of_more, successes - count)
        for count in range(max(0, successes - of_more), less + 1)
    )
    return tail / total


def sign(won: int, lost: int) -> float:
    """Return the one-sided p of so many pairs won, of those that one arm alone won (McNemar's test, exact)."""
    pairs = won + lost
    return sum(math.comb(pairs, count) for count in range(won, pairs + 1)) / (1 << pairs)


def holm(ps: Sequence[float]) -> list[float]:
    """Return the p values adjusted for being several, in the order given (S. Holm, 1979)."""
    adjusted = [1.0] * len(ps)
    reached = 0.0
    for rank, index in enumerate(sorted(range(len(ps)), key=lambda index: ps[index])):
        reached = max(reached, min(1.0, (len(ps) - rank) * ps[index]))
        adjusted[index] = reached
    return adjusted


def newcombe(new: int, of_new: int, old: int, of_old: int, level: float) -> float:
    """Return the lower bound of the difference of two success rates, new - old; one-sided, missed with ``level``.

    Source: R. G. Newcombe, Statistics in Medicine 17 (1998), method 10: from Wilson's bounds of both.
    """
    z = NormalDist().inv_cdf(1 - level)
    rate_new, rate_old = new / of_new, old / of_old
    below = rate_new - _wilson(rate_new, of_new, -z)
    above = _wilson(rate_old, of_old, z) - rate_old
    return rate_new - rate_old - math.hypot(below, above)


def _wilson(rate: float, count: int, z: float) -> float:
    """Return Wilson's bound of a rate: the lower one for a z below zero, else the upper one."""
    middle = rate + z * z / (2 * count)
    return (middle + z * math.sqrt(rate * (1 - rate) / count + z * z / (4 * count * count))) / (1 + z * z / count)
