"""One figure of a benchmark, and ``build/bench.json``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench.samples import Samples, ratio_of_pairs


@dataclass(frozen=True, slots=True)
class Peer:
    """What a figure stands beside: another program, or the number that was aimed at."""

    name: str
    value: float
    ratio: float


@dataclass(frozen=True, slots=True)
class Figure:
    """One number. ``goal`` and ``low`` to ``high`` are for the table; the file keeps to name, value, unit and peer."""

    name: str
    value: float
    unit: str
    peer: Peer | None = None
    goal: str = ""
    low: float | None = None
    high: float | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the object of ``bench.json``."""
        found: dict[str, Any] = {"name": self.name, "value": self.value, "unit": self.unit}
        if self.peer is not None:
            found |= {"peer": self.peer.name, "peer_value": self.peer.value, "ratio": self.peer.ratio}
        return found


def figure(name: str, unit: str, samples: Samples, *, goal: str = "") -> Figure:
    """Make a figure of repeated measurements: the median, with its spread."""
    return Figure(name, samples.median, unit, None, goal, samples.low, samples.high)


def beside(name: str, unit: str, ours: Samples, peer: str, theirs: Samples, *, goal: str = "") -> Figure:
    """Make a figure of pairs; the ratio is the median of the pairs' ratios."""
    stands = Peer(peer, theirs.median, ratio_of_pairs(ours.values, theirs.values))
    return Figure(name, ours.median, unit, stands, goal, ours.low, ours.high)


def write(path: Path, figures: Sequence[Figure]) -> None:
    """Write ``bench.json``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps([one.as_json() for one in figures], indent=1) + "\n", encoding="utf-8")
