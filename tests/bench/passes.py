"""Passes a second, scheduler calls and memory, by how many tries are live; the reference's sweep beside them.

A live try of ours is one element of an array of five; one of the reference's is a record with a job.
"""

from __future__ import annotations

from pathlib import Path

from tests.bench import peer
from tests.bench.figure import Figure, Peer
from tests.bench.peer import Here, Place
from tests.bench.places import disk, memory, scratch
from tests.bench.queue import ELEMENTS
from tests.bench.reconcile_vs_reference import prepare, reference, sweep
from tests.bench.samples import Samples

#: Live tries, and how often each side sweeps them.
_TRIES = {0: (9, 9), 100: (9, 5), 1000: (9, 3), 10_000: (5, 1)}


def measure() -> list[Figure]:
    """Measure each number of live tries."""
    with scratch(memory() or disk()) as parent, peer.place(parent) as place:
        return [figure for tries in _TRIES for figure in _figures(place, parent, tries)]


def _figures(place: Place | str, parent: Path, tries: int) -> list[Figure]:
    rounds, theirs = _TRIES[tries]
    live = tries // ELEMENTS
    folder = prepare(parent / f"tries-{tries}", live, 0, ELEMENTS)
    ours: Place = Here(parent) if isinstance(place, str) else place
    said = sweep(ours, folder, rounds, live, ELEMENTS)
    rate = Samples(tuple(1 / seconds for seconds in said["seconds"]))
    other, goal = None, ""
    if isinstance(place, str):
        goal = f"left out: the reference: {place}"
    else:
        swept = Samples(tuple(1 / seconds for seconds in reference(place, parent, tries, tries, theirs)))
        other = Peer(peer.named(place), swept.median, rate.median / swept.median)
    return [
        Figure(f"pass.tries_{tries}", rate.median, "passes/s", other, goal, rate.low, rate.high),
        Figure(
            f"pass.tries_{tries}.calls",
            said["calls"],
            "calls",
            Peer("one a try", tries, said["calls"] / tries) if tries else None,
        ),
        Figure(f"pass.tries_{tries}.memory", said["peak_mib"] * 2**20 / 1e6, "MB"),
    ]
