"""The history of a benchmark: one immutable point per run; the ledger and comparisons follow from them. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Literal

from pydantic import AwareDatetime

from outerloop_hpc.documents import Document, Value
from outerloop_hpc.errors import UsageError
from outerloop_hpc.measure import ledger
from outerloop_hpc.measure.statistics import Comparison, Direction, compare

_COMMIT = re.compile(r"^[0-9a-f]{4,64}$")


class Sample(Value):
    """One measured seed."""

    seed: int
    value: float
    node: str = ""
    cpu_model: str = ""
    seconds: float = 0.0


class Point(Document):
    """``results/<target>/<benchmark>/<run>.json``: what one run measured.

    Attributes:
        head: whether the commit was the branch's head then.
        picked: whether a person picked the seeds.
        rebased: whether the ruler changed with this point: numbers before it cannot be compared with those after it.
    """

    name: ClassVar[str] = "history-point"

    run: str
    target: str
    benchmark: str
    metric: str
    direction: Literal["min", "max"]
    commit: str
    tree: str
    at: AwareDatetime
    samples: tuple[Sample, ...]
    median: float
    minimum: float
    maximum: float
    min_delta: float = 0.0
    min_delta_rel: float = 0.0
    display_digits: int = 6
    image: str = ""
    image_sha256: str = ""
    runtime: str = ""
    head: bool = True
    picked: bool = False
    rebased: bool = False

    def values(self) -> dict[int, float]:
        """The numbers by seed."""
        return {sample.seed: sample.value for sample in self.samples}

    def seeds(self) -> frozenset[int]:
        """The seeds that were measured."""
        return frozenset(sample.seed for sample in self.samples)


def path_of(target: str, benchmark: str, run: str) -> str:
    """Return where a run's document is, relative to the state folder."""
    return f"results/{target}/{benchmark}/{run}.json"


def measured(record_outcome: str, payload: Mapping[str, Any]) -> float | None:
    """Return the number of a record; the verdict and the history must agree on which records have one."""
    value = payload.get("value")
    if record_outcome != "completed" or isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if math.isfinite(value) else None


def pick_pair(found: Sequence[Point], old: str, new: str) -> tuple[Point, Point]:
    """Find two points to compare, by run id or by (the beginning of) a commit id.

    Of a commit with several points those are taken that share most seeds, of these the newest.

    Raises:
        UsageError: there is none, or commits are ambiguous.
    """
    pairs = [(before, after) for before in _named(found, old) for after in _named(found, new)]
    best = max(
        range(len(pairs)), key=lambda at: (alike(*pairs[at]), len(pairs[at][0].seeds() & pairs[at][1].seeds()), at)
    )
    return pairs[best]


def _named(found: Sequence[Point], wanted: str) -> list[Point]:
    by_run = [point for point in found if point.run == wanted]
    by_commit = [point for point in found if _COMMIT.match(wanted) and point.commit.startswith(wanted)]
    if len({point.commit for point in by_commit}) > 1:
        raise UsageError(f"{wanted}: several measured commits begin like that; write more of it")
    matching = by_run or by_commit
    if not matching:
        raise UsageError(
            f"{wanted}: no run and no measured commit of that name; `outerloop-hpc bench history` lists them"
        )
    return matching


def alike(old: Point, new: Point) -> bool:
    """Whether both measured the same metric in the same direction; a contract may change either."""
    return (old.metric, old.direction) == (new.metric, new.direction)


def compare_points(old: Point, new: Point) -> Comparison:
    """Compare two points in pairs of equal seeds, with the floors of the newer one.

    Raises:
        UsageError: they measured different things.
    """
    if not alike(old, new):
        raise UsageError(
            f"{old.run} measured {old.metric} ({old.direction}), {new.run} {new.metric} ({new.direction}): "
            "such numbers cannot be compared"
        )
    return compare(
        old.values(),
        new.values(),
        direction=new.direction,
        min_delta=new.min_delta,
        min_delta_rel=new.min_delta_rel,
    )


def previous(
    found: Sequence[Point], commit: str, *, metric: str, direction: Direction, seeds: Collection[int]
) -> Point | None:
    """Return what a commit is compared with: the newest other head of the branch that measured the same metric.

    A commit that somebody measured on request, and was no head then, is no step of the branch's history; nor is what
    was measured before the ruler changed.
    Of its points that one which shares most of ``seeds``, the newest of those: somebody who tried other seeds in
    between must not take the pairs away.
    """
    since = max((number for number, one in enumerate(found) if one.rebased), default=-1) + 1
    measured_so = [one for one in found[since:] if (one.metric, one.direction) == (metric, direction)]
    alike_ones = [one for one in measured_so if one.commit != commit]
    others = [one for one in alike_ones if one.head]
    same = [one for one in others if one.commit == others[-1].commit]
    return max(reversed(same), key=lambda one: len(one.seeds() & set(seeds)), default=None)


def ledger_rows(found: Iterable[Point]) -> dict[str, ledger.Row]:
    """Fold points into ledger rows: medians enter, one number a run.

    Numbers of seeds that a person picked stay out: with enough seeds to pick from, one is always lucky.
    A contract may give a benchmark another metric or direction. Such numbers never meet in a row: each has a row of
    its own, and the one that the newest point belongs to is shown.
    """
    every = sorted((point for point in found if not point.picked), key=lambda point: (point.at, point.run))
    newest = {point.benchmark: point for point in every}
    return ledger.fold(
        ledger.Entry(
            benchmark=point.benchmark,
            metric=point.metric,
            direction=point.direction,
            value=point.median,
            run=point.run,
            at=point.at.isoformat(),
            event=ledger.Event.REBASED if point.rebased else ledger.Event.MEASURED,
        )
        for point in every
        if alike(point, newest[point.benchmark])
    )
