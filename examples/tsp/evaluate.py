"""Measures the solver: the length of its tour through the places of one instance of TSPLIB.

The search is bounded by looks at distances, not by time, so a seed gives the same tour on every machine. Prints one
line of JSON, {"success": true, "length": 7700, "gap": 0.021, …}. Needs Python 3.9 or newer and nothing else.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from pathlib import Path

from solver.search import solve

DATA = Path(__file__).resolve().parent / "data"
#: Lengths of shortest tours, as published with TSPLIB.
OPTIMA = {"berlin52": 7542, "eil51": 426, "st70": 675}
LOOKS = 2_000_000


def places(name: str) -> list[tuple[float, float]]:
    """Return the coordinates of an instance, in its order."""
    lines = (DATA / f"{name}.tsp").read_text(encoding="utf-8").splitlines()
    rows = lines[lines.index("NODE_COORD_SECTION") + 1 : lines.index("EOF")]
    return [(float(x), float(y)) for _, x, y in (row.split() for row in rows)]


def distances(points: list[tuple[float, float]]) -> list[list[int]]:
    """Return all distances, rounded to whole numbers as TSPLIB's EUC_2D says."""
    return [[int(((a - c) ** 2 + (b - d) ** 2) ** 0.5 + 0.5) for c, d in points] for a, b in points]


def length(tour: list[int], between: list[list[int]]) -> int:
    """Return the length of a closed tour."""
    return sum(between[here][there] for here, there in zip(tour, tour[1:] + tour[:1]))


def main() -> int:
    name = " ".join(sys.argv[1:])
    text = os.environ.get("TSP_SEED") or os.environ.get("OL_SEED") or "0"
    if name not in OPTIMA or not text.isdecimal():
        print(f"usage: [TSP_SEED=7] evaluate.py {'|'.join(OPTIMA)}", file=sys.stderr)
        return 2
    between = distances(places(name))
    began = time.perf_counter()
    tour = solve(between, LOOKS, random.Random(int(text)))
    seconds = time.perf_counter() - began
    whole = sorted(tour) == list(range(len(between)))
    found = length(tour, between) if whole else 0
    gap = found / OPTIMA[name] - 1 if whole else 1.0
    print(json.dumps({"success": whole, "length": found or 10**9, "gap": round(gap, 6), "seconds": round(seconds, 3)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
