"""Claims on orders as documents, and where they are. Pure."""

from __future__ import annotations

from typing import ClassVar

from pydantic import AwareDatetime

from outerloop_hpc.documents import Document
from outerloop_hpc.engine.spec import RunSpec, digest_of


class OrderClaim(Document):
    """``claims/<target>/<key>.json``: one order, held by one run. The first to publish it has the order."""

    name: ClassVar[str] = "order-claim"

    id: str
    order: str
    at: AwareDatetime
    spec: RunSpec


class ClaimEnded(Document):
    """``claims/<target>/<key>.ended.json``: how a claim ended, and what that rests on. Published with the run's ending.

    Attributes:
        claim: the id that the claim's marker on the forge carries.
        reason: ``published``, ``answered``, ``failed``, ``outage`` or ``refused``; only ``failed`` costs an attempt.
        ending: the run's own word. why: the run's own reason.
    """

    name: ClassVar[str] = "claim-ended"

    run: str
    order: str
    claim: str
    reason: str
    ending: str
    why: str
    at: AwareDatetime


def claim_path(target: str, order: str) -> str:
    """Return where the claim of an order is, relative to the state folder."""
    return f"claims/{target}/{digest_of(target, order)[:32]}.json"


def ended_path(target: str, order: str) -> str:
    """Return where the end of that claim is."""
    return f"claims/{target}/{digest_of(target, order)[:32]}.ended.json"
