"""The table for people."""

from __future__ import annotations

from collections.abc import Sequence

from tests.bench.figure import Figure

_HEAD = ("figure", "median", "unit", "from .. to", "peer", "its median", "ratio", "goal")


def number(value: float) -> str:
    """Format with three significant digits, large numbers whole."""
    if value == int(value) and abs(value) < 1e6:
        return str(int(value))
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def rows_of(figures: Sequence[Figure]) -> list[tuple[str, ...]]:
    """Return the cells, without the head."""
    return [_row(one) for one in figures]


def _row(one: Figure) -> tuple[str, ...]:
    spread = "" if one.low is None or one.high is None else f"{number(one.low)} .. {number(one.high)}"
    peer = ("", "", "") if one.peer is None else (one.peer.name, number(one.peer.value), f"{one.peer.ratio:.2f}")
    return (one.name, number(one.value), one.unit, spread, *peer, one.goal)


def render(figures: Sequence[Figure]) -> str:
    """Return the table as Markdown with aligned columns."""
    rows = [_HEAD, *rows_of(figures)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    lines = [f"| {' | '.join(map(str.ljust, row, widths))} |" for row in rows]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines) + "\n"
