"""Slurm's own grammar for durations, sizes and TRES lists (pure, total: what cannot be read is ``None``).

Seen on 22.05 and 26.05: ``Elapsed`` is ``[D-]HH:MM:SS``, ``TotalCPU`` also ``MM:SS.mmm``; sizes carry one of
``K M G T P`` (powers of 1024) and a fraction, or nothing under ``--noconvert``; ``ReqMem`` ended in ``n`` or ``c``
before 21.08.
"""

from __future__ import annotations

import math
import re
from typing import Final

#: What ``seconds`` answers for a limit that never comes.
UNLIMITED: Final = math.inf

_UNITS: Final = {"": 1, "B": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40, "P": 2**50, "E": 2**60}
_SIZE = re.compile(r"([0-9]{1,30}(?:\.[0-9]{1,20})?)([BKMGTPE]?)", re.ASCII | re.IGNORECASE)
_CLOCK = re.compile(
    r"(?:(?P<days>[0-9]{1,9})-)?(?P<clock>[0-9]{1,12}(?::[0-9]{1,9}){0,2})(?P<fraction>\.[0-9]{1,9})?", re.ASCII
)
_PER_NODE_OR_CPU = re.compile(r"(?P<size>.*[0-9BKMGTPE])(?P<per>[nc])", re.ASCII | re.DOTALL)
#: NO_VAL64 and INFINITE64 are printed where a counter was never set.
_NEVER_SET: Final = 2**64 - 16


def seconds(text: str) -> float | None:
    """Read a duration as sacct prints it.

    Args:
        text: ``SS``, ``MM:SS``, ``HH:MM:SS``, with ``D-`` in front (``D-HH``, ``D-HH:MM``, ``D-HH:MM:SS``) and a
            fraction behind; a bare number is seconds (``ElapsedRaw``, ``CPUTimeRAW``).

    Returns:
        Seconds; ``UNLIMITED`` for that word; ``None`` for ``Partition_Limit``, ``INVALID``, empty and anything else.
    """
    text = text.strip()
    if text.upper() in {"UNLIMITED", "INFINITE"}:
        return UNLIMITED
    match = _CLOCK.fullmatch(text)
    if match is None:
        return None
    parts = [int(part) for part in match["clock"].split(":")]
    if match["days"] is not None:
        # With days in front the clock starts at hours, and what is missing is missing at its end.
        parts = [*parts, 0, 0][:3]
    hours, minutes, rest = [0, 0, 0, *parts][-3:]
    whole = ((int(match["days"] or 0) * 24 + hours) * 60 + minutes) * 60 + rest
    return whole + float(match["fraction"] or 0)


def limit_seconds(raw_minutes: str, text: str) -> float | None:
    """Read a time limit: ``TimelimitRaw`` (minutes) when it is a number, else ``Timelimit`` as a duration.

    Returns:
        Seconds, ``UNLIMITED``, or ``None`` when not known (``Partition_Limit``: the partition's, not the job's).
    """
    if raw_minutes.strip().isdecimal():
        minutes = seconds(raw_minutes)
        return None if minutes is None else minutes * 60
    raw = seconds(raw_minutes)
    return raw if raw == UNLIMITED else seconds(text)


def bytes_of(text: str) -> int | None:
    """Read a size; powers of 1024, no suffix is bytes.

    Returns:
        Bytes, rounded; ``None`` for empty, never-set counters and anything that is not a size.
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        return None
    number, unit = match[1], _UNITS[match[2].upper()]
    # Integers stay exact; only a fraction goes through a float.
    value = int(number) * unit if "." not in number else round(float(number) * unit)
    return None if unit == 1 and value >= _NEVER_SET else value


def requested_memory(text: str, *, nodes: int | None, cpus: int | None) -> int | None:
    """Read ``ReqMem``: total bytes; before 21.08 ``64Gn`` is per node and ``4Gc`` is per CPU.

    Returns:
        Bytes for the whole job; ``None`` when not known, also when the needed count is not.
    """
    match = _PER_NODE_OR_CPU.fullmatch(text.strip())
    if match is None:
        return bytes_of(text)
    size, count = bytes_of(match["size"]), nodes if match["per"] == "n" else cpus
    return None if size is None or not count else size * count


def tres(text: str) -> dict[str, int]:
    """Read a TRES list such as ``cpu=4,mem=2000M,gres/gpu:a100=2`` or ``cpu=00:00:02,mem=12300K``.

    Returns:
        Name to count, bytes or whole seconds. An entry that cannot be read is left out: unknown, not 0.
    """
    found: dict[str, int] = {}
    for entry in text.split(","):
        name, equals, value = entry.strip().rpartition("=")
        if not equals or not name:
            continue
        number = seconds(value) if ":" in value else bytes_of(value)
        if number is not None and math.isfinite(number):
            found[name] = int(number)
    return found
