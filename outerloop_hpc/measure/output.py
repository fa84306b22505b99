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


def _from_line(line: bytes, metric: str, wanted: bytes) -> Reading | Unusable | None:
    """Judge one line; None when it is not an object with the metric, so that an earlier line may be."""
    if not (line.startswith(b"{") and line.endswith(b"}")):
        return None
    if len(line) > MAX_LINE:
        return _only_if_named(line, wanted, f"the line with {metric!r} is longer than {MAX_LINE} bytes")
    if _depth(line) > MAX_DEPTH:
        return _only_if_named(line, wanted, f"the object with {metric!r} is nested deeper than {MAX_DEPTH} levels")
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError:
        return _only_if_named(line, wanted, f"the line with {metric!r} is not UTF-8")
    return _from_text(text, metric, line, wanted)


def _only_if_named(line: bytes, wanted: bytes, reason: str) -> Unusable | None:
    # Skipping it would let an older number win over the newest, unusable one.
    return Unusable(reason) if wanted in line else None


def _from_text(text: str, metric: str, line: bytes, wanted: bytes) -> Reading | Unusable | None:
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
        # printf writes a diverged number as nan, which is no JSON: the number before it is not the result.
        return _only_if_named(line, wanted, f"the last line with {metric!r} is not JSON: {text[:_SHOWN]!a}")
    if not isinstance(loaded, dict) or metric not in loaded:
        return None
    if twice:
        return Unusable(f"the object with {metric!r} names {twice[0][:_MAX_NAME]!r} more than once")
    return _judge(loaded, metric)


def _judge(loaded: dict[str, Any], metric: str) -> Reading | Unusable:
    value = loaded[metric]
    if not _is_number(value):
        return Unusable(f"{metric!r} is {_kind(value)}, not a number")
    if not math.isfinite(value):
        return Unusable(f"{metric!r} is not finite: NaN, Infinity or beyond what a double holds")
    others = {
        # JSON can hold half a surrogate pair, and no record can.
        name.encode("utf-8", "replace").decode(): float(other)
        for name, other in sorted(loaded.items())
        if name != metric and len(name) <= _MAX_NAME and _is_number(other) and math.isfinite(other)
    }
    return Reading(float(value), dict(list(others.items())[:MAX_METRICS]))


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
