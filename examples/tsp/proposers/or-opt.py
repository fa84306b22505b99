"""A proposer without any model: it adds moves of short pieces (Or-opt) to the local search, once.

It reads OL_EVIDENCE, works on the files in OL_WORKSPACE, writes whole files into OL_OVERLAY and its reasons into
OL_PROPOSAL. When its idea was measured before it has no other: exit status 10.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

IMPROVE = '''"""The function under improvement: make a tour shorter by local moves, until none helps."""

from __future__ import annotations


def improve(tour, between, looks):
    """Return a tour that neither a reversal of a piece (2-opt) nor a move of a short one (Or-opt) makes shorter.

    ``looks.take(n)`` must be called for every n distances that are looked at; it is False when there are no more.
    """
    tour = list(tour)
    while looks.left > 0 and (reversals(tour, between, looks) or moves(tour, between, looks)):
        pass
    return tour


def reversals(tour, between, looks):
    """Reverse pieces while that helps; says whether it did."""
    size, helped = len(tour), False
    for i in range(size - 1):
        for j in range(i + 2, size if i else size - 1):
            if not looks.take(4):
                return helped
            a, b, c, d = tour[i], tour[i + 1], tour[j], tour[(j + 1) % size]
            if between[a][c] + between[b][d] < between[a][b] + between[c][d]:
                tour[i + 1 : j + 1] = reversed(tour[i + 1 : j + 1])
                helped = True
    return helped


def moves(tour, between, looks):
    """Move pieces of one to three places to where they fit better; says whether any was moved."""
    size, helped = len(tour), False
    for count in (1, 2, 3):
        for start in range(size):
            piece = [tour[(start + k) % size] for k in range(count)]
            before, after = tour[start - 1], tour[(start + count) % size]
            saved = between[before][piece[0]] + between[piece[-1]][after] - between[before][after]
            rest = [place for place in tour if place not in piece]
            for at in range(len(rest)):
                if not looks.take(3):
                    return helped
                here, there = rest[at], rest[(at + 1) % len(rest)]
                if between[here][piece[0]] + between[piece[-1]][there] - between[here][there] < saved:
                    tour[:] = rest[: at + 1] + piece + rest[at + 1 :]
                    helped = True
                    break
                if between[here][piece[-1]] + between[piece[0]][there] - between[here][there] < saved:
                    tour[:] = rest[: at + 1] + piece[::-1] + rest[at + 1 :]
                    helped = True
                    break
    return helped
'''

PROPOSAL = """# Move short pieces, too

**Pattern.** {pattern}

**Change.** `solver/improve.py` goes on after 2-opt with moves of pieces of one to three places (Or-opt), forwards and
backwards, and ends when neither helps.

**Expected.** A smaller `length` on every instance, most where places lie in clusters: a place between two clusters is
moved in one step, which 2-opt needs two reversals for, the first of which makes the tour longer.

**Risks.** Each round costs more looks, so there are fewer shakes.
"""


def main() -> int:
    evidence, overlay = Path(os.environ["OL_EVIDENCE"]), Path(os.environ["OL_OVERLAY"])
    rows = json.loads((evidence / "selected-rows.json").read_text(encoding="utf-8"))
    if (evidence / "prior-proposal.md").exists() or int(os.environ["OL_GENERATION"]) > 0:
        return 10
    worst = max(rows, key=lambda row: row["metrics"].get("length", 0), default=None)
    pattern = "Nothing was measured yet; tours of 2-opt alone are known to keep single places on the wrong side."
    if worst is not None:
        pattern = f"Task {worst['task']}, {worst['arm']}, seed {worst['seed']} had the longest tour."
    (overlay / "solver").mkdir(parents=True, exist_ok=True)
    (overlay / "solver" / "improve.py").write_text(IMPROVE, encoding="utf-8")
    Path(os.environ["OL_PROPOSAL"]).write_text(PROPOSAL.format(pattern=pattern), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
