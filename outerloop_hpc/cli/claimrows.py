"""Claims on orders as rows: which run holds what, how each ended. One that cannot be read is never left out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from outerloop_hpc import fsio
from outerloop_hpc.cli.output import Column
from outerloop_hpc.config.settings import Settings
from outerloop_hpc.documents import load
from outerloop_hpc.engine import runs, watch
from outerloop_hpc.engine.claims import ClaimEnded, OrderClaim
from outerloop_hpc.engine.layout import Layout
from outerloop_hpc.errors import Fault, OuterloopError, UsageError

CLAIM_COLUMNS = (
    Column("claim", "id of the claim; for a steward's the one that its order shows"),
    Column("target", "target of the order"),
    Column("order", "key of the order"),
    Column("run", "run that holds it"),
    Column("since", "when it was claimed"),
    Column("state", "held, ended with its reason, unreadable, or unclear"),
    Column("how", "how far its run is, or how it ended", cut=True),
)
_UNREADABLE = "unreadable"
_UNCLEAR = "unclear"
_FILE = re.compile(r"[0-9a-f]{32}\.json")
_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Claimed:
    """A claim that can be read."""

    target: str
    claim: OrderClaim
    ended: ClaimEnded | None

    @property
    def id(self) -> str:
        """The id that people see: a kind that tells its claims on orders has one of its own for that."""
        return str(self.claim.spec.work.get("claim") or self.claim.id)

    @property
    def run(self) -> str:
        """The run that holds the order."""
        return self.claim.spec.run

    @property
    def order(self) -> str:
        """The key of the order."""
        return self.claim.order


@dataclass(frozen=True, slots=True)
class Broken:
    """A claim that cannot be read, or whose end cannot."""

    target: str
    file: str
    fault: str


def known_target(layout: Layout, settings: Settings, target: str) -> None:
    """Refuse a target that is not configured and has no claims; raises UsageError with those that there are."""
    known = sorted({*settings.targets, *fsio.names(layout.claims)})
    if target and target not in known:
        raise UsageError(f"there is no target {target!a}; there are {', '.join(known) or 'none'}")


def every(layout: Layout, target: str = "") -> Iterator[Claimed | Broken]:
    """Yield every claim there is, or every one of a target."""
    for name in fsio.names(layout.claims):
        if target not in {"", name}:
            continue
        folder = layout.claims / name
        listed = fsio.names(folder)
        for file in filter(_FILE.fullmatch, listed):
            over = file.replace(".json", ".ended.json")
            try:
                claim: OrderClaim = load(OrderClaim, folder / file)
                ended: ClaimEnded | None = load(ClaimEnded, folder / over) if over in listed else None
            except FileNotFoundError:
                yield Broken(name, file, f"{folder / file}: is gone since it was listed; look again")
            except Fault as fault:
                yield Broken(name, file, str(fault))
            else:
                yield Claimed(name, claim, ended)


def claim_rows(layout: Layout, target: str = "", *, everything: bool) -> Iterator[Mapping[str, object]]:
    """Yield one row per claim whose run is live or in the making, or per claim at all."""
    live, making = frozenset(runs.live(layout)), frozenset(runs.unmade(layout))
    for one in every(layout, target):
        if isinstance(one, Broken):
            yield {"claim": one.file, "target": one.target, "state": _UNREADABLE, "how": one.fault}
        elif everything or one.run in live or one.run in making:
            state, how = _stands(layout, one, live, making)
            row = {"claim": one.id, "target": one.target, "order": one.order, "run": one.run, "since": one.claim.at}
            yield {**row, "state": state, "how": how}


def finding(row: Mapping[str, object]) -> bool:
    """Whether a person has to look: the claim or its run cannot be read, or nobody will end it."""
    return row["state"] in {_UNREADABLE, _UNCLEAR}


def _stands(layout: Layout, one: Claimed, live: frozenset[str], making: frozenset[str]) -> tuple[str, str]:
    """Say whether a claim is held, and how its run is doing or has ended."""
    if one.ended is not None:
        told = "; it is not told on its order yet" if one.run in live else ""
        return f"ended: {one.ended.reason}", f"{one.ended.ending}: {one.ended.why}{told}"
    if one.run not in live and one.run in making:
        return "held", "in the making"
    try:
        state = watch.load(layout, one.run).state
    except OuterloopError as fault:
        return _UNREADABLE, str(fault)
    if state.ended is not None:
        return f"ended: {state.ended.ending}", state.ended.reason
    if one.run in live:
        return "held", state.phase if state.parked is None else f"parked: {state.parked.question}"
    return _UNCLEAR, f"its run has not ended and is not live; `outerloop-hpc explain {one.run}` shows what it did"


def find(layout: Layout, text: str) -> Claimed:
    """Find the claim that a person means and that can be released.

    Raises:
        UsageError: none or several begin like this, or it has ended.
        Fault: its run cannot be read.
    """
    claims, broken = [], 0
    for one in every(layout):
        if isinstance(one, Broken):
            broken += 1
        elif text and one.id.startswith(text):
            claims.append(one)
    exact = [one for one in claims if one.id == text]
    found = exact or claims
    if len(found) != 1:
        several = f"; it may be {', '.join(one.id for one in found[:_SHOWN])}" if found else ""
        unread = f"; {broken} claims cannot be read" if broken else ""
        raise UsageError(
            f"no single claim begins with {text!a}{several}{unread}; `outerloop-hpc claims list` shows them"
        )
    return _releasable(layout, found[0])


def in_the_making(layout: Layout, run: str) -> bool:
    """Whether a run is claimed for and not yet made."""
    return run in runs.unmade(layout) and run not in runs.live(layout)


def _releasable(layout: Layout, one: Claimed) -> Claimed:
    state, how = _stands(layout, one, frozenset(runs.live(layout)), frozenset(runs.unmade(layout)))
    if state.startswith("ended"):
        raise UsageError(f"claim {one.id} of {one.run} has {state} ({how}); nothing is left to release")
    if state in {_UNREADABLE, _UNCLEAR}:
        raise Fault(f"claim {one.id} of {one.run}: {how}")
    return one
