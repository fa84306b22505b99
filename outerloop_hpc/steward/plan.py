"""The steward kind's plan: claim, session, trial of the candidate, change, and what people make of it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from outerloop_hpc.engine.kind import Ask, Decision, End, Outcome, Post, Submit, View
from outerloop_hpc.engine.spec import RunSpec
from outerloop_hpc.engine.state import RunState
from outerloop_hpc.measure.history import measured
from outerloop_hpc.steward import ending, posts, proposal
from outerloop_hpc.steward.findings import SessionFound, session_found, validation_found
from outerloop_hpc.steward.steps import MEASURE, SESSION, VALIDATE, session_step, trial_steps
from outerloop_hpc.steward.work import KIND, StewardWork, work_of

_CLAIMED = "claimed"
_PUBLISHED = "published"


class StewardKind:
    """Claim, mend, try, propose, wait."""

    name = KIND

    def plan(self, view: View) -> tuple[Decision, ...]:
        """Say what the run needs now."""
        if _CLAIMED not in view.said:
            # Nothing is bought before everybody can see whose order this is.
            work = work_of(view.spec)
            text = posts.claimed(view.spec, work)
            return (Post(_CLAIMED, work.order.order_id, text, "the order is taken"),)
        if not view.steps:
            return (_first(view),)
        if asked := _cancelled(view):
            return (asked,)
        if change := view.changes.get(proposal.CHANGE):
            return _wait(view, change.status, change.where)
        if view.under_way:
            return ()
        return _go_on(view)

    def farewell(self, spec: RunSpec, state: RunState) -> tuple[Post, ...]:
        """Release the order, with the reason and what was found."""
        work = work_of(spec)
        order = work.order.order_id
        # A person may have ended it before anything was said; untold, the end would hold nobody off the order.
        claimed = Post(_CLAIMED, order, posts.claimed(spec, work), "the order was taken")
        return (claimed, Post("released", order, posts.released(spec, work, state), "the claim has ended"))

    def report(self, spec: RunSpec, state: RunState) -> str:
        """Return the kind's part of ``report.md``."""
        return posts.report(work_of(spec), state)

    def pages(self, spec: RunSpec, state: RunState) -> Mapping[str, str]:  # noqa: ARG002 - the port's
        """The report says all."""
        return {}

    def documents(self, spec: RunSpec, state: RunState) -> Mapping[str, bytes]:
        """Return the end of the claim, the outage if there was one, and the new ruler's first point once merged."""
        return ending.documents(spec, work_of(spec), state)


def _first(view: View) -> Submit | End:
    if _CLAIMED in view.unheard:
        return End("refused", "its order is not there any more; no session was begun", {})
    step = session_step(view.spec, work_of(view.spec))
    return Submit((step,), f"a session on {view.spec.work['ruler']['benchmark']}")


def _cancelled(view: View) -> Ask | None:
    found = [outcome for outcome in view.outcomes.values() if outcome.word == "cancelled by a person"]
    if not found:
        return None
    # No claim buys two sessions, whoever ended the first one.
    again = "to have it counted as failed" if any(outcome.begun for outcome in found) else "to do it again"
    question = (
        f"somebody cancelled a step: `outerloop-hpc runs resume {view.spec.run} --reason …` {again}, "
        f"or `outerloop-hpc runs end {view.spec.run} --reason …`"
    )
    return Ask(question, found[0].reason)


def _wait(view: View, status: str, where: str) -> tuple[Decision, ...]:
    """The change is wanted or open: say so once it is there, and end with what people decide."""
    if status == "wanted":
        return ()
    if status == "open":
        if _PUBLISHED in view.said:
            return ()
        work = work_of(view.spec)
        text = posts.published(view.spec, work, _session(view), _numbers(view), where)
        return (Post(_PUBLISHED, work.order.order_id, text, "the change is open"),)
    if status == "merged":
        return (End("merged", f"{where} was merged", {"values": _numbers(view)}),)
    how = "was closed without being merged" if status == "closed" else "is not there any more"
    return (End("rejected", f"{where} {how}", {"values": _numbers(view)}),)


def _go_on(view: View) -> tuple[Decision, ...]:
    """Everything that was asked for has its last word: the session alone, or the trial of its candidate too."""
    outcome = _outcome(view, SESSION)
    if (over := _not_held(outcome, "session", bought=outcome.begun)) is not None:
        return (over,)
    found = session_found(outcome.payload)
    if found is None:
        return (End("aborted", "the session's record is not one of this version's", {}),)
    if found.word != "changed":
        return (_ended_by_session(found),)
    work = work_of(view.spec)
    if not any(step.job == VALIDATE for step in view.steps.values()):
        why = f"try candidate {found.candidate[:12]} with tree {found.tree[:12]}"
        return (Submit(trial_steps(view.spec, work, found), why),)
    return (_judged(view, work, found),)


def _ended_by_session(found: SessionFound) -> End:
    result: dict[str, Any] = {"session": found.word}
    match found.word:
        case "no-change":
            return End("answered", found.reason or "the session found no change warranted", result)
        case "budget":
            return End("budget-exhausted", found.reason, result)
        case "outage":
            return End("outage", found.reason, result | {"outage": found.outage})
        case "out-of-scope":
            paths = ", ".join(stray.path for stray in found.strays[:5])
            more = f" and {len(found.strays) - 5} more" if len(found.strays) > 5 else ""  # noqa: PLR2004 - as above
            result |= {"strays": [stray.model_dump(mode="json") for stray in found.strays]}
            return End("out-of-scope", f"it changed what is not the steward's: {paths}{more}", result)
        case _:
            return End("aborted", found.reason or "the session failed", result)


def _judged(view: View, work: StewardWork, found: SessionFound) -> Decision:
    """Propose the candidate when it passed and every seed could be measured; else say what failed first."""
    outcome = _outcome(view, VALIDATE)
    if (over := _not_held(outcome, "validation", bought=True)) is not None:
        return over
    validation = validation_found(outcome.payload)
    if validation is None or not validation.passed:
        why = "its record is not one of this version's" if validation is None else validation.reason
        what = "" if validation is None else f" ({validation.what})"
        return End("invalid", f"the candidate did not pass{what}: {why}", {"session": found.word})
    for step_key, step in view.steps.items():
        if step.job == MEASURE and step_key in view.outcomes:
            measure = view.outcomes[step_key]
            if measured(measure.record_outcome, measure.payload) is None:
                seed = step.parameters["seed"]
                why = measure.reason or measure.word
                return End("invalid", f"the candidate could not be measured with seed {seed}: {why}", {})
    return proposal.of(view.spec, work, found, _numbers(view))


def _not_held(outcome: Outcome, what: str, *, bought: bool) -> End | None:
    """End the run for a step that has no valid record; it is a mere refusal as long as no session was ``bought``."""
    if outcome.word == "record" and outcome.record_outcome == "completed":
        return None
    reason = f"the {what} {_how(outcome)}: {outcome.reason}"
    if not bought:
        return End("refused", reason, {})
    if outcome.word == "timed out" or outcome.record_outcome == "timed_out":
        return End("budget-exhausted", reason, {})
    return End("aborted", reason, {})


def _how(outcome: Outcome) -> str:
    if outcome.word == "record":
        return outcome.record_outcome.replace("_", " ")
    return outcome.word


def _outcome(view: View, job: str) -> Outcome:
    return next(view.outcomes[key] for key, step in view.steps.items() if step.job == job)


def _session(view: View) -> SessionFound | None:
    return session_found(_outcome(view, SESSION).payload)


def _numbers(view: View) -> dict[str, float]:
    """Return the measured numbers by seed."""
    found = {}
    for key, step in view.steps.items():
        if step.job == MEASURE and key in view.outcomes:
            value = measured(view.outcomes[key].record_outcome, view.outcomes[key].payload)
            if value is not None:
                found[str(step.parameters["seed"])] = value
    return found
