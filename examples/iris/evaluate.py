"""Measures the solver: accuracy on one half of Fisher's data, after training on the other.

The halves were drawn once and are kept in data/split.csv, so that numbers of two solvers are about the same flowers.
The seed in IRIS_SEED shuffles the training half, for solvers to which the order matters.

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

DATA = Path(__file__).resolve().parent / "data"


def load() -> tuple[list[tuple[float, ...]], list[str]]:
    """Return the flowers and, in the same order, their species."""
    with (DATA / "iris.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))[1:]
    return [tuple(float(cell) for cell in row[:4]) for row in rows], [row[4] for row in rows]


def halves(species: list[str], rng: random.Random) -> tuple[list[int], list[int]]:
    """Return the row numbers of the training half and of the test half, each with as many flowers of every species."""
    with (DATA / "split.csv").open(newline="", encoding="utf-8") as file:
        named = [row["half"] for row in csv.DictReader(file)]
    training = [row for row in range(len(species)) if named[row] == "training"]
    rng.shuffle(training)
    return training, [row for row in range(len(species)) if named[row] == "test"]


def score(flowers: list[tuple[float, ...]], species: list[str], training: list[int], test: list[int]) -> float:
    """Return the share of test flowers that the solver names rightly."""
    classify = solver.train([flowers[row] for row in training], [species[row] for row in training])
    return sum(classify(flowers[row]) == species[row] for row in test) / len(test)


def measure(seed: int) -> float:
    """Return the accuracy for one seed."""
    flowers, species = load()
    return score(flowers, species, *halves(species, random.Random(seed)))


def main() -> int:
    text = os.environ.get("IRIS_SEED", "0")
    try:
        seed = int(text)
    except ValueError:
        print(f"evaluate: IRIS_SEED must be a whole number, not {text!r}", file=sys.stderr)
        return 2
    print(json.dumps({"accuracy": round(measure(seed), 6), "seed": seed}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
