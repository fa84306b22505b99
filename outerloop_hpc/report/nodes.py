"""Node names out of Slurm's bracket form (pure, total); only to count which nodes were measured."""

from __future__ import annotations

import re

_MOST = 100_000
_SPLIT = re.compile(r",(?![^\[]*\])")
_ITEM = re.compile(r"(?P<prefix>[^\[\],\s]*)(?:\[(?P<ranges>[0-9,-]+)\](?P<suffix>[^\[\],\s]*))?", re.ASCII)
_RANGE = re.compile(r"(?P<first>[0-9]{1,9})(?:-(?P<last>[0-9]{1,9}))?", re.ASCII)


def node_names(text: str) -> frozenset[str] | None:
    """Expand ``n[1-2,05],gpu7`` to names.

    Returns:
        The names; ``None`` when there are none (``None assigned``) or the form is not understood (two brackets in
        one name, absurd ranges).
    """
    names: set[str] = set()
    for item in _SPLIT.split(text.strip()):
        match = _ITEM.fullmatch(item)
        if match is None or not item:
            return None
        if match["ranges"] is None:
            names.add(item)
            continue
        numbers = _numbers(match["ranges"])
        if numbers is None or len(names) + len(numbers) > _MOST:
            return None
        names.update(f"{match['prefix']}{number}{match['suffix']}" for number in numbers)
    return frozenset(names)


def _numbers(ranges: str) -> list[str] | None:
    found: list[str] = []
    for part in ranges.split(","):
        match = _RANGE.fullmatch(part)
        if match is None:
            return None
        first, last = int(match["first"]), int(match["last"] or match["first"])
        if not 0 <= last - first < _MOST:
            return None
        found.extend(str(number).zfill(len(match["first"])) for number in range(first, last + 1))
    return found
