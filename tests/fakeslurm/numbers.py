"""Array expressions and times, as people write them and as Slurm prints them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import pairwise

_CUT = 64


def expand(text: str) -> tuple[list[int], int]:
    """Read ``0-9:3,20%2``: the indices, and how many may run at once (0: all)."""
    text, _, limit = text.partition("%")
    found: list[int] = []
    for part in text.split(","):
        span, _, stride = part.partition(":")
        first, _, last = span.partition("-")
        found.extend(range(int(first), int(last or first) + 1, int(stride or 1)))
    return found, int(limit or 0)


def collapsed(tasks: Iterable[int], limit: int = 0) -> str:
    """Print indices as Slurm does: a regular list as ``6-30:3``, else runs and single ones, then ``%limit``."""
    ordered = sorted(tasks)
    strides = {after - before for before, after in pairwise(ordered)}
    if len(ordered) > 2 and len(strides) == 1 and strides != {1}:
        shown = f"{ordered[0]}-{ordered[-1]}:{strides.pop()}"
    else:
        shown = ",".join(f"{first}-{last}" if last > first else str(first) for first, last in _runs(ordered))
    return shown + (f"%{limit}" if limit else "")


def _runs(ordered: list[int]) -> Iterable[tuple[int, int]]:
    start = 0
    for place in range(1, len(ordered) + 1):
        if place == len(ordered) or ordered[place] != ordered[place - 1] + 1:
            yield ordered[start], ordered[place - 1]
            start = place


def bracketed(base: str, shown: str, *, whole: bool, ends: bool) -> str:
    """Return ``base_[shown]``, cut at 64 bytes where that is asked for: sacct closes the bracket, squeue does not."""
    if whole or len(shown) <= _CUT:
        return f"{base}_[{shown}]"
    kept = shown[: _CUT - 3]
    return f"{base}_[{kept}...]" if ends else f"{base}_[{kept}"


def shown_time(at: float | None, epoch: bool, *, absent: str = "Unknown") -> str:
    """Print a time, as ``SLURM_TIME_FORMAT=%s`` asks or as usual."""
    if at is None:
        return absent
    return str(int(at)) if epoch else datetime.fromtimestamp(int(at), UTC).strftime("%Y-%m-%dT%H:%M:%S")
