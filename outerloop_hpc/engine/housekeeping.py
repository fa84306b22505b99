"""What each tick clears away: leftovers of passes that were killed, and what closed runs kept for debugging.

Oldest first, and only so much of it: a pass that has done its share stops, and the next one goes on. Nothing of a live
run is ever touched, nor records, journals, reports, logs, transcripts, accounting, or a reference of any mirror.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

from outerloop_hpc import effects, fsio
from outerloop_hpc.clock import Clock
from outerloop_hpc.documents import load
from outerloop_hpc.engine.clearing import Cleared, remove
from outerloop_hpc.engine.layout import Layout, RunFolder, parse_run_id
from outerloop_hpc.engine.leftovers import Leftovers, Sighting, folders, leftovers_in, mark_of, sighted
from outerloop_hpc.errors import OuterloopError, UsageError

_log = logging.getLogger(__name__)

#: What a closed run can do without: script, pickles and Slurm's own log. All else of a try is evidence.
_SCRAPS = ("submitit", "wake")
#: Also on a full disk: a clone that makes no progress for minutes is not yet abandoned.
_IN_USE = timedelta(hours=1)
_SHORT = 10
_FOLDERS = 10


@dataclass(frozen=True, slots=True)
class Share:
    """How much one pass does, and how old must be what it clears away. A short disk gets more of it."""

    grace: timedelta = timedelta(hours=24)
    items: int = 20
    seconds: float = 30.0
    skew: timedelta = timedelta(minutes=5)

    def on_short_disk(self) -> Share:
        """Return what is done while the disk is short."""
        return replace(self, grace=timedelta(0), items=self.items * _SHORT, seconds=self.seconds * _SHORT)


@dataclass(frozen=True, slots=True)
class Chore:
    """Something that may go: a leftover by its path, or the scraps of a closed run by the name of its marker."""

    since: datetime
    what: Literal["leftover", "run"]
    name: str


@dataclass(slots=True)
class Tidied:
    """What was done.

    Attributes:
        removed: files and folders that are gone. bytes: of them.
        more: the share was used up before everything was done.
        problems: what could not be removed, and why.
    """

    removed: int = 0
    bytes: int = 0
    more: bool = False
    problems: list[str] = field(default_factory=list)


# --- what may go (pure) ----------------------------------------------------------------------------------------------


def due(
    markers: Iterable[str], seen: Mapping[str, Sighting], live: Iterable[str], now: datetime, host: str, share: Share
) -> list[Chore]:
    """Return what may go, oldest first: of ``markers`` of closed runs, and of leftovers as they were ``seen``.

    Nothing of a run in ``live`` is due.
    """
    return sorted(
        [*_due_runs(markers, frozenset(live), now, share), *_due_leftovers(seen, now, host, share)],
        key=lambda chore: (chore.since, chore.name),
    )


def _due_runs(markers: Iterable[str], live: frozenset[str], now: datetime, share: Share) -> Iterator[Chore]:
    for marker in markers:
        with suppress(UsageError):
            closed, run = parse_marker(marker)
            # Who closed it may have had another clock; without a grace it only matters that it is closed.
            if run not in live and (not share.grace or now - closed >= share.grace + share.skew):
                yield Chore(closed, "run", marker)


def _due_leftovers(seen: Mapping[str, Sighting], now: datetime, host: str, share: Share) -> Iterator[Chore]:
    for path, sighting in seen.items():
        doubt = timedelta(0) if sighting.host == host else share.skew
        if now - sighting.at >= max(share.grace, _IN_USE) + doubt:
            yield Chore(sighting.at, "leftover", path)


def marker_of(run: str, closed: datetime) -> str:
    """Name the marker of a closed run: one listing then says which are old."""
    return f"{closed.astimezone(UTC):%Y%m%dT%H%M%SZ}.{run}"


def parse_marker(name: str) -> tuple[datetime, str]:
    """Split a marker's name into when its run was closed, and the run.

    Raises:
        UsageError: it is not one.
    """
    stamp, _, run = name.partition(".")
    parse_run_id(run)
    try:
        return datetime.strptime(f"{stamp}+0000", "%Y%m%dT%H%M%SZ%z"), run
    except ValueError:
        raise UsageError(f"{name!r} does not say when its run was closed") from None


# --- doing it --------------------------------------------------------------------------------------------------------


class Housekeeping:
    """Clears away one pass's share."""

    def __init__(self, layout: Layout, clock: Clock, host: str, share: Share) -> None:
        self.layout, self.clock, self.host, self.share = layout, clock, host, share
        self.now = clock.now()
        self.until = clock.steady() + share.seconds
        self.left = share.items
        self.done = Tidied()

    def run(self) -> Tidied:
        """Look for leftovers a little further, then remove what is due, oldest first.

        Whatever cannot be removed is a problem of the result, and holds up nothing else.
        """
        known = self._known()
        after = self._looked(known)
        markers, live = fsio.names(self.layout.tidy), fsio.names(self.layout.live)
        gone: set[str] = set()
        for chore in due(markers, after.seen, live, self.now, self.host, self.share):
            if self._enough():
                self.done.more = True
                break
            if chore.what == "run":
                self._run(chore.name)
            elif self._leftover(chore.name, after.seen[chore.name].mark):
                gone.add(chore.name)
        self._keep(known, Leftovers(after=after.after, seen={k: v for k, v in after.seen.items() if k not in gone}))
        return self.done

    def _late(self) -> bool:
        return self.clock.steady() >= self.until

    def _enough(self) -> bool:
        return self.left <= 0 or self._late()

    def _known(self) -> Leftovers:
        try:
            known: Leftovers = load(Leftovers, self.layout.tick / "leftovers.json")
        except FileNotFoundError:
            return Leftovers()
        except OuterloopError as fault:
            _log.warning("%s; leftovers count from now on", fault)
            return Leftovers()
        return known

    def _looked(self, known: Leftovers) -> Leftovers:
        """Look into some more folders; what is not there any more is forgotten."""
        found: dict[str, str] = {}
        after = ""
        budget = self.share.items * _FOLDERS
        # On a slow filesystem, too, there is time left for removing something.
        looked_long_enough = self.until - self.share.seconds / 2
        for folder, entries in folders(self.layout.root, known.after):
            if budget == 0 or self.clock.steady() >= looked_long_enough:
                break
            budget, after = budget - 1, "/".join(folder)
            for entry in entries:
                path = "/".join((*folder, entry))
                if (mark := mark_of(self.layout.root / path)) is not None:
                    found[path] = mark
        else:
            after = ""
        there = {path: one for path, one in known.seen.items() if os.path.lexists(self.layout.root / path)}
        return Leftovers(after=after, seen=sighted(there, found, self.now, self.host))

    def _leftover(self, path: str, mark: str) -> bool:
        """Remove a leftover that is still as it was; whether it is gone."""
        full = self.layout.root / path
        return mark_of(full) == mark and self._remove(full)

    def _run(self, marker: str) -> None:
        """Remove what a closed run kept for debugging, then its marker."""
        folder = self.layout.run(parse_marker(marker)[1])
        whole = True
        for path in self._scraps(folder):
            if self._enough():
                self.done.more = True
                return
            whole &= self._remove(path)
        if whole:
            self.left -= 1
            self._careful(str(folder.path), lambda: fsio.remove(self.layout.tidy / marker))

    def _scraps(self, folder: RunFolder) -> Iterator[Path]:
        tries = folder.path / "tries"
        submissions = [tries / name for name in fsio.names(tries)]
        for place in (folder.path, folder.journal, folder.inbox, folder.inbox_done, folder.path / "accounting"):
            yield from leftovers_in(place)
        for submission in submissions:
            yield from (submission / scrap for scrap in _SCRAPS if (submission / scrap).is_dir())
            yield from leftovers_in(submission)

    def _remove(self, path: Path) -> bool:
        cleared = Cleared(whole=False)

        def act() -> None:
            nonlocal cleared
            cleared = effects.perform("remove", str(path), lambda: remove(path, self._late))

        self._careful(str(path), act)
        self.done.bytes += cleared.bytes
        if cleared.whole:
            self.done.removed += 1
            self.left -= 1
        elif cleared.trouble:
            self._problem(cleared.trouble)
        else:
            self.done.more = True
        return cleared.whole

    def _careful(self, what: str, act: Callable[[], object]) -> None:
        try:
            act()
        except (OuterloopError, OSError) as error:
            self._problem(f"{what}: {error}")

    def _problem(self, text: str) -> None:
        self.done.problems.append(f"housekeeping: {text}; each tick tries again")

    def _keep(self, before: Leftovers, after: Leftovers) -> None:
        if before == after:
            return
        # A cache, and a full disk is what this is there to mend.
        with suppress(OuterloopError, OSError):
            fsio.replace(self.layout.tick / "leftovers.json", after.encoded())
