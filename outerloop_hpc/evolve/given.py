"""What the steps of a sweep are given: the parameters of a cell and of a proposal. Pure."""

from __future__ import annotations

import hashlib
from typing import Any, Literal

from pydantic import Field

from outerloop_hpc.documents import Value
from outerloop_hpc.evolve.gate.pairs import Arm

CELL_BODY = "outerloop_hpc.evolve.bodies.cell:cell"
PROPOSE_BODY = "outerloop_hpc.evolve.bodies.propose:propose"


class CellGiven(Value):
    """One cell.

    Attributes:
        cell: its id.
        stage: for people; the command is not told.
        overlay: digest of the candidate; empty where the candidate is the incumbent itself (an A/A run).
        arms: which are to run; both make a pair on one node.
    """

    cell: str
    task: str
    seed: int
    repeat: int = Field(ge=0)
    stage: str = ""
    overlay: str = Field(default="", pattern=r"^([0-9a-f]{64})?$")
    arms: tuple[Arm, ...] = Field(min_length=1, max_length=2)

    def in_order(self) -> tuple[Arm, ...]:
        """Return the arms in the order in which they run; that of a pair follows from the cell's id alone."""
        if len(self.arms) == 1:
            return self.arms
        first, second = sorted(self.arms)
        turned = hashlib.sha256(self.cell.encode()).digest()[0] & 1
        return (second, first) if turned else (first, second)


class Told(Value):
    """What came of earlier values of a search. ``gain``: larger is better; ``None`` where nothing was measured."""

    values: dict[str, str | int | float | bool]
    gain: float | None = None


class Prior(Value):
    """The last proposal that was not promoted: its overlay's digest, if it had one, and why it lost."""

    digest: str = Field(default="", pattern=r"^([0-9a-f]{64})?$")
    reason: str = ""


class ProposeGiven(Value):
    """One proposal.

    Attributes:
        generation: counted from 0.
        count: how many candidates are wanted.
        told: of a search, oldest first.
        rows, gates: evidence, as it goes into the bundle.
        dropped: what had no room in it; goes into its manifest.
    """

    generation: int = Field(ge=0)
    count: int = Field(default=1, ge=1)
    told: tuple[Told, ...] = ()
    rows: tuple[dict[str, Any], ...] = ()
    gates: tuple[dict[str, Any], ...] = ()
    prior: Prior = Field(default_factory=Prior)
    dropped: tuple[str, ...] = ()


#: What the body of a step says of evidence that is not what it must be; the sweep stops there.
INTEGRITY: Literal["integrity"] = "integrity"
