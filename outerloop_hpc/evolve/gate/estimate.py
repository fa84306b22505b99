"""The mean difference over tasks with its t interval. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from outerloop_hpc.evolve.gate.libraries import special


@dataclass(frozen=True, slots=True)
class Estimate:
    """The mean of the tasks' means: each task counts alike, however many pairs it has.

    Attributes:
        pairs: differences in all.
        mean: D, in the unit of the differences.
        error: its standard error; 0 where the differences of each task are all equal.
        freedom: degrees of freedom after Satterthwaite.
    """

    pairs: int
    mean: float
    error: float
    freedom: float

    def lower(self, level: float) -> float:
        """Return the one-sided bound: the true mean is below it with a chance of ``level``."""
        return self.mean - self._quantile(1 - level) * self.error

    def upper(self, level: float) -> float:
        """Return the bound on the other side."""
        return self.mean + self._quantile(1 - level) * self.error

    def _quantile(self, share: float) -> float:
        return float(special().stdtrit(self.freedom, share))


def estimate(tasks: Sequence[Sequence[float]]) -> Estimate:
    """Estimate from the differences of each task.

    Args:
        tasks: one sequence a task, each of at least two finite numbers.

    Returns:
        D = sum of means / T; error = sqrt(sum of s^2/n) / T; freedom = (sum v)^2 / sum v^2/(n-1), with v = s^2/n.
    """
    means = [mean(task) for task in tasks]
    parts = [variance(task) / len(task) for task in tasks]
    largest = max(parts)
    freedom = float(sum(len(task) - 1 for task in tasks))
    if largest > 0:
        shares = [part / largest for part in parts]
        freedom = math.fsum(shares) ** 2 / math.fsum(
            share**2 / (len(task) - 1) for share, task in zip(shares, tasks, strict=True)
        )
    return Estimate(
        sum(len(task) for task in tasks),
        math.fsum(means) / len(tasks),
        math.sqrt(math.fsum(parts)) / len(tasks),
        freedom,
    )


def mean(values: Sequence[float]) -> float:
    """Return the mean; it does not depend on the order."""
    return math.fsum(values) / len(values)


def variance(values: Sequence[float]) -> float:
    """Return the sample variance of at least two values; it does not depend on the order."""
    middle = mean(values)
    return math.fsum((value - middle) ** 2 for value in values) / (len(values) - 1)


def spread(tasks: Sequence[Sequence[float]]) -> float:
    """Return s_d, the root of the tasks' mean variance: error = s_d / sqrt(pairs) where tasks have equally many."""
    return math.sqrt(math.fsum(variance(task) for task in tasks) / len(tasks))
