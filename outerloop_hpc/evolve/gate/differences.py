"""How two readings of a metric are compared: logarithms of ratios or plain differences, above zero is better. Pure."""

from __future__ import annotations

import math
import sys

from outerloop_hpc.evolve.gate.policy import Guardrail, Metric, Scale

#: Squares of larger differences are beyond what a double holds.
_LARGEST = 1e150


def difference(metric: Metric | Guardrail, incumbent: float, candidate: float) -> float | None:
    """Return d of one pair: above zero when the candidate is better.

    On a ratio scale it is ln(incumbent / candidate) where less is better, on a linear one incumbent - candidate in the
    metric's unit; the other way round where more is better. None when it cannot be computed.
    """
    worse, better = (incumbent, candidate) if metric.direction == "min" else (candidate, incumbent)
    if metric.scale == "ratio":
        return math.log(worse) - math.log(better) if worse > 0 and better > 0 else None
    plain = worse - better
    return plain if abs(plain) <= _LARGEST else None


def gain(scale: Scale, d: float) -> float:
    """Return a difference as people read it: the share of the incumbent's cost that is saved, or the metric's unit."""
    if scale == "linear":
        return d
    try:
        return -math.expm1(-d)
    except OverflowError:
        return -sys.float_info.max


def asked(scale: Scale, effect: float) -> float | None:
    """Return the d of a gain that is asked for; None for a share of 1 or more, which no candidate reaches."""
    if scale == "linear":
        return effect
    return -math.log1p(-effect) if effect < 1 else None


def allowed(scale: Scale, regression: float) -> float:
    """Return the d, below zero, down to which getting worse is borne: -ln(1 + regression), or the unit's."""
    return -regression if scale == "linear" else -math.log1p(regression)


def shown(scale: Scale, value: float) -> str:
    """Write a gain for people: ``8.12 %`` or ``0.31``."""
    return f"{100 * value:.4g} %" if scale == "ratio" else f"{value:.6g}"
