"""Runs on disk: make one exactly once, find the live ones, claim an order for one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import ClassVar

from outerloop_hpc import fsio
from outerloop_hpc.documents import Document, load
from outerloop_hpc.engine.claims import OrderClaim, claim_path
from outerloop_hpc.engine.layout import Layout, RunFolder, parse_run_id
from outerloop_hpc.engine.spec import RunSpec
from outerloop_hpc.errors import Fault, TryLater, UsageError

_MAKING_MOST = timedelta(hours=1)


class Making(Document):
    """``making/<run>.json``: there before the claim and until the run's folder is there.

    The order may never be wanted again, when the head moved on or the period is over; what is claimed is made anyway.
    """

    name: ClassVar[str] = "making"

    target: str
    order: str


def _making_path(layout: Layout, run_id: str) -> Path:
    return layout.making / f"{run_id}.json"


def _claim_path(layout: Layout, target: str, order: str) -> Path:
    return layout.root / claim_path(target, order)


def claimed(layout: Layout, target: str, order: str) -> OrderClaim | None:
    """Return the claim on an order, if somebody holds it.

    Raises:
        Fault: the claim is there and cannot be read; its order stays held.
    """
    try:
        claim: OrderClaim = load(OrderClaim, _claim_path(layout, target, order))
    except FileNotFoundError:
        return None
    return claim


def claim(layout: Layout, order: str, spec: RunSpec) -> OrderClaim:
    """Claim an order for the run of ``spec`` and return whoever's claim holds, ours or an earlier one.

    The specification is inside the claim, so that a run whose maker died is made by the next pass.
    """
    path = _claim_path(layout, spec.target, order)
    fsio.make_folder(path.parent)
    fsio.make_folder(layout.making)
    fsio.publish(_making_path(layout, spec.run), Making(target=spec.target, order=order).encoded())
    ours = OrderClaim(id=fsio.nonce(), order=order, at=spec.made_at, spec=spec)
    if fsio.publish(path, ours.encoded()):
        return ours
    fsio.remove(_making_path(layout, spec.run))
    held = claimed(layout, spec.target, order)
    return ours if held is None else held


def made(layout: Layout, run_id: str) -> None:
    """Note that a claimed run is there: its folder, specification and live marker."""
    fsio.remove(_making_path(layout, run_id))


def unmade(layout: Layout) -> list[str]:
    """Ids of runs that somebody claims or makes right now, or died over."""
    return [name.removesuffix(".json") for name in fsio.names(layout.making)]


def claimed_unmade(layout: Layout, kind: str, target: str) -> list[str]:
    """Ids of a target's runs that hold an order and are not there yet: their maker is at it, or died.

    One without a claim holds nothing: it may never come to be. What cannot be read counts.
    """
    found = []
    for run_id in unmade(layout):
        if not run_id.startswith(f"{kind}-{target}-"):
            continue
        try:
            making: Making = load(Making, _making_path(layout, run_id))
            held = claimed(layout, making.target, making.order)
        except FileNotFoundError:
            continue
        except Fault:
            found.append(run_id)
        else:
            if held is not None and held.spec.run == run_id:
                found.append(run_id)
    return found


def make_up(layout: Layout, run_id: str, now: datetime) -> None:
    """Make a run whose maker may have died after its claim; harmless while that one is at it.

    Without a claim the maker has just begun, or never got so far; that is believed after an hour.

    Raises:
        Fault: its documents cannot be read.
    """
    with suppress(FileNotFoundError):
        making: Making = load(Making, _making_path(layout, run_id))
        held = claimed(layout, making.target, making.order)
        if held is not None and held.spec.run == run_id:
            ensure(layout, held.spec)
        elif now - parse_run_id(run_id).at < _MAKING_MOST:
            return
        made(layout, run_id)


def ensure(layout: Layout, spec: RunSpec, *, prepare: Callable[[RunFolder], None] = lambda _folder: None) -> RunFolder:
    """Make the run's folder, specification and live marker; each part only once, in any order of crashes.

    ``prepare`` adds what the run needs besides, before any pass can see it; it must bear being done again.

    Raises:
        Fault: another specification already has this run id.
        TryLater: the state folder takes no more. A folder without specification is not left for lists to show.
    """
    folder = layout.run(spec.run)
    if (folder.journal / "00000001.json").exists():
        return folder
    fsio.make_folder(folder.path)
    fsio.make_folder(layout.live)
    try:
        ours = fsio.publish(folder.spec, spec.encoded())
    except TryLater:
        with suppress(OSError):  # it holds something, or cannot be removed either
            folder.path.rmdir()
        raise
    if not ours:
        raise Fault(f"{folder.spec}: another run has this id; nothing was changed")
    prepare(folder)
    fsio.publish(layout.live / spec.run, b"")
    return folder


def live(layout: Layout) -> list[str]:
    """Ids of all runs that have not been closed, sorted."""
    return fsio.names(layout.live)


def find(layout: Layout, text: str) -> RunFolder:
    """Find a run by its id or by an unambiguous end or beginning of it.

    Raises:
        UsageError: none, or several.
    """
    try:
        folder = layout.run(text)
    except UsageError:
        folder = None
    if folder is not None and folder.path.is_dir():
        return folder
    found = [f for f in every(layout) if text and (f.run_id.endswith(text) or f.run_id.startswith(text))]
    if len(found) != 1:
        several = f"; it may be {', '.join(f.run_id for f in found[:5])}" if found else ""
        raise UsageError(f"no single run is named {text!r}{several}; `outerloop-hpc runs list` shows them")
    return found[0]


def every(layout: Layout) -> Iterator[RunFolder]:
    """Every run ever made, oldest month first. History is for reports: no pass reads it."""
    for month in fsio.names(layout.runs):
        for name in fsio.names(layout.runs / month):
            try:
                parse_run_id(name)
            except UsageError:
                continue
            yield RunFolder(layout.runs / month / name)
