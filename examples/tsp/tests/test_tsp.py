"""Checks of the ruler: what it says must be true of any solver."""

from __future__ import annotations

import itertools
import random
import unittest

import evaluate
from solver.search import solve


class Ruler(unittest.TestCase):
    def test_instances_are_whole(self) -> None:
        for name, size in (("berlin52", 52), ("eil51", 51), ("st70", 70)):
            points = evaluate.places(name)
            self.assertEqual(len(set(points)), size)
            between = evaluate.distances(points)
            self.assertTrue(all(between[a][b] == between[b][a] for a in range(size) for b in range(size)))

    def test_a_tour_visits_every_place_and_never_beats_the_published_optimum(self) -> None:
        for name, optimum in evaluate.OPTIMA.items():
            between = evaluate.distances(evaluate.places(name))
            tour = solve(between, 300_000, random.Random(1))
            self.assertEqual(sorted(tour), list(range(len(between))))
            self.assertGreaterEqual(evaluate.length(tour, between), optimum)

    def test_small_instances_are_solved(self) -> None:
        source = random.Random(5)
        points = [(source.randrange(100), source.randrange(100)) for _ in range(7)]
        between = evaluate.distances(points)
        best = min(evaluate.length([0, *rest], between) for rest in itertools.permutations(range(1, 7)))
        self.assertEqual(evaluate.length(solve(between, 100_000, random.Random(2)), between), best)


if __name__ == "__main__":
    unittest.main()
