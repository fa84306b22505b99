"""Runs on disk: make one exactly once, find the live ones, claim an order for one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from pydantic import AwareDatetime

from outerloop_hpc import fsio
from outerloop_hpc.documents import Document, load
from outerloop_hpc.engine.layout import Layout, RunFolder, parse_run_id
from outerloop_hpc.engine.spec import RunSpec, digest_of
from outerloop_hpc.errors import Fault, UsageError


class OrderClaim(Document):
    """``claims/<target>/<key>.json``: one order, held by one run. The first to publish it has the order."""

    name: ClassVar[str] = "order-claim"

    id: str
    order: str
    at: AwareDatetime
    spec: RunSpec


def _claim_path(layout: Layout, target: str, order: str) -> Path:
    return layout.claims / target / f"{digest_of(target, order)[:32]}.json"


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
    ours = OrderClaim(id=fsio.nonce(), order=order, at=spec.made_at, spec=spec)
    if fsio.publish(path, ours.encoded()):
        return ours
    held = claimed(layout, spec.target, order)
    return ours if held is None else held


def ensure(layout: Layout, spec: RunSpec) -> RunFolder:
    """Make the run's folder, specification and live marker; each part only once, in any order of crashes.

    Raises:
        Fault: another specification already has this run id.
    """
    folder = layout.run(spec.run)
    if (folder.journal / "00000001.json").exists():
        return folder
    fsio.make_folder(folder.path)
    fsio.make_folder(layout.live)
    if not fsio.publish(folder.spec, spec.encoded()):
        raise Fault(f"{folder.spec}: another run has this id; nothing was changed")
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
