"""Rows about measured points: history, comparisons, the ledger."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from outerloop_hpc import fsio
from outerloop_hpc.cli.cells import Measured
from outerloop_hpc.cli.output import Column
from outerloop_hpc.engine.layout import Layout
from outerloop_hpc.engine.spec import stamp
from outerloop_hpc.errors import UsageError
from outerloop_hpc.measure.history import Point, compare_points, previous
from outerloop_hpc.measure.ledger import Row
from outerloop_hpc.measure.results import benchmarks, points

HISTORY_COLUMNS = (
    Column("at", "when the run ended"),
    Column("benchmark", "name in the contract"),
    Column("commit", "commit that was measured"),
    Column("seeds", "how many seeds were measured"),
    Column("median", "of the metric"),
    Column("minimum", "smallest"),
    Column("maximum", "largest"),
    Column("verdict", "against the newest other head with that metric, in pairs of equal seeds"),
    Column("nodes", "where", shown=False),
    Column("runtime", "containment", shown=False),
    Column("image_sha256", "image", shown=False),
    Column("metric", "JSON key", shown=False),
    Column("run", "run id"),
)

COMPARE_COLUMNS = (
    Column("benchmark"),
    Column("verdict"),
    Column("pairs"),
    Column("median_difference"),
    Column("p_better"),
    Column("p_worse"),
    Column("floor"),
    Column("reason"),
    Column("old_run"),
    Column("new_run"),
)

LEDGER_COLUMNS = (
    Column("benchmark"),
    Column("metric"),
    Column("direction", "min or max is better"),
    Column("baseline", "the first median"),
    Column("best", "the best median"),
    Column("minimum", "smallest of the best run's seeds"),
    Column("maximum", "largest of the best run's seeds"),
    Column("seeds", "how many seeds the best run measured"),
    Column("commit", "commit that the best run measured"),
    Column("nodes", "where the best run was", shown=False),
    Column("runtime", "its containment", shown=False),
    Column("image_sha256", "its image", shown=False),
    Column("best_run", "who measured it"),
    Column("updated"),
)


def history_rows(layout: Layout, target: str, benchmark: str) -> Iterator[Mapping[str, object]]:
    """Yield one row per point.

    Raises:
        UsageError: nothing of that name was measured.
        Fault: a history document cannot be read.
    """
    known = benchmarks(layout.results, target)
    if not known or (benchmark and benchmark not in known):
        raise UsageError(f"nothing was measured of {target} {benchmark}".rstrip() + "; `outerloop-hpc tick` measures")
    for name in [benchmark] if benchmark else known:
        found = points(layout.results, target, name)
        for number, point in enumerate(found):
            before = previous(
                found[:number], point.commit, metric=point.metric, direction=point.direction, seeds=point.seeds()
            )
            yield {
                "at": stamp(point.at),
                "benchmark": name,
                "commit": point.commit[:12],
                "seeds": len(point.samples),
                "median": Measured(point.median, point.display_digits),
                "minimum": Measured(point.minimum, point.display_digits),
                "maximum": Measured(point.maximum, point.display_digits),
                "verdict": None if before is None else str(compare_points(before, point).verdict),
                "nodes": _nodes(point),
                "runtime": point.runtime,
                "image_sha256": point.image_sha256 or None,
                "metric": point.metric,
                "run": point.run,
            }


def _nodes(point: Point) -> str:
    return ",".join(sorted({sample.node for sample in point.samples}))


def compare_rows(pairs: Sequence[tuple[Point, Point]]) -> Iterator[Mapping[str, object]]:
    """Yield one row per benchmark compared."""
    for old, new in pairs:
        found = compare_points(old, new)
        yield {
            "benchmark": new.benchmark,
            "verdict": str(found.verdict),
            "pairs": found.pairs,
            "median_difference": (
                None if found.median_difference is None else Measured(found.median_difference, new.display_digits)
            ),
            "p_better": found.p_better,
            "p_worse": found.p_worse,
            "floor": found.floor,
            "reason": found.reason,
            "old_run": old.run,
            "new_run": new.run,
        }


def compare_text(pairs: Sequence[tuple[Point, Point]]) -> str:
    """Return comparisons as text, with every pair."""
    lines: list[str] = []
    for old, new in pairs:
        found = compare_points(old, new)
        digits = new.display_digits
        lines += [
            f"{new.benchmark}: {found.verdict}",
            f"  {found.reason}",
            f"  A {old.commit[:12]}  median {old.median:.{digits}g}  {old.run}",
            f"  B {new.commit[:12]}  median {new.median:.{digits}g}  {new.run}",
            f"  {'seed':>12}  {'A':>12}  {'B':>12}  {'B - A':>12}",
        ]
        before, after = old.values(), new.values()
        for seed in sorted(before.keys() & after.keys()):
            a, b = before[seed], after[seed]
            lines.append(f"  {seed:>12}  {a:>12.{digits}g}  {b:>12.{digits}g}  {b - a:>+12.{digits}g}")
    return "\n".join(lines) + "\n"


def ledger_rows(rows: Mapping[str, Row], best: Mapping[str, Point]) -> Iterator[Mapping[str, object]]:
    """Yield one row per ledger row; ``best`` is the point that its best number comes from, by benchmark."""
    for row in rows.values():
        point = best[row.benchmark]
        digits = point.display_digits
        yield {
            "benchmark": row.benchmark,
            "metric": row.metric,
            "direction": row.direction,
            "baseline": Measured(row.baseline, digits),
            "best": Measured(row.best, digits),
            "minimum": Measured(point.minimum, digits),
            "maximum": Measured(point.maximum, digits),
            "seeds": len(point.samples),
            "commit": point.commit[:12],
            "nodes": _nodes(point),
            "runtime": point.runtime,
            "image_sha256": point.image_sha256 or None,
            "best_run": row.best_run,
            "updated": row.updated,
        }


def only_target(layout: Layout, named: str) -> str:
    """Return the target meant: the one named, or the only one with results.

    Raises:
        UsageError: none or several.
    """
    if named:
        return named
    known = fsio.names(layout.results)
    if len(known) != 1:
        raise UsageError(f"--target is needed: results exist of {', '.join(known) or 'no target'}")
    return known[0]
