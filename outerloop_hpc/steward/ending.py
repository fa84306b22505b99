"""What the ending of a steward run means for its order, its role and the history. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from outerloop_hpc.agents.pauses import RoleOutage, outage_path
from outerloop_hpc.engine.claims import ClaimEnded, ended_path
from outerloop_hpc.engine.points import point_of
from outerloop_hpc.engine.spec import RunSpec
from outerloop_hpc.engine.state import RunState
from outerloop_hpc.forge.markers import EndReason
from outerloop_hpc.measure.history import Point, path_of
from outerloop_hpc.steward.findings import SessionFound, ValidationFound, session_found, validation_found
from outerloop_hpc.steward.steps import SESSION, VALIDATE
from outerloop_hpc.steward.work import ROLE, StewardWork, order_key

#: Every ending that is not here is the order's own failure, and costs an attempt.
_REASONS: Mapping[str, EndReason] = {
    "merged": "published",
    "rejected": "published",
    "answered": "answered",
    # A person who ends a run by hand does not want it bought again at once.
    "operator": "answered",
    "outage": "outage",
    "refused": "refused",
}


def reason_of(ending: str) -> EndReason:
    """Return why the claim ends when the run ends with this word."""
    return _REASONS.get(ending, "failed")


def documents(spec: RunSpec, work: StewardWork, state: RunState) -> Mapping[str, bytes]:
    """Return what the ended run publishes, by path relative to the state folder."""
    ended = state.ended
    if ended is None:
        return {}
    order = order_key(work.order.order_id, work.attempt)
    over = ClaimEnded(
        run=spec.run,
        order=order,
        claim=work.claim,
        reason=reason_of(ended.ending),
        ending=ended.ending,
        why=ended.reason,
        at=ended.at,
    )
    found = {ended_path(spec.target, order): over.encoded()}
    session = session_of(state)
    if ended.ending == "outage" and session is not None and session.outage is not None:
        pause = RoleOutage(
            role=ROLE, run=spec.run, at=session.refused_at or ended.at, outage=session.outage, text=session.reason
        )
        found[outage_path(ROLE, spec.run)] = pause.encoded()
    if ended.ending == "merged" and (point := _point(spec, work, state, session)) is not None:
        found[path_of(spec.target, point.benchmark, spec.run)] = point.encoded()
    return found


def session_of(state: RunState) -> SessionFound | None:
    """Return what the session left, once there is something."""
    payload = next((s.payload for s in state.steps.values() if s.spec.job == SESSION and s.payload), None)
    return None if payload is None else session_found(payload)


def validation_of(state: RunState) -> ValidationFound | None:
    """Return what the validation left, once there is something."""
    payload = next((s.payload for s in state.steps.values() if s.spec.job == VALIDATE and s.payload), None)
    return None if payload is None else validation_found(payload)


def _point(spec: RunSpec, work: StewardWork, state: RunState, session: SessionFound | None) -> Point | None:
    """Return the first point on the new ruler: what was measured before a person merged it."""
    if session is None:
        return None
    return point_of(spec, state, work.ruler, commit=session.candidate, tree=session.tree, rebased=True)
