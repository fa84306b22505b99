"""Read a benchmark's number from what it printed (pure, total: any bytes give an answer).

The number is that of the last line that is one JSON object holding the metric. Text from a benchmark is data: a
strange line is refused with a reason, never guessed at.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

#: A result line is short. Longer ones are not parsed at all.
MAX_LINE = 256 * 1024
MAX_DEPTH = 64
#: Further numbers of the same object that are kept.
MAX_METRICS = 100
_MAX_NAME = 128
_SHOWN = 80
_EXACT_DIGITS = 18
#: The closing quote is optional, so that an open string is one match and not a search from each of its quotes.
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?')
_NOT_BRACKET = re.compile(rb"[^\[\]{}]")


@dataclass(frozen=True, slots=True)
class Reading:
    """The number, and every other finite number of the same object (at most 100), by name."""

    value: float
    metrics: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Unusable:
    """Why there is no number."""

    reason: str


@dataclass(frozen=True, slots=True)
class Parsed:
    """The fields of one object. ``twice``: a name that it has more than once, so that nobody knows what is meant."""

    fields: Mapping[str, Any]
    twice: str = ""


@dataclass(frozen=True, slots=True)
class Broken:
    """What is wrong with a text that should be an object; a phrase that follows its name."""

    problem: str


def read_metric(data: bytes, metric: str, *, cut: bool = False) -> Reading | Unusable:
    """Find ``metric`` in a benchmark's output.

    Args:
        data: stdout, or its end.
        metric: name of the field.
        cut: whether the beginning of ``data`` is missing; its first line is then not whole and is left out.

    Returns:
        The number, or why it cannot be used.
    """
    lines = data.split(b"\n")
    if cut:
        lines = lines[1:]
    wanted = json.dumps(metric).encode()
    for line in reversed(lines):
        found = _from_line(line.strip(), metric, wanted)
        if found is not None:
            return found
    if not data.strip():
        return Unusable(f"the command printed nothing; it must print one JSON object with {metric!r} on one line")
    note = " (only the end of a long output was looked at)" if cut else ""
    return Unusable(f"no line of the output is a JSON object with {metric!r}{note}")


def parse_object(line: bytes) -> Parsed | Broken:
    """Read one JSON object; a text that is none, or too large or deep to be looked at, is broken."""
    if len(line) > MAX_LINE:
        return Broken(f"is longer than {MAX_LINE} bytes")
    if _depth(line) > MAX_DEPTH:
        return Broken(f"is nested deeper than {MAX_DEPTH} levels")
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError:
        return Broken("is not UTF-8")
    twice: list[str] = []

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for name, value in found:
            if name in result:
                twice.append(name)
            result[name] = value
        return result

    try:
        loaded = json.loads(text, object_pairs_hook=pairs, parse_int=_integer, parse_constant=float)
    except (ValueError, RecursionError):
        return Broken(f"is not JSON: {text[:_SHOWN]!a}")
    if not isinstance(loaded, dict):
        return Broken("is not an object")
    return Parsed(loaded, twice[0][:_MAX_NAME] if twice else "")


def _from_line(line: bytes, metric: str, wanted: bytes) -> Reading | Unusable | None:
    """Judge one line; None when it is not an object with the metric, so that an earlier line may be."""
    if not looks_like_object(line):
        return None
    found = parse_object(line)
    if isinstance(found, Broken):
        # Skipping it would let an older number win over the newest, unusable one: printf writes a diverged number as
        # nan, which is no JSON.
        return Unusable(f"the last line with {metric!r} {found.problem}") if wanted in line else None
    if metric not in found.fields:
        return None
    if found.twice:
        return Unusable(f"the object with {metric!r} names {found.twice!r} more than once")
    return _judge(found.fields, metric)


def looks_like_object(line: bytes) -> bool:
    """Whether a line, without space around it, is meant as an object."""
    return line.startswith(b"{") and line.endswith(b"}")


def _judge(loaded: Mapping[str, Any], metric: str) -> Reading | Unusable:
    if problem := number_problem(metric, loaded[metric]):
        return Unusable(problem)
    return Reading(float(loaded[metric]), numbers_of({k: v for k, v in loaded.items() if k != metric}))


def number_problem(name: str, value: Any) -> str | None:
    """Say why a value is no finite number; None when it is one."""
    if not _is_number(value):
        return f"{name!r} is {_kind(value)}, not a number"
    if not math.isfinite(value):
        return f"{name!r} is not finite: NaN, Infinity or beyond what a double holds"
    return None


def numbers_of(fields: Mapping[str, Any]) -> dict[str, float]:
    """Return the finite numbers among the fields of an object, at most 100, by name."""
    found = {
        # JSON can hold half a surrogate pair, and no record can.
        name.encode("utf-8", "replace").decode(): float(value)
        for name, value in sorted(fields.items())
        if len(name) <= _MAX_NAME and number_problem(name, value) is None
    }
    return dict(list(found.items())[:MAX_METRICS])


def _integer(digits: str) -> int | float:
    # int() of thousands of digits is slow and refused by Python; a double says all that is needed.
    return int(digits) if len(digits) <= _EXACT_DIGITS else float(digits)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _kind(value: Any) -> str:
    kinds = {bool: "true or false", str: "a string", list: "a list", dict: "an object"}
    return kinds.get(type(value), "null")


def _depth(line: bytes) -> int:
    deepest = depth = 0
    for bracket in _NOT_BRACKET.sub(b"", _STRING.sub(b"", line)):
        depth += 1 if bracket in b"[{" else -1
        deepest = max(deepest, depth)
    return deepest
