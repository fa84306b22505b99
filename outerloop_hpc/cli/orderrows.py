"""Rows about the orders of a target: what each says, and where its claims stand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from outerloop_hpc.cli.output import Column
from outerloop_hpc.config.settings import Steward
from outerloop_hpc.engine import runs
from outerloop_hpc.engine.claims import ended_path
from outerloop_hpc.engine.layout import Layout
from outerloop_hpc.errors import Fault
from outerloop_hpc.forge.local import LocalForge
from outerloop_hpc.forge.markers import Standing, standing
from outerloop_hpc.forge.port import Order
from outerloop_hpc.report.costs import Window
from outerloop_hpc.steward.work import claim_id, order_key

ORDER_COLUMNS = (
    Column("number", "number of the order"),
    Column("state", "open, closed or unreadable"),
    Column("labels", "its labels"),
    Column("author", "who opened it"),
    Column("title", "what is wanted", cut=True),
    Column("opened_at", "when it was opened"),
    Column("standing", "what holds it, or how its last claim ended", cut=True),
    Column("attempts", "claims that failed, and so used up one of its attempts"),
    Column("outages", "claims that an outage ended, and that were given back", shown=False),
    Column("claims", "claims there have been", shown=False),
    Column("claim", "id of the claim that holds it", shown=False),
    Column("run", "run of that claim", shown=False),
    Column("touched_at", "when anything about it last changed", shown=False),
)
_UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which orders to list; what is empty keeps all. One that cannot be read is always listed.

    Attributes:
        everything: closed ones too.
        window: when it was opened.
    """

    everything: bool
    label: str
    window: Window
    authors: frozenset[str]

    def keeps(self, order: Order) -> bool:
        """Whether this order is asked for."""
        at, start, end = order.opened_at.timestamp(), self.window.start, self.window.end
        return (
            (self.everything or order.open)
            and self.label in {"", *order.labels}
            and (not self.authors or order.author in self.authors)
            and (start is None or at >= start)
            and (end is None or at < end)
        )


def order_rows(
    forge: LocalForge, layout: Layout, target: str, given: Steward, wanted: Wanted
) -> Iterator[Mapping[str, object]]:
    """Yield one row per order, oldest first."""
    for number in forge.order_ids():
        try:
            order = forge.order(number)
            if wanted.keeps(order):
                yield order_row(forge, layout, target, given, order)
        except Fault as fault:
            yield {"number": int(number), "state": _UNREADABLE, "standing": str(fault)}


def unreadable(row: Mapping[str, object]) -> bool:
    """Whether a row is of something that cannot be read."""
    return row["state"] == _UNREADABLE


def order_row(forge: LocalForge, layout: Layout, target: str, given: Steward, order: Order) -> Mapping[str, object]:
    """Return the row of one order.

    Raises:
        Fault: its thread or a claim on it cannot be read; the order stays held then.
    """
    found = standing(forge.comments(order.order_id), forge.identity, given.authors)
    claim, run, words = _held(layout, target, order.order_id, found)
    return {
        "number": int(order.order_id),
        "state": "open" if order.open else "closed",
        "labels": order.labels,
        "author": order.author,
        "title": order.title,
        "opened_at": order.opened_at,
        "standing": words,
        "attempts": found.failed,
        "outages": found.outages,
        "claims": found.attempts,
        "claim": claim or None,
        "run": run or None,
        "touched_at": order.touched_at,
    }


def _held(layout: Layout, target: str, order_id: str, found: Standing) -> tuple[str, str, str]:
    """Return the claim and the run that hold an order, and how it stands in words."""
    if found.held is not None:
        return found.held.claim, found.held.run, f"held by claim {found.held.claim}"
    if run := _untold(layout, target, order_id, found.attempts + 1):
        claim = claim_id(target, run)
        return claim, run, f"held by claim {claim}, which is not told on it yet"
    if found.last is None:
        return "", "", "never claimed"
    return "", "", f"last claim ended: {found.last}"


def _untold(layout: Layout, target: str, order_id: str, attempt: int) -> str:
    """Return the run of a claim that has not got onto the order yet; empty when there is none."""
    while (claim := runs.claimed(layout, target, order_key(order_id, attempt))) is not None:
        if not (layout.root / ended_path(target, order_key(order_id, attempt))).exists():
            return claim.spec.run
        attempt += 1
    return ""
