"""What the evolve kind's jobs leave in their records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, ValidationError

from outerloop_hpc.documents import Value
from outerloop_hpc.evolve.gate.pairs import Arm

#: Of one arm's execution. ``failed``: a bad exit, a run beyond its own limit, numbers that are none, what its overlay
#: broke. ``out-of-memory``: although it had more memory already.
ArmWord = Literal["measured", "failed", "out-of-memory"]


class ArmFound(Value):
    """One arm's execution in a cell. ``overlay``: the candidate's digest, empty for the incumbent."""

    arm: Arm
    overlay: str = ""
    word: ArmWord
    metrics: dict[str, float] = Field(default_factory=dict)
    success: bool | None = None
    reason: str = ""
    seconds: float = 0.0
    cpu_s: float = 0.0
    max_rss_kib: int | None = None


class CellFound(Value):
    """What a cell's record holds: one arm or, in the order in which they ran, both."""

    cell: str
    task: str
    seed: int
    arms: tuple[ArmFound, ...] = Field(min_length=1, max_length=2)
    node: str = ""
    cpu_model: str = ""
    image_sha256: str = ""


class Candidate(Value):
    """A frozen overlay: ``candidates/<digest>/`` of the run. ``values``: of a grid or a search."""

    digest: str
    files: tuple[str, ...]
    bytes: int
    values: dict[str, str | int | float | bool] = Field(default_factory=dict)
    proposal: bool = False
    origin: str


class Refused(Value):
    """A proposal that is no candidate, and why; the next proposer is told. ``values``: of a grid or a search."""

    reason: str
    kind: Literal["invalid-overlay", "proposer-failed"]
    values: dict[str, str | int | float | bool] = Field(default_factory=dict)


class ProposalFound(Value):
    """What a proposal's record holds. ``exhausted``: there are no more ideas."""

    candidates: tuple[Candidate, ...] = ()
    refused: tuple[Refused, ...] = ()
    exhausted: bool = False
    money: float = 0.0


def cell_found(payload: Mapping[str, Any]) -> CellFound | None:
    """Read a cell's record; None where it cannot be read, which is for the plan to halt on, not for reports."""
    try:
        return CellFound.model_validate(payload)
    except ValidationError:
        return None


def proposal_found(payload: Mapping[str, Any]) -> ProposalFound:
    """Read a proposal's record; one that cannot be read brought nothing."""
    try:
        return ProposalFound.model_validate(payload)
    except ValidationError:
        return ProposalFound()
