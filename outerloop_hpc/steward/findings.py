"""What the jobs of a steward run leave for the plan: the payloads of their records. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import AwareDatetime, ValidationError

from outerloop_hpc.agents.refusals import Outage
from outerloop_hpc.documents import Value

SessionWord = Literal["changed", "no-change", "out-of-scope", "budget", "outage", "failed"]


class Stray(Value):
    """A changed path that must not be."""

    path: str
    reason: str


class SessionFound(Value):
    """What came of the session.

    Attributes:
        candidate: commit with the changes, in the target's mirror; empty when nothing is proposed. tree: its tree.
        changed: the paths that it changes. strays: those of all changed paths that must not be.
        report: the session's own words; foreign text.
        refused_at: when the service refused it, by the clock of its node.
        transcript: where its transcript is, relative to the run's folder.
    """

    word: SessionWord
    reason: str = ""
    candidate: str = ""
    tree: str = ""
    changed: tuple[str, ...] = ()
    strays: tuple[Stray, ...] = ()
    report: str = ""
    outage: Outage | None = None
    refused_at: AwareDatetime | None = None
    turns: int | None = None
    cost_usd: float | None = None
    seconds: float = 0.0
    transcript: str = ""


class ValidationFound(Value):
    """What came of the validation: every command that was run on a fresh checkout of the candidate."""

    passed: bool
    what: str = ""
    reason: str = ""
    output: str = ""


def session_found(payload: Mapping[str, Any]) -> SessionFound | None:
    """Read a session's payload; None when it is not one of this version's."""
    try:
        return SessionFound.model_validate(payload)
    except ValidationError:
        return None


def validation_found(payload: Mapping[str, Any]) -> ValidationFound | None:
    """Read a validation's payload; None when it is not one of this version's."""
    try:
        return ValidationFound.model_validate(payload)
    except ValidationError:
        return None
