"""A steward without any model: makes an evaluation that was frozen draw its halves from the seed again.

It follows the convention of every agent: brief on stdin, workspace as working folder, exit status and a last line of
JSON. Python 3.9 or newer and nothing else, since a container may have no more.
"""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path

SUMMARY = '''\
"""Measures the solver: mean accuracy over 20 random halves of Fisher's data, drawn from the seed in IRIS_SEED.

Prints one line of JSON, {"accuracy": 0.93, …}. Needs Python 3.9 or newer and nothing else.
"""'''

HALVES = '''\
def halves(species: list[str], rng: random.Random) -> tuple[list[int], list[int]]:
    """Draw a training half and a test half, each with as many flowers of every species; returns row numbers."""
    training: list[int] = []
    test: list[int] = []
    for name in sorted(set(species)):
        rows = [row for row, other in enumerate(species) if other == name]
        rng.shuffle(rows)
        training += rows[: len(rows) // 2]
        test += rows[len(rows) // 2 :]
    return training, test'''

MEASURE = '''\
def measure(seed: int, splits: int = 20) -> float:
    """Return the mean accuracy over ``splits`` pairs of halves drawn from ``seed``."""
    flowers, species = load()
    rng = random.Random(seed)
    scores = [score(flowers, species, *halves(species, rng)) for _ in range(splits)]
    return sum(scores) / len(scores)'''

TEST = '''\
"""The seed decides what is measured: a solver cannot know the test half before."""

from __future__ import annotations

import random
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import evaluate  # noqa: E402 - needs the folder above on the path


class Resampling(unittest.TestCase):
    def test_another_seed_draws_other_test_flowers(self) -> None:
        _, species = evaluate.load()
        drawn = {tuple(sorted(evaluate.halves(species, random.Random(seed))[1])) for seed in range(20)}
        self.assertEqual(len(drawn), 20)
'''


def main() -> int:
    if "resample" not in sys.stdin.read():
        return end(10, "no-change", "The order asks for no resampling, and I can do nothing else.")
    workspace = Path.cwd()
    if not (workspace / "data" / "split.csv").exists():
        return end(10, "no-change", "No split is frozen here: the halves are drawn from the seed already.")
    mend(workspace)
    report = (
        "The halves are drawn from IRIS_SEED now, 20 pairs of them for each number, and data/split.csv is gone. "
        "tests/test_resampling.py keeps it so. The solver is as it was."
    )
    return end(0, "done", report)


def mend(workspace: Path) -> None:
    """Rewrite two functions and the summary of evaluate.py, remove the frozen split, leave a test behind."""
    path = workspace / "evaluate.py"
    text = path.read_text(encoding="utf-8")
    module = ast.parse(text)
    wanted = {"halves": HALVES, "measure": MEASURE}
    found = [
        (node, wanted[node.name]) for node in module.body if isinstance(node, ast.FunctionDef) and node.name in wanted
    ]
    lines = text.splitlines()
    # From the end, so that line numbers before stay what they are.
    for node, new in [*reversed(found), (module.body[0], SUMMARY)]:
        lines[node.lineno - 1 : node.end_lineno] = new.splitlines()
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    (workspace / "data" / "split.csv").unlink()
    (workspace / "tests" / "test_resampling.py").write_text(TEST, encoding="utf-8")


def end(status: int, outcome: str, report: str) -> int:
    """Say what came of it, in the last line."""
    print(json.dumps({"outcome": outcome, "report": report, "turns": 1}))
    return status


if __name__ == "__main__":
    sys.exit(main())
