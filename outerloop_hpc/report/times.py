"""The time words of sacct's ``-S`` and ``-E`` (pure; "now" and its zone are passed in).

From sacct(1): ``HH:MM[:SS][AM|PM]``, ``MMDD[YY]``, ``MM/DD[/YY]``, ``MM.DD[.YY]``, ``YYYY-MM-DD[THH:MM[:SS]]``,
``uts<seconds>``, ``today midnight noon elevenses fika teatime now`` and
``now{+|-}count[seconds|minutes|hours|days|weeks]``.
"""

from __future__ import annotations

import re
from datetime import date, datetime, time
from typing import Final

from outerloop_hpc.errors import UsageError

_WORDS: Final = {
    "midnight": time(0),
    "today": time(0),
    "elevenses": time(11),
    "noon": time(12),
    "fika": time(15),
    "teatime": time(16),
}
_UNITS: Final = {"seconds": 1, "minutes": 60, "hours": 3600, "days": 86400, "weeks": 604800}
_RELATIVE: Final = re.compile(r"now(?:(?P<sign>[+-])(?P<count>[0-9]{1,9})(?P<unit>[a-z]*))?", re.ASCII)
_EPOCH: Final = re.compile(r"uts(?P<seconds>[0-9]{1,10})", re.ASCII)
_ISO: Final = re.compile(r"(?P<y>[0-9]{4})-(?P<m>[0-9]{1,2})-(?P<d>[0-9]{1,2})", re.ASCII)
_US: Final = re.compile(
    r"(?P<m>[0-9]{1,2})(?P<sep>[/.]|)(?P<d>[0-9]{2}|(?<=[/.])[0-9])(?:(?P=sep)(?P<y>[0-9]{2}))?", re.ASCII
)
_CLOCK: Final = re.compile(r"(?P<h>[0-9]{1,2}):(?P<m>[0-9]{2})(?::(?P<s>[0-9]{2}))?\s*(?P<half>am|pm)?", re.ASCII)
_HALF_DAY: Final = 12


def moment(text: str, now: datetime) -> int:
    """Read a time as sacct would.

    Args:
        text: what was given with ``-S`` or ``-E``.
        now: the present. Dates and clocks are meant in its zone; without a zone, on the clock of this host, daylight
            saving included (what sacct does).

    Returns:
        Epoch seconds. A clock without a date is today's.

    Raises:
        UsageError: not a time.
    """
    word = text.strip().lower()
    try:
        found = _relative(word, now)
        if found is None:
            found = _epoch(word)
        if found is None:
            found = _dated(word, now)
    except (ValueError, OverflowError, OSError):  # the 30th of February, or the year 10000
        found = None
    if found is None:
        raise UsageError(
            f"{text!r} is not a time; write it as sacct does: 2026-11-29, 2026-11-29T12:00, now-7days, today, 14:30"
        )
    return found


def _relative(word: str, now: datetime) -> int | None:
    match = _RELATIVE.fullmatch(word)
    if match is None:
        return None
    present = int(now.timestamp())
    if match["sign"] is None:
        return present
    # Slurm counts seconds: a day is 86400 of them, also when the clocks change.
    lengths = [length for unit, length in _UNITS.items() if unit.startswith(match["unit"])]
    if not lengths:
        return None
    span = lengths[0] * int(match["count"])
    return present + span if match["sign"] == "+" else present - span


def _epoch(word: str) -> int | None:
    match = _EPOCH.fullmatch(word)
    return None if match is None else int(match["seconds"])


def _dated(word: str, now: datetime) -> int | None:
    if word in _WORDS:
        return _at(now.date(), _WORDS[word], now)
    clock = _clock(word)
    if clock is not None:
        return _at(now.date(), clock, now)
    day_text, separator, clock_text = word.partition("t" if "t" in word else "-" if _is_us_with_clock(word) else " ")
    day = _day(day_text, now)
    clock = _clock(clock_text) if separator else time(0)
    return None if day is None or clock is None else _at(day, clock, now)


def _is_us_with_clock(word: str) -> bool:
    return "-" in word and ":" in word and _ISO.match(word) is None


def _day(word: str, now: datetime) -> date | None:
    iso = _ISO.fullmatch(word)
    if iso is not None:
        return date(int(iso["y"]), int(iso["m"]), int(iso["d"]))
    us = _US.fullmatch(word)
    if us is None:
        return None
    return date(2000 + int(us["y"]) if us["y"] else now.year, int(us["m"]), int(us["d"]))


def _clock(word: str) -> time | None:
    match = _CLOCK.fullmatch(word)
    if match is None:
        return None
    hours = int(match["h"])
    if match["half"]:
        if not 1 <= hours <= _HALF_DAY:
            return None
        hours = hours % _HALF_DAY + (_HALF_DAY if match["half"] == "pm" else 0)
    return time(hours, int(match["m"]), int(match["s"] or 0))


def _at(day: date, clock: time, now: datetime) -> int:
    return int(datetime.combine(day, clock, now.tzinfo).timestamp())
