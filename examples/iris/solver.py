"""Tells iris species apart: the species whose mean flower is nearest. Plain on purpose; there is much to gain."""

from __future__ import annotations

import math
from typing import Callable, Sequence  # noqa: UP035 - runs on Python 3.9

Flower = Sequence[float]


def train(flowers: Sequence[Flower], species: Sequence[str]) -> Callable[[Flower], str]:
    """Learn from measured flowers.

    flowers: sequence of (sepal length, sepal width, petal length, petal width) in cm.
    species: their names, in the same order.
    Returns a function from one flower to the name of a species.
    """
    centres: dict[str, list[float]] = {}
    for name in sorted(set(species)):
        mine = [flower for index, flower in enumerate(flowers) if species[index] == name]
        centres[name] = [sum(column) / len(mine) for column in zip(*mine)]  # noqa: B905 - runs on Python 3.9

    def classify(flower: Flower) -> str:
        return min(centres, key=lambda name: math.dist(flower, centres[name]))

    return classify
