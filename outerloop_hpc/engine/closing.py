"""When a run's accounting is archived and the run closed. Pure."""

from __future__ import annotations

from outerloop_hpc.engine import events as ev
from outerloop_hpc.engine import outbound
from outerloop_hpc.engine.planner import Planner
from outerloop_hpc.engine.rules import Policy
from outerloop_hpc.engine.state import RunState, Submission
from outerloop_hpc.slurm.port import Availability

_FORCED = "the run was closed by force: what accounting had by then, partly measured at best"
_FORCED_UNBOUND = "the run was closed by force, and whether this became a job is not known: not measured"


def closing(planner: Planner) -> tuple[tuple[tuple[str, str], ...], bool]:
    """Return the submissions whose accounting is to be archived, each with a note, and whether the run closes then."""
    state, given = planner.state, planner.given
    open_names = {s.name for _, _, s in state.open_tries()}
    # Nobody has asked accounting about the id of a job that was adopted just now: its rows are the next pass's.
    adopted = {name for name, was in given.state.submissions.items() if state.submissions[name].status != was.status}
    ready = dict(given.archivable)
    if state.forced is not None:
        bound = {name: submission.status == "bound" for name, submission in state.submissions.items()}
        ready = {name: ready.get(name, _FORCED) if bound[name] else _FORCED_UNBOUND for name in bound}
    archive = tuple(
        (name, ready[name])
        for name, submission in state.submissions.items()
        if name in ready and not submission.archived and name not in open_names | adopted
    )
    done = state.ended is not None and not state.closed and not open_names and not outbound.unsaid(state)
    return archive, done and all(s.archived or s.name in dict(archive) for s in state.submissions.values())


def let_go(state: RunState, archive: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    """Names of submissions, about to be archived, whose jobs may still come or live although a person ended them."""
    tries = (one for step in state.steps.values() for one in step.tries)
    given_up = {ev.FORCED} if state.forced is None else {ev.FORCED, ev.GAVE_UP}
    names = {one.submission for one in tries if one.rule in given_up}
    return tuple(name for name, _ in archive if name in names)


def archive_note(
    submission: Submission, *, complete: bool, availability: Availability, ended_for_s: float, policy: Policy
) -> str | None:
    """Whether a submission's accounting can be archived now; the note says what is missing, empty when nothing is.

    ``None`` means: wait for more rows.
    """
    if complete:
        return ""
    if availability is Availability.DISABLED:
        return "accounting is switched off here: not measured"
    if submission.status != "bound":
        return "it never got a job id: nothing to account for"
    if availability is Availability.UNAVAILABLE:
        return None
    if ended_for_s >= policy.archive_wait_s:
        return f"accounting had no complete rows {policy.archive_wait_s:g} s after the end: partly measured at best"
    return None
