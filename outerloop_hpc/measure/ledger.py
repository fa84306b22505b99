"""The ledger: the best known number per benchmark, as a pure fold over its history.

Nothing is edited in place: the rows follow from the entries alone, in whatever order they are given.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from outerloop_hpc.errors import Fault
from outerloop_hpc.measure.statistics import Direction

SCHEMA = "ledger/1"
_DIRECTIONS = ("min", "max")
_DIGITS = 6


class Event(StrEnum):
    """What an entry does to its row.

    ``MEASURED`` may move the best, and is the baseline when it is the first. ``REBASED`` (a steward changed the
    evaluation) starts the row anew: numbers before and after cannot be compared.
    """

    MEASURED = "measured"
    REBASED = "rebased"


@dataclass(frozen=True, slots=True)
class Entry:
    """One number that entered the history.

    Attributes:
        at: when, ISO 8601 in UTC; entries are folded in this order (then by run and seed).
        seed: the seed it was measured with, if any.
    """

    benchmark: str
    metric: str
    direction: Direction
    value: float
    run: str
    at: str
    seed: int | None = None
    event: Event = Event.MEASURED


@dataclass(frozen=True, slots=True)
class Row:
    """What is known of one benchmark. ``baseline`` stays until a steward re-bases; ``best`` only gets better."""

    benchmark: str
    metric: str
    direction: Direction
    baseline: float
    best: float
    best_run: str
    updated: str
    run_seed: int | None = None


def fold(entries: Iterable[Entry]) -> dict[str, Row]:
    """Return the rows that follow from ``entries``, by benchmark name.

    Raises:
        Fault: a number that is not finite, or a metric or direction that changed without being re-based; the text
            names benchmark and run.
    """
    rows: dict[str, Row] = {}
    for entry in sorted(entries, key=_order):
        rows[entry.benchmark] = _apply(rows.get(entry.benchmark), entry)
    return dict(sorted(rows.items()))


def _order(entry: Entry) -> tuple[str, str, str, int, float]:
    return entry.at, entry.run, entry.event.value, -1 if entry.seed is None else entry.seed, entry.value


def _apply(row: Row | None, entry: Entry) -> Row:
    if not math.isfinite(entry.value):
        raise Fault(f"ledger: run {entry.run} gave {entry.value} for {entry.benchmark}: only finite numbers count")
    if row is None or entry.event is Event.REBASED:
        return Row(
            entry.benchmark,
            entry.metric,
            entry.direction,
            baseline=entry.value,
            best=entry.value,
            best_run=entry.run,
            updated=entry.at,
            run_seed=entry.seed,
        )
    if (row.metric, row.direction) != (entry.metric, entry.direction):
        raise Fault(
            f"ledger: run {entry.run} measured {entry.benchmark} as {entry.metric} ({entry.direction}), the row holds "
            f"{row.metric} ({row.direction}); such a change needs a re-base by a steward"
        )
    if not improves(entry.value, row.best, entry.direction):
        return row
    return Row(
        row.benchmark,
        row.metric,
        row.direction,
        baseline=row.baseline,
        best=entry.value,
        best_run=entry.run,
        updated=entry.at,
        run_seed=entry.seed,
    )


def improves(value: float, best: float, direction: Direction) -> bool:
    """Whether ``value`` is strictly better than ``best``."""
    return value > best if direction == "max" else value < best


def encode(rows: Mapping[str, Row]) -> bytes:
    """Return the ledger file: sorted, one row a line, so that a change shows as one line."""
    lines = ",\n".join(f"  {json.dumps(asdict(rows[name]), sort_keys=True, allow_nan=False)}" for name in sorted(rows))
    body = f"[\n{lines}\n ]" if lines else "[]"
    return f'{{\n "schema": "{SCHEMA}",\n "rows": {body}\n}}\n'.encode()


def decode(data: bytes, where: str) -> dict[str, Row]:
    """Read a ledger file.

    Args:
        data: its bytes.
        where: path or commit, for the error text.

    Raises:
        Fault: it cannot be read. It must then not be written either: that would drop every other row.
    """
    try:
        rows = _rows(json.loads(data))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise Fault(f"{where}: not a readable ledger: {error}; nothing is written until it is repaired") from error
    return {row.benchmark: row for row in rows}


def _rows(loaded: Mapping[str, Any]) -> list[Row]:
    if loaded["schema"] != SCHEMA:
        raise ValueError(f"schema is {loaded['schema']!r}, expected {SCHEMA}")
    rows = [_row(one) for one in loaded["rows"]]
    if len({row.benchmark for row in rows}) != len(rows):
        raise ValueError("a benchmark has two rows")
    return rows


def _row(loaded: Mapping[str, Any]) -> Row:
    row = Row(**loaded)
    texts = [loaded[name] for name in ("benchmark", "metric", "best_run", "updated")]
    if loaded["direction"] not in _DIRECTIONS or not all(isinstance(text, str) for text in texts):
        raise ValueError(f"bad row {loaded!r:.200}")
    for number in (loaded["baseline"], loaded["best"]):
        if isinstance(number, bool) or not isinstance(number, (int, float)) or not math.isfinite(number):
            raise ValueError(f"row {row.benchmark}: {number!r} is not a finite number")
    return row


def render(rows: Mapping[str, Row], *, digits: Mapping[str, int] | None = None) -> str:
    """Return BENCHMARKS.md: one Markdown table, every cell escaped.

    Args:
        rows: the ledger.
        digits: significant digits per benchmark (2 to 12); 6 where not given.
    """
    shown = digits or {}
    lines = [
        "# Benchmarks",
        "",
        "Rendered from the ledger; changes made here are lost.",
        "",
        "| benchmark | metric | better | baseline | best | change | run | seed | updated |",
        "|---|---|---|---:|---:|---:|---|---:|---|",
    ]
    lines += [_line(rows[name], shown.get(name, _DIGITS)) for name in sorted(rows)]
    return "\n".join(lines) + "\n"


def _line(row: Row, digits: int) -> str:
    seed = "-" if row.run_seed is None else str(row.run_seed)
    better = "higher" if row.direction == "max" else "lower"
    cells: Sequence[str] = (
        escaped(row.benchmark),
        escaped(row.metric),
        better,
        f"{row.baseline:.{digits}g}",
        f"{row.best:.{digits}g}",
        _change(row),
        escaped(row.best_run),
        seed,
        escaped(row.updated),
    )
    return "| " + " | ".join(cells) + " |"


def _change(row: Row) -> str:
    if not row.baseline:
        return "-"
    share = row.best / abs(row.baseline) - math.copysign(1.0, row.baseline)
    return f"{share:+.1%}" if math.isfinite(share) else "-"


def escaped(text: str) -> str:
    """Return ``text`` as one harmless Markdown table cell: no markup, no link, no mention, no second line."""
    flat = " ".join(re.sub(r"[\x00-\x1f\x7f\u2028\u2029\u202a-\u202e\u2066-\u2069]", " ", text).split())
    plain = flat.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("@", "&#64;")
    return re.sub(r"([\\`*_{}\[\]()#+!|~])", r"\\\1", plain).replace("://", ":&#47;&#47;")
