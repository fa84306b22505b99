"""Repeated measurements: medians, spread, and pairs taken in turn so that a drifting machine hits both sides alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

Measure = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Samples:
    """What was measured, in the order of measuring; one unit."""

    values: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.values:
            raise ValueError("at least one value is needed")

    @property
    def median(self) -> float:
        """The middle value."""
        return median(self.values)

    @property
    def low(self) -> float:
        """The smallest value."""
        return min(self.values)

    @property
    def high(self) -> float:
        """The largest value."""
        return max(self.values)


def in_turn(measures: Mapping[str, Measure], rounds: int) -> dict[str, Samples]:
    """Measure A B C, A B C, … after one round that warms caches and is dropped."""
    taken: dict[str, list[float]] = {name: [] for name in measures}
    for number in range(rounds + 1):
        for name, measure in measures.items():
            value = measure()
            if number:
                taken[name].append(value)
    return {name: Samples(tuple(values)) for name, values in taken.items()}


def ratio_of_pairs(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Return the median of the ratios of neighbours: what both felt of the machine cancels out.

    Raises:
        ValueError: not the same number on both sides, or none.
    """
    if len(ours) != len(theirs) or not ours:
        raise ValueError(f"pairs are needed: {len(ours)} values of ours, {len(theirs)} of theirs")
    return median(a / b for a, b in zip(ours, theirs, strict=True))
