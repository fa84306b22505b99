"""Parts of a report, before they become Markdown or a page: texts as they are, made harmless by whoever writes them."""

from __future__ import annotations

from dataclasses import dataclass

from outerloop_hpc.evolve.gate.decision import GateDecision


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of texts. ``note``: what is not in it, and where that is."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """One part.

    Attributes:
        title: as a heading; ``deep`` ones belong to the part before them.
        lines: sentences, each on its own.
        plot: the decision whose differences are drawn, where pages can draw.
        commands: to be typed as they are.
    """

    title: str
    lines: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    plot: GateDecision | None = None
    commands: tuple[str, ...] = ()
    deep: bool = False
