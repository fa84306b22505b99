"""What a steward run says on its order, in its change and in its report; foreign text is fenced or in a span. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from outerloop_hpc.engine.spec import RunSpec
from outerloop_hpc.engine.state import RunState
from outerloop_hpc.forge.markers import EndReason, Marker
from outerloop_hpc.forge.text import fenced, span
from outerloop_hpc.measure.ledger import Row
from outerloop_hpc.steward.ending import reason_of, session_of, validation_of
from outerloop_hpc.steward.findings import SessionFound
from outerloop_hpc.steward.work import StewardWork

#: How much of a session's own words is posted; characters.
_IN_CHANGE = 20_000
_ON_ORDER = 8_000
_STRAYS = 50


def claimed(spec: RunSpec, work: StewardWork) -> str:
    """Say that the order is taken."""
    marker = Marker(claim=work.claim, run=spec.run, attempt=work.attempt)
    return (
        f"{marker.line()}\n"
        f"Taken by run `{spec.run}` (attempt {work.attempt}) at commit `{spec.commit[:12]}`: a session on "
        f"{span(work.ruler.benchmark)}, then validation, measurement with fresh seeds, and a proposed change."
    )


def published(
    spec: RunSpec, work: StewardWork, found: SessionFound | None, numbers: Mapping[str, float], where: str
) -> str:
    """Say that the change is open."""
    lines = [f"Run `{spec.run}` proposes {span(where)} on branch `feat/steward/{spec.run}`.", ""]
    lines += _numbers(work, numbers)
    if found is not None and found.report:
        lines += ["", "The session's own words:", "", fenced(found.report, _ON_ORDER)]
    return "\n".join(lines)


def released(spec: RunSpec, work: StewardWork, state: RunState) -> str:
    """Say why the claim ended, and what happens next."""
    ended = state.ended
    ending, why = (ended.ending, ended.reason) if ended is not None else ("", "")
    reason = reason_of(ending)
    marker = Marker(claim=work.claim, run=spec.run, attempt=work.attempt, reason=reason)
    lines = [marker.line(), f"Run `{spec.run}` has ended: **{ending}**. {span(why, 600)}", "", _next(ending, reason)]
    if ending == "operator" and any(change.status in {"wanted", "open"} for change in state.changes.values()):
        lines += ["", "A change of this run may be open still. Nobody watches it any more: close it."]
    lines += _failed_output(state)
    session = session_of(state)
    if session is not None:
        lines += _strays(session)
        if session.report:
            lines += ["", "The session's own words:", "", fenced(session.report, _ON_ORDER)]
    if reason in {"failed", "outage", "refused"}:
        transcript = [] if session is None or not session.transcript else ["", _transcript(session)]
        lines += [*transcript, "", f"Everything about it: `outerloop-hpc explain {spec.run}`"]
    return "\n".join(lines)


_NEXT: Mapping[EndReason, str] = {
    "published": "The change was not merged. The order is taken again when somebody comments or relabels.",
    "answered": "The order is answered. It is taken again when somebody comments or relabels.",
    "failed": "This counts as one of the order's attempts; a later tick tries again while attempts are left.",
    "outage": "The service refused the session, which says nothing about the order: the attempt is given back.",
    "refused": "No session was begun, and no attempt is used up. The reason has to be mended here.",
}


def _next(ending: str, reason: EndReason) -> str:
    return "The change is merged, which answers the order." if ending == "merged" else _NEXT[reason]


def change(
    spec: RunSpec,
    work: StewardWork,
    found: SessionFound,
    numbers: Mapping[str, float],
    after: Row,
) -> str:
    """Return the body of the change: numbers before and after, where they come from, and the session's own words."""
    digits = work.ruler.display_digits
    old = "none" if work.best is None else f"{work.best:.{digits}g} (run {span(work.best_run, 120)})"
    lines = [
        f"Order {work.order.order_id} says that {span(work.ruler.benchmark)} needs a new ruler. A session changed the",
        "evaluation side; the solver is as it was, and was measured again.",
        "",
        "| | |",
        "|---|---|",
        f"| metric | {span(work.ruler.metric)}, {'higher' if work.ruler.direction == 'max' else 'lower'} is better |",
        f"| best before | {old} |",
        f"| new baseline | {after.baseline:.{digits}g}, median of {len(numbers)} fresh seeds |",
        f"| run | `{spec.run}` |",
        f"| base commit | `{spec.commit}` |",
        f"| measured tree | `{found.tree}` |",
        f"| image | {span(spec.image.sha256) if spec.image.sha256 else 'none'} |",
        f"| changed paths | {', '.join(span(path, 120) for path in found.changed[:20])} |",
        "",
        *_numbers(work, numbers),
        "",
        "Numbers before and after cannot be compared: merging this starts the row of the ledger anew.",
    ]
    if found.report:
        lines += ["", "The session's own words:", "", fenced(found.report, _IN_CHANGE)]
    return "\n".join(lines)


def report(work: StewardWork, state: RunState) -> str:
    """Return the kind's part of ``report.md``."""
    lines = [
        "## Order",
        "",
        f"Order {work.order.order_id} by {span(work.order.author)}, attempt {work.attempt}, claim `{work.claim}`:",
        "",
        fenced(f"{work.order.title}\n\n{work.order.body}", _ON_ORDER),
    ]
    session = session_of(state)
    if session is not None:
        lines += ["", "## Session", "", f"**{session.word}**. {span(session.reason, 600)}{_used(session)}"]
        lines += _strays(session)
        if session.candidate:
            lines += ["", f"Candidate `{session.candidate}` with tree `{session.tree}`."]
        if session.transcript:
            lines += ["", _transcript(session)]
        if session.report:
            lines += ["", fenced(session.report, _IN_CHANGE)]
    lines += _failed_output(state)
    for one in state.changes.values():
        lines += ["", f"## Change\n\n{span(one.where or one.branch)}: **{one.status}**."]
    values = state.ended.result.get("values", {}) if state.ended else {}
    if values:
        lines += ["", "## Numbers", "", *_numbers(work, values)]
    return "\n".join(lines)


def _transcript(found: SessionFound) -> str:
    return f"Transcript: {span(found.transcript)} in `runs/` of the state folder."


def _used(found: SessionFound) -> str:
    """Say what the session cost, as far as it told."""
    turns = [] if found.turns is None else [f"{found.turns} turns"]
    cost = [] if found.cost_usd is None else [f"{found.cost_usd:g} USD"]
    told = f", by its own account {' and '.join([*turns, *cost])}" if turns or cost else ""
    return f" It took {found.seconds:.0f} s{told}." if found.seconds else ""


def _failed_output(state: RunState) -> list[str]:
    """Return the end of what a failed validation said."""
    found = validation_of(state)
    if found is None or found.passed or not found.output:
        return []
    return ["", "The end of what the validation said:", "", fenced(found.output, _ON_ORDER)]


def _numbers(work: StewardWork, numbers: Mapping[str, float]) -> list[str]:
    rows = [f"| {seed} | {value!r} |" for seed, value in numbers.items()]
    return [f"| seed | {span(work.ruler.metric)} |", "|---:|---:|", *rows]


def _strays(found: SessionFound) -> list[str]:
    if not found.strays:
        return []
    rows = [f"- {span(stray.path)}: {span(stray.reason)}" for stray in found.strays[:_STRAYS]]
    more = len(found.strays) - _STRAYS
    return ["", "Changed paths that are not the steward's:", "", *rows, *([f"- and {more} more"] if more > 0 else [])]
