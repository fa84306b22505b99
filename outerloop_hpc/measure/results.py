"""The ``results/`` folder: history points as files, and the ledger that is rendered from them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from outerloop_hpc import fsio
from outerloop_hpc.documents import load
from outerloop_hpc.measure import ledger
from outerloop_hpc.measure.history import Point, ledger_rows


def benchmarks(results: Path, target: str) -> list[str]:
    """Names of the benchmarks with a history."""
    return [name for name in fsio.names(results / target) if (results / target / name).is_dir()]


def points(results: Path, target: str, benchmark: str) -> list[Point]:
    """Every point of a benchmark's history, oldest first.

    Raises:
        Fault: a document cannot be read. It is never left out: the ledger would silently lose a number.
    """
    folder = results / target / benchmark
    found: list[Point] = [load(Point, folder / name) for name in fsio.names(folder) if name.endswith(".json")]
    return sorted(found, key=lambda point: (point.at, point.run))


def best_points(results: Path, target: str, rows: Mapping[str, ledger.Row]) -> dict[str, Point]:
    """Return the point that the best number of each ledger row comes from, by benchmark."""
    return {name: load(Point, results / target / name / f"{row.best_run}.json") for name, row in rows.items()}


def refresh_ledger(results: Path, target: str) -> dict[str, ledger.Row]:
    """Render ``results/<target>/leader.json`` and ``BENCHMARKS.md`` from the history; the last writer is never wrong.

    Raises:
        Fault: a history document cannot be read; the files stay as they are.
    """
    while True:
        before = _documents(results, target)
        rows = _render(results, target)
        # A point that came meanwhile may be in the files of another writer, which ours have just replaced.
        if _documents(results, target) == before:
            return rows


def _every(results: Path, target: str) -> list[Point]:
    return [point for name in benchmarks(results, target) for point in points(results, target, name)]


def _documents(results: Path, target: str) -> list[list[str]]:
    return [fsio.names(results / target / name) for name in benchmarks(results, target)]


def _render(results: Path, target: str) -> dict[str, ledger.Row]:
    every = _every(results, target)
    rows = ledger_rows(every)
    folder = results / target
    digits = {point.benchmark: point.display_digits for point in every}
    rendered = {"leader.json": ledger.encode(rows), "BENCHMARKS.md": ledger.render(rows, digits=digits).encode()}
    for name, data in rendered.items():
        try:
            same = fsio.read(folder / name) == data
        except FileNotFoundError:
            same = False
        if not same and rows:
            fsio.replace(folder / name, data)
    return rows
