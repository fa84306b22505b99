"""Iterated local search: shake the tour, improve it, keep it when it is not much worse, until the looks are used up."""

from __future__ import annotations

import json
import random
from pathlib import Path

from solver.improve import improve

PARAMETERS = json.loads((Path(__file__).parent / "parameters.json").read_text(encoding="utf-8"))


class Looks:
    """How many looks at distances are left; a search that takes a look more is over."""

    def __init__(self, left: int) -> None:
        self.left = left

    def take(self, count: int = 1) -> bool:
        """Use some; False when they are used up."""
        self.left -= count
        return self.left > 0


def solve(between: list[list[int]], looks: int, source: random.Random) -> list[int]:
    """Return the best tour found.

    ``strength`` of the parameters: pieces that are exchanged to shake a tour. ``accept``: how much longer a tour may
    be, as a share, to be gone on from.
    """
    left = Looks(looks)
    tour = list(range(len(between)))
    source.shuffle(tour)
    here = best = improve(tour, between, left)
    while left.left > 0:
        new = improve(shaken(here, int(PARAMETERS["strength"]), source), between, left)
        if length(new, between) <= length(here, between) * (1 + float(PARAMETERS["accept"])):
            here = new
        if length(new, between) < length(best, between):
            best = new
    return best


def shaken(tour: list[int], strength: int, source: random.Random) -> list[int]:
    """Exchange two neighbouring pieces of a tour, so many times."""
    for _ in range(max(1, strength)):
        a, b, c = sorted(source.sample(range(len(tour) + 1), 3))
        tour = tour[:a] + tour[b:c] + tour[a:b] + tour[c:]
    return tour


def length(tour: list[int], between: list[list[int]]) -> int:
    """Return the length of a closed tour."""
    return sum(between[here][there] for here, there in zip(tour, tour[1:] + tour[:1]))
