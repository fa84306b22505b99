"""What is left unfinished by passes that were killed: where it is looked for, and since when it has not changed.

Its age is counted from sightings by passes: the times that files carry come from whatever clock wrote them.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import ClassVar

from pydantic import AwareDatetime, Field

from outerloop_hpc.documents import Document, Value

#: Names that this program gives to what it has not finished; anything else that begins so is somebody else's.
_LEFTOVER = re.compile(r"\.tmp-((mirror|branches|probe|clock|room)-)?[0-9a-z_]{8,16}")
#: Where such names are made, beside the folders of runs. A state folder may hold what is not ours.
_PLACES = frozenset(
    {"claims", "forge", "jobs", "live", "local", "making", "mirrors", "outages", "results", "tick", "tidy"}
)
_MOST_SEEN = 1000
_MOST_MARKED = 10_000


class Sighting(Value):
    """Since when a leftover has been seen as it is, by which host's clock; times that files carry prove nothing."""

    at: AwareDatetime
    host: str
    mark: str


class Leftovers(Document):
    """``tick/leftovers.json``: a cache. Losing it lets leftovers stay for another grace.

    Attributes:
        after: the folder that was looked at last; the next pass goes on behind it.
        seen: leftovers by their path below the state folder.
    """

    name: ClassVar[str] = "leftovers"

    after: str = ""
    seen: dict[str, Sighting] = Field(default_factory=dict)


def sighted(before: Mapping[str, Sighting], found: Mapping[str, str], now: datetime, host: str) -> dict[str, Sighting]:
    """Return the sightings after another look, which ``found`` marks by path.

    What has changed meanwhile is in use, and counts from now on.
    """
    new = dict(before)
    for path, mark in found.items():
        if path in before and before[path].mark == mark:
            continue
        if path in before or len(new) < _MOST_SEEN:
            new[path] = Sighting(at=now, host=host, mark=mark)
    return new


def folders(root: Path, after: str) -> Iterator[tuple[tuple[str, ...], list[str]]]:
    """Yield the folders in which unfinished things are made, each with what looks like one, in a fixed order.

    Args:
        root: the state folder.
        after: path below it of the folder that was yielded last; empty to begin anew.
    """
    yield from _folders(root, tuple(after.split("/")) if after else (), ())


def _folders(
    root: Path, after: tuple[str, ...], folder: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], list[str]]]:
    subfolders, leftovers = [], []
    with suppress(OSError), os.scandir(root.joinpath(*folder)) as entries:
        for entry in entries:
            if entry.name.startswith(".tmp-"):
                leftovers.append(entry.name)
            elif _is_place(folder, entry.name) and entry.is_dir(follow_symlinks=False):
                subfolders.append(entry.name)
    if folder > after or not after:
        yield folder, sorted(name for name in leftovers if _LEFTOVER.fullmatch(name))
    for name in sorted(subfolders):
        inner = (*folder, name)
        if inner >= after[: len(inner)]:
            yield from _folders(root, after, inner)


def _is_place(folder: tuple[str, ...], name: str) -> bool:
    # A name that is no text is nothing of ours, and could not be remembered.
    return name.isprintable() and not name.endswith(".git") and (bool(folder) or name in _PLACES)


def leftovers_in(folder: Path) -> Iterator[Path]:
    """Yield what looks unfinished in one folder, sorted."""
    with suppress(OSError), os.scandir(folder) as entries:
        yield from sorted(folder / entry.name for entry in entries if _LEFTOVER.fullmatch(entry.name))


def mark_of(path: Path) -> str | None:
    """Return what changes when somebody works on a leftover; only ever compared with itself. None: it is gone."""
    try:
        found = path.lstat()
    except OSError:
        return None
    count, size, newest = 1, found.st_size, found.st_mtime_ns
    for parent, folders, files in os.walk(path) if stat.S_ISDIR(found.st_mode) else ():
        for name in (*folders, *files):
            with suppress(OSError):
                inner = os.lstat(f"{parent}/{name}")
                count, size, newest = count + 1, size + inner.st_size, max(newest, inner.st_mtime_ns)
        if count > _MOST_MARKED:
            break
    return f"{found.st_ino}:{count}:{size}:{newest}"
