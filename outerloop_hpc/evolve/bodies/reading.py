"""From what a task's command said to its numbers and its success flag. Pure, and total: any bytes give an answer.

What counts is the file ``OL_RESULT`` where the command wrote one, else the last line of its output that is meant as an
object. A strange one is refused with a reason; no earlier line takes its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from outerloop_hpc.measure.output import (
    MAX_LINE,
    Broken,
    Reading,
    Unusable,
    looks_like_object,
    number_problem,
    numbers_of,
    parse_object,
)

#: Of the file, in bytes. One more is enough to see that it is too large.
MAX_RESULT = MAX_LINE


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a task's object must hold.

    Attributes:
        metrics: names that must be finite numbers; the first one is the primary metric.
        success_key: name that must be true or false; empty when the task has no such flag.
    """

    metrics: tuple[str, ...]
    success_key: str = ""


@dataclass(frozen=True, slots=True)
class Numbers(Reading):
    """The primary metric as ``value``, every finite number by name, the primary one too, and the flag."""

    value: float
    metrics: Mapping[str, float] = field(default_factory=dict)
    success: bool | None = None


def read_numbers(
    wanted: Wanted, stdout: bytes, *, cut: bool = False, result: bytes | None = None
) -> Numbers | Unusable:
    """Read a command's numbers.

    Args:
        wanted: what must be there.
        stdout: what it printed, or the end of that.
        cut: whether the beginning of it is missing.
        result: content of the file ``OL_RESULT``, its first ``MAX_RESULT`` + 1 bytes; None when there is none.
    """
    if result is not None:
        return _from_object(wanted, result.strip(), "the file OL_RESULT")
    lines = stdout.split(b"\n")
    if cut:
        lines = lines[1:]
    stripped = (line.strip() for line in reversed(lines))
    line = next((line for line in stripped if looks_like_object(line)), None)
    if line is None:
        note = " (only the end of a long output was looked at)" if cut else ""
        return Unusable(f"no line of the output is a JSON object, and it left no file OL_RESULT{note}")
    return _from_object(wanted, line, "the last object of the output")


def _from_object(wanted: Wanted, text: bytes, called: str) -> Numbers | Unusable:
    found = parse_object(text)
    if isinstance(found, Broken):
        return Unusable(f"{called} {found.problem}")
    if found.twice:
        return Unusable(f"{called} names {found.twice!r} more than once")
    problem = _problem(wanted, found.fields)
    if problem is not None:
        return Unusable(f"{called}: {problem}")
    first = float(found.fields[wanted.metrics[0]])
    named = {name: float(found.fields[name]) for name in wanted.metrics}
    success = found.fields[wanted.success_key] if wanted.success_key else None
    return Numbers(first, {**numbers_of(found.fields), **named}, success)


def _problem(wanted: Wanted, fields: Mapping[str, Any]) -> str | None:
    if missing := _missing(wanted, fields):
        return f"it has no {missing!r}"
    if wanted.success_key and not isinstance(fields[wanted.success_key], bool):
        return f"{wanted.success_key!r} is neither true nor false"
    problems = (number_problem(name, fields[name]) for name in wanted.metrics)
    return next((problem for problem in problems if problem is not None), None)


def _missing(wanted: Wanted, fields: Mapping[str, Any]) -> str:
    needed: Iterable[str] = (*wanted.metrics, *filter(None, (wanted.success_key,)))
    return next((name for name in needed if name not in fields), "")
