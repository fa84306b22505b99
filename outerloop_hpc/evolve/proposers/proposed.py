"""What a proposer is asked and what it answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from outerloop_hpc.engine.body import Context, Result
from outerloop_hpc.evolve.findings import Refused
from outerloop_hpc.evolve.given import ProposeGiven
from outerloop_hpc.evolve.overlays.overlay import Overlay
from outerloop_hpc.evolve.work import EvolveWork


@dataclass(frozen=True, slots=True)
class Occasion:
    """One proposal of a sweep, on this node."""

    context: Context
    work: EvolveWork
    given: ProposeGiven


@dataclass(frozen=True, slots=True)
class Draft:
    """One candidate before it is checked.

    Attributes:
        origin: where it is from, for people.
        take: returns it; raises InvalidOverlay when what is there can be none.
        values: of a grid or a search.
    """

    origin: str
    take: Callable[[], Overlay]
    values: Mapping[str, str | int | float | bool] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Proposed:
    """What a proposer came to. ``text``: its own words, without secrets. ``exhausted``: after these it has no more."""

    drafts: tuple[Draft, ...] = ()
    refused: tuple[Refused, ...] = ()
    exhausted: bool = False
    money: float = 0.0
    text: str = ""


#: Answers one occasion; a result says nothing about the proposer and ends the try.
Propose = Callable[[Occasion], Proposed | Result]


def failed(reason: str, *, money: float = 0.0) -> Proposed:
    """Say that a proposer failed by its own fault."""
    return Proposed(refused=(Refused(reason=reason, kind="proposer-failed"),), money=money)
