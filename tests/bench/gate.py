"""How often the gate promotes what is no better, finds what is, and how often its intervals hold what is true.

Beside it, in the same worlds, the rule of the reference; it does as many false promotions with a single candidate.
"""

from __future__ import annotations

import math
import os
import random
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace

from tests.bench.figure import Figure, Peer
from tests.bench.gate_sweeps import GOOD, METRIC, World, asked_for, paired, policy, reference

SWEEPS = 2000
_CHUNK = 250
_VARIATIONS = (0.1, 0.2, 0.3)
_GENERATIONS = (1, 4)
_GAIN = 0.2
_SINGLE = "the reference, one candidate"
_SAME = "the reference, same candidates"


@dataclass(frozen=True, slots=True)
class Point:
    """A world and the name of its figure. ``asked``: with as many pairs as ``power`` asks for after a pilot."""

    name: str
    world: World
    asked: bool = False

    @property
    def false(self) -> bool:
        """Whether no candidate is any better, so that each promotion is a false one."""
        return not self.world.gain


@dataclass(frozen=True, slots=True)
class Count:
    """What became of some sweeps of a point: hits of both rules, and first looks whose interval holds the truth."""

    sweeps: int = 0
    ours: int = 0
    theirs: int = 0
    looks: int = 0
    covered: int = 0

    def __add__(self, other: Count) -> Count:
        return Count(
            self.sweeps + other.sweeps,
            self.ours + other.ours,
            self.theirs + other.theirs,
            self.looks + other.looks,
            self.covered + other.covered,
        )


def points() -> list[Point]:
    """Return every point: best of four equal candidates; one of four better; alone; with the pairs asked for."""
    found: list[Point] = []
    for cv in _VARIATIONS:
        percent = round(100 * cv)
        for generations in _GENERATIONS:
            where = f"cv{percent}_gen{generations}"
            found += [
                Point(f"gate_false_promotion_{where}", World(cv, 0.0, generations)),
                Point(f"gate_power_{where}", World(cv, _GAIN, generations)),
            ]
        found += [
            Point(f"gate_power_cv{percent}_gen1.one_candidate", World(cv, _GAIN, 1, candidates=1)),
            Point(f"gate_power_cv{percent}_gen1.pairs_asked_for", World(cv, _GAIN, 1), asked=True),
        ]
    return found


def measure() -> list[Figure]:
    """Simulate every point in as many processes as there are cores."""
    every = points()
    jobs = [(point, number) for point in every for number in range(SWEEPS // _CHUNK)]
    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        done = pool.map(chunk, *zip(*((point, number, _CHUNK) for point, number in jobs), strict=True))
        counts = dict.fromkeys(every, Count())
        for (point, _), count in zip(jobs, done, strict=True):
            counts[point] += count
    return [*(_figure(point, count) for point, count in counts.items()), *_coverage(counts.items())]


def chunk(point: Point, number: int, sweeps: int) -> Count:
    """Simulate some sweeps of a point; the same number draws the same sweeps."""
    source = random.Random(f"{point.name} {number}")
    rules = policy(point.world, asked_for(point.world, METRIC.min_effect, source) if point.asked else None)
    # What the reference is known for is one candidate a generation; four would make it look worse than it is.
    theirs = replace(point.world, candidates=1) if point.false else point.world
    total = Count()
    for _ in range(sweeps):
        ours = paired(point.world, rules, source)
        total += Count(
            1,
            _hit(point, ours.promoted),
            _hit(point, reference(theirs, source).promoted),
            len(ours.covered),
            sum(ours.covered),
        )
    return total


def _hit(point: Point, promoted: str) -> bool:
    """Whether this counts: any promotion where all are equal, else that of the better candidate."""
    return bool(promoted) if point.false else promoted == GOOD


def _figure(point: Point, count: Count) -> Figure:
    ours, theirs = 100 * count.ours / count.sweeps, 100 * count.theirs / count.sweeps
    peer = Peer(_SINGLE if point.false else _SAME, theirs, ours / theirs if theirs else 0.0)
    goal = "≤ 5 %" if point.false else "ratio ≥ 1"
    return Figure(point.name, ours, "%", peer, goal, *_margin(ours, count.sweeps))


def _coverage(counts: Iterable[tuple[Point, Count]]) -> list[Figure]:
    """Return, for each variation, how often the 95 % interval of a first look holds the true gain."""
    found: dict[float, Count] = {}
    for point, count in counts:
        found[point.world.cv] = found.get(point.world.cv, Count()) + count
    figures: list[Figure] = []
    for cv, count in found.items():
        share = 100 * count.covered / count.looks
        figures.append(
            Figure(f"gate_coverage_cv{round(100 * cv)}", share, "%", None, "95 ± 1 %", *_margin(share, count.looks))
        )
    return figures


def _margin(percent: float, count: int) -> Sequence[float]:
    """Return two standard errors below and above a share."""
    error = 2 * math.sqrt(percent * (100 - percent) / count)
    return max(0.0, percent - error), min(100.0, percent + error)
