"""One quiet pass over 1,000 live runs of five running elements each, with more and more ended runs beside them.

A process of its own makes each pass: its whole wall time beyond that of ``python -c pass`` is the figure, imports
included. The states with fewer ended runs are the same folder with months of them put aside, measured in turn.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from tests.bench.figure import Figure, Peer, figure
from tests.bench.places import disk, memory, scratch
from tests.bench.processes import python, seconds
from tests.bench.queue import ELEMENTS
from tests.bench.samples import Samples, in_turn
from tests.bench.statefolder import PER_MONTH, StateFolder

LIVE = 1000
ENDED = (0, 10_000, 50_000)
_ROUNDS = 7
_GOAL_S, _GOAL_MB = 0.5, 150


@dataclass(slots=True)
class Passes:
    """Makes passes over one state folder and remembers how much memory each took."""

    folder: StateFolder
    peaks: dict[int, list[float]] = field(default_factory=dict)

    def one(self, ended: int) -> float:
        """Make one pass with so many ended runs in place; returns wall seconds.

        Raises:
            RuntimeError: the pass did not see what is there.
        """
        self.folder.show_ended(ended // PER_MONTH)
        taken, output = python("-m", "tests.bench.onepass", str(self.folder.root))
        said: dict[str, Any] = json.loads(output)
        if (said["live"], said["alive"], said["faults"]) != (LIVE, LIVE * ELEMENTS, 0):
            raise RuntimeError(f"the pass saw something else than {LIVE} quiet runs: {said}")
        self.peaks.setdefault(ended, []).append(said["peak_mib"] * 2**20 / 1e6)
        return taken


def measure() -> list[Figure]:
    """Build the state folder, measure, remove it."""
    with scratch(memory() or disk()) as parent:
        folder = StateFolder(Path(parent) / "state")
        folder.add_live(LIVE)
        folder.add_ended(max(ENDED))
        passes = Passes(folder)
        measures: dict[str, Callable[[], float]] = {"start": partial(seconds, ("-c", "pass"))}
        measures |= {str(ended): partial(passes.one, ended) for ended in ENDED}
        taken = in_turn(measures, _ROUNDS)
    return figures(taken, {ended: Samples(tuple(peaks)) for ended, peaks in passes.peaks.items()})


def figures(taken: dict[str, Samples], peaks: dict[int, Samples]) -> list[Figure]:
    """Turn wall times into seconds beyond interpreter start; the largest history is the headline."""
    start = taken["start"].median
    found = [
        figure(
            f"reconcile_pass.ended_{ended}",
            "s beyond interpreter start",
            Samples(tuple(value - start for value in taken[str(ended)].values)),
            goal=f"< {_GOAL_S}",
        )
        for ended in ENDED
    ]
    empty, full = found[0], found[-1]
    beside_empty = Peer("no ended runs", empty.value, full.value / empty.value)
    headline = Figure(
        "reconcile_pass", full.value, full.unit, beside_empty, f"< {_GOAL_S}, ratio near 1", full.low, full.high
    )
    return [
        headline,
        *found[:-1],
        figure("reconcile_pass.peak_memory", "MB", peaks[max(ENDED)], goal=f"< {_GOAL_MB}"),
        figure("reconcile_pass.peak_memory.ended_0", "MB", peaks[0], goal=f"< {_GOAL_MB}"),
    ]
