"""Tables of what a gate decided and of every pair that it rests on, as texts for people. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from outerloop_hpc.evolve.gate.decision import GateDecision
from outerloop_hpc.evolve.gate.differences import gain, shown
from outerloop_hpc.evolve.gate.evidence import Row
from outerloop_hpc.evolve.gate.pairs import Reading
from outerloop_hpc.evolve.gate.policy import GatePolicy, Scale
from outerloop_hpc.evolve.gate.screening import Screened
from outerloop_hpc.evolve.reporting.section import Table

#: Rows of one table; the documents have all.
MOST_ROWS = 400
_REASON = 160
NONE = "not computed"


def screening(found: Screened) -> Table:
    """Return a row for each candidate that was screened."""
    scale = found.policy.primary.scale
    rows = [
        (
            one.digest[:12],
            "chosen" if one.digest == found.chosen else "passed" if one.passed else "out",
            gained(scale, one.gain),
            number(one.p),
            str(sum(row.use == "compared" for row in one.rows)),
            one.reason,
        )
        for one in found.candidates
    ]
    return Table(
        "Candidates that were screened", ("candidate", "is", "gain", "p", "pairs compared", "why"), tuple(rows)
    )


def tasks(found: GateDecision) -> Table:
    """Return a row for each task of a look."""
    scale = found.policy.primary.scale
    rows = [
        (
            one.task,
            f"{one.compared} of {one.pairs}",
            f"{one.incumbent_solved} and {one.candidate_solved}",
            gained(scale, one.gain),
            _interval(scale, one.gain_low, one.gain_high),
            one.harm,
            number(one.p_harm),
            "" if one.gated else "not counted: neither arm ever solved it",
        )
        for one in found.found
    ]
    columns = ("task", "pairs compared", "solved, incumbent and candidate", "gain", "interval", "harm", "p of harm", "")
    return Table("Tasks; harm is beyond what a task may lose", columns, tuple(rows))


def guardrails(found: GateDecision) -> Table:
    """Return a row for each guardrail; bounds as the metric's own gains."""
    scales = {one.name: one.scale for one in found.policy.guardrails}
    rows = [
        (
            one.name,
            gained(scales[one.name], gain(scales[one.name], one.mean)),
            gained(scales[one.name], gain(scales[one.name], one.bound)),
            gained(scales[one.name], gain(scales[one.name], one.limit)),
            one.word,
        )
        for one in found.guardrails
        if one.name in scales
    ]
    return Table("Guardrails", ("metric", "gain", "at least", "must be above", "is"), tuple(rows))


def pairs(policy: GatePolicy, rows: Sequence[Row], caption: str) -> Table:
    """Return a row for each pair, with the ids of its cells."""
    name = policy.primary.name
    made = tuple(
        (
            row.pair.task,
            str(row.pair.repeat),
            str(row.pair.seed),
            _reading(row.pair.incumbent, name),
            _reading(row.pair.candidate, name),
            "none" if row.d is None else f"{row.d:.6g}",
            row.use,
            " and ".join(dict.fromkeys(filter(None, (row.pair.incumbent.node, row.pair.candidate.node)))) or "unknown",
            " ".join(dict.fromkeys(filter(None, (row.pair.incumbent.cell, row.pair.candidate.cell)))),
        )
        for row in rows[:MOST_ROWS]
    )
    columns = ("task", "pair", "seed", f"incumbent: {name}", f"candidate: {name}", "difference", "use", "node", "cells")
    more = len(rows) - MOST_ROWS
    return Table(caption, columns, made, f"{more} more pairs are in the decision's document." if more > 0 else "")


def missing(stages: Iterable[tuple[str, Sequence[Row]]]) -> Table | None:
    """Return a row for each reading that is missing, with the reason; None when none is."""
    found = [one for stage, rows in stages for one in _missing(stage, rows)]
    if not found:
        return None
    more = len(found) - MOST_ROWS
    note = f"{more} more are in the decisions' documents." if more > 0 else ""
    columns = ("stage", "task", "pair", "arm", "cell", "why")
    return Table("Readings without an answer; nothing was put in their place", columns, tuple(found[:MOST_ROWS]), note)


def _missing(stage: str, rows: Sequence[Row]) -> Iterator[tuple[str, ...]]:
    for row in rows:
        if row.use != "missing":
            continue
        for arm, reading in (("incumbent", row.pair.incumbent), ("candidate", row.pair.candidate)):
            if reading.word == "missing":
                why = reading.reason or "nobody knows"
                yield stage, row.pair.task, str(row.pair.repeat), arm, reading.cell, why


def _reading(reading: Reading, metric: str) -> str:
    if reading.word != "measured":
        # The reason begins with the cell's own word, which is mostly the same one.
        reason = reading.reason.removeprefix(f"{reading.word}: ")[-_REASON:]
        return f"{reading.word}: {reason}" if reason else reading.word
    value = reading.metrics.get(metric)
    said = "no number" if value is None else f"{value:.6g}"
    return f"{said}, found wrong" if reading.success is False else said


def gained(scale: Scale, value: float | None) -> str:
    """Write a gain, or that there is none."""
    return NONE if value is None else shown(scale, value)


def number(value: float | None) -> str:
    """Write a number of four digits, or that there is none."""
    return NONE if value is None else f"{value:.4g}"


def interval(found: GateDecision) -> str:
    """Write the interval of a look."""
    return _interval(found.policy.primary.scale, found.gain_low, found.gain_high)


def _interval(scale: Scale, low: float | None, high: float | None) -> str:
    return NONE if low is None or high is None else f"{shown(scale, low)} to {shown(scale, high)}"
