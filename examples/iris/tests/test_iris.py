"""Run with: python3 -m unittest discover -s tests"""
# ruff: noqa: PT009 - unittest, because a container has nothing else

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import evaluate  # noqa: E402 - needs the folder above on the path


def run(seed: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: PLW1510 - the tests look at the exit status
        [sys.executable, "evaluate.py"],
        cwd=ROOT,
        env={**os.environ, "IRIS_SEED": seed, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
    )


class Data(unittest.TestCase):
    def test_is_the_published_table(self) -> None:
        flowers, species = evaluate.load()
        self.assertEqual([species.count(name) for name in ("setosa", "versicolor", "virginica")], [50, 50, 50])
        means = [sum(flower[column] for flower in flowers) / 150 for column in range(4)]
        self.assertEqual([round(mean, 6) for mean in means], [5.843333, 3.057333, 3.758, 1.199333])


class Evaluation(unittest.TestCase):
    def test_halves_share_no_flower_and_miss_none(self) -> None:
        _, species = evaluate.load()
        training, test = evaluate.halves(species, random.Random(1))
        self.assertEqual(sorted(training + test), list(range(150)))
        for name in set(species):
            self.assertEqual([sum(species[row] == name for row in half) for half in (training, test)], [25, 25])

    def test_the_same_seed_gives_the_same_number(self) -> None:
        self.assertEqual(run("7").stdout, run("7").stdout)

    def test_prints_one_line_with_an_accuracy(self) -> None:
        (line,) = run("3").stdout.splitlines()
        self.assertGreater(json.loads(line)["accuracy"], 0.8)

    def test_a_seed_that_is_no_number_is_refused(self) -> None:
        done = run("seven")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("IRIS_SEED", done.stderr)


if __name__ == "__main__":
    unittest.main()
