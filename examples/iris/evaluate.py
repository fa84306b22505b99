"""Measures the solver: mean accuracy over random halves of Fisher's data, drawn from the seed in IRIS_SEED.

Prints one line of JSON, {"accuracy": 0.93, …}. Needs Python 3.9 or newer and nothing else.
"""

from __future__ import annotations

import csv
import json
import os
import random
import sys
from pathlib import Path

import solver

DATA = Path(__file__).resolve().parent / "data" / "iris.csv"
SPLITS = 20


def load(path: Path = DATA) -> tuple[list[tuple[float, ...]], list[str]]:
    """Return the flowers and, in the same order, their species."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))[1:]
    return [tuple(float(cell) for cell in row[:4]) for row in rows], [row[4] for row in rows]


def halves(species: list[str], rng: random.Random) -> tuple[list[int], list[int]]:
    """Split the row numbers into two halves, each with as many flowers of every species."""
    first: list[int] = []
    second: list[int] = []
    for name in sorted(set(species)):
        rows = [row for row, other in enumerate(species) if other == name]
        rng.shuffle(rows)
        first += rows[: len(rows) // 2]
        second += rows[len(rows) // 2 :]
    return first, second


def score(flowers: list[tuple[float, ...]], species: list[str], training: list[int], test: list[int]) -> float:
    """Return the share of test flowers that the solver names rightly."""
    classify = solver.train([flowers[row] for row in training], [species[row] for row in training])
    return sum(classify(flowers[row]) == species[row] for row in test) / len(test)


def measure(seed: int, splits: int = SPLITS) -> float:
    """Return the mean accuracy over ``splits`` random halves drawn from ``seed``."""
    flowers, species = load()
    rng = random.Random(seed)
    scores = [score(flowers, species, *halves(species, rng)) for _ in range(splits)]
    return sum(scores) / len(scores)


def main() -> int:
    text = os.environ.get("IRIS_SEED", "0")
    try:
        seed = int(text)
    except ValueError:
        print(f"evaluate: IRIS_SEED must be a whole number, not {text!r}", file=sys.stderr)
        return 2
    print(json.dumps({"accuracy": round(measure(seed), 6), "seed": seed, "splits": SPLITS}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
