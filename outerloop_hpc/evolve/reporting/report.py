"""A sweep's part of ``report.md``. Every text is made harmless here, whoever wrote it. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from outerloop_hpc.engine.plain import plain
from outerloop_hpc.engine.spec import RunSpec
from outerloop_hpc.engine.state import RunState
from outerloop_hpc.evolve.reporting.account import account
from outerloop_hpc.evolve.reporting.section import Section, Table
from outerloop_hpc.forge.text import fenced


def report(spec: RunSpec, state: RunState) -> str:
    """Return it as Markdown."""
    return "\n".join(line for section in account(spec, state) for line in _section(section)).rstrip("\n")


def _section(section: Section) -> Iterator[str]:
    yield f"{'###' if section.deep else '##'} {plain(section.title)}"
    yield ""
    if section.lines:
        yield from (f"- {plain(line)}" for line in section.lines)
        yield ""
    for table in section.tables:
        yield from _table(table)
    if section.commands:
        yield fenced("\n".join(section.commands))
        yield ""


def _table(table: Table) -> Iterator[str]:
    yield f"{plain(table.caption)}:"
    yield ""
    yield _row(table.columns)
    yield "|---" * len(table.columns) + "|"
    yield from map(_row, table.rows)
    yield ""
    if table.note:
        yield plain(table.note)
        yield ""


def _row(cells: tuple[str, ...]) -> str:
    return f"| {' | '.join(map(plain, cells))} |"
