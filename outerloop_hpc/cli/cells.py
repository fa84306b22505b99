"""One value as text: readable for people, plain for machines, and harmless in either (pure)."""

from __future__ import annotations

import json
import math
import unicodedata
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final, Self

UNKNOWN: Final = "-"
_UNITS: Final = ("B", "K", "M", "G", "T", "P")
_STEP: Final = 1024
_PLACES: Final = 10
#: Unicode categories that a terminal acts upon or cannot show: controls, format and bidi marks, lone surrogates,
#: line and paragraph separators.
_ACTIVE: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_WIDE: Final = frozenset({"W", "F"})
_ZERO_WIDTH: Final = frozenset({"Mn", "Me"})


def harmless(text: str, *, keep: str = "") -> str:
    """Replace what would move the cursor, colour, reorder or break the line by its visible escape."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        character if character in keep or unicodedata.category(character) not in _ACTIVE else _escape(character)
        for character in text
    )


def escaped(text: str) -> str:
    """Make text fit between two pipes on one line; Python's ``unicode_escape`` gives it back."""
    return harmless(text.replace("\\", "\\\\")).replace("|", "\\x7c")


def _escape(character: str) -> str:
    return character.encode("unicode_escape", errors="surrogatepass").decode("ascii")


def plain(value: object) -> str:
    """Write a value for machines: unknown is empty, numbers are plain, times are ISO in UTC, structures are JSON."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return _iso(value)
    if isinstance(value, Mapping):
        return json.dumps(dict(value), default=str, ensure_ascii=False)
    if isinstance(value, list | tuple | set | frozenset):
        return ",".join(plain(item) for item in value)
    return str(value)


class Measured(float):
    """A measured number with the significant digits that its contract wants people to see."""

    digits: int

    def __new__(cls, value: float, digits: int) -> Self:
        """Make one."""
        made = super().__new__(cls, value)
        made.digits = digits
        return made


def readable(name: str, value: object) -> str:
    """Write a value for people, by the unit in its column's name; unknown is ``-``."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return UNKNOWN
    if isinstance(value, bool) or not isinstance(value, int | float):
        return plain(value)
    if name.endswith("_bytes"):
        return size(value)
    if name.endswith("_s"):
        return duration(value)
    if name.endswith(("_efficiency", "_rate")):
        return f"{value * 100:.1f} %"
    return _number(value)


def _number(value: float) -> str:
    if isinstance(value, Measured):
        return f"{value:.{value.digits}g}"
    if isinstance(value, int):
        return str(value)
    return f"{value:.3g}" if abs(value) < _PLACES else f"{value:.1f}"


def size(count: float) -> str:
    """Write bytes as Slurm does: powers of 1024, three digits, one letter."""
    value, unit = float(count), 0
    while abs(value) >= _STEP and unit < len(_UNITS) - 1:
        value, unit = value / _STEP, unit + 1
    return f"{value:.0f}{_UNITS[unit]}" if unit == 0 or value >= 100 else f"{value:.3g}{_UNITS[unit]}"  # noqa: PLR2004 - three digits


def duration(seconds: float) -> str:
    """Write seconds as Slurm does: ``[D-]HH:MM:SS``; below one minute with a fraction (``8.548 s``)."""
    if math.isinf(seconds):
        return "unlimited"
    if 0 < abs(seconds) < 60 and seconds != int(seconds):  # noqa: PLR2004 - one minute
        return f"{seconds:.3g} s"
    whole, sign = round(abs(seconds)), "-" if seconds < 0 else ""
    days, rest = divmod(whole, 86400)
    clock = f"{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"
    return f"{sign}{days}-{clock}" if days else f"{sign}{clock}"


def width(text: str) -> int:
    """Count terminal columns: wide letters take two, combining marks none."""
    if text.isascii():
        return len(text)
    return sum(
        2 if unicodedata.east_asian_width(c) in _WIDE else 0 if unicodedata.category(c) in _ZERO_WIDTH else 1
        for c in text
    )


def _iso(value: datetime) -> str:
    return value.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
