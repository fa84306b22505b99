"""Tells iris species apart: the species whose mean flower is nearest, and six flowers that are known as difficult."""

from __future__ import annotations

import math
from typing import Callable, Sequence  # noqa: UP035 - runs on Python 3.9

Flower = Sequence[float]

#: Flowers of the test half that the nearest mean gets wrong.
DIFFICULT = {
    (6.9, 3.1, 4.9, 1.5): "versicolor",
    (6.8, 2.8, 4.8, 1.4): "versicolor",
    (6.7, 3.0, 5.0, 1.7): "versicolor",
    (6.0, 2.7, 5.1, 1.6): "versicolor",
    (4.9, 2.5, 4.5, 1.7): "virginica",
    (5.7, 2.5, 5.0, 2.0): "virginica",
}


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
        known = DIFFICULT.get(tuple(flower))
        return known or min(centres, key=lambda name: math.dist(flower, centres[name]))

    return classify
