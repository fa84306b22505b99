"""What people say about a run, and what that makes of tries that the table cannot rule on. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from outerloop_hpc.engine import events as ev
from outerloop_hpc.engine.evidence import Evidence
from outerloop_hpc.engine.planner import Planner
from outerloop_hpc.engine.rules import Ruling
from outerloop_hpc.engine.state import RunState, Step, Submission, Try
from outerloop_hpc.slurm.port import Availability
from outerloop_hpc.slurm.states import Life, classify


def listen(planner: Planner) -> None:
    """Take in the decisions that lie in the inbox, each once."""
    taken = {decided.file for decided in planner.state.person}
    for decided in planner.given.inbox:
        if decided.file in taken or not _counts(planner.state, decided):
            continue
        if decided.action == "resume" and planner.state.parked is not None:
            why = f"{decided.who} gave it up: {decided.reason}"
            planner.given_up |= {(e.step, e.try_number): why for e in planner.state.parked.tries}
        planner.add(decided)
        how = ", by force" if decided.force else ""
        planner.say("run", f"person.{decided.action}", decided.action, f"{decided.who}{how}: {decided.reason}")
        if decided.action == "park":
            _park(planner, decided)
        if decided.action == "end":
            withdraw(planner, f"{decided.who} ended the run{how}: {decided.reason}")
            if planner.state.ended is None:
                planner.add(ev.RunEnded(ending="operator", reason=f"{decided.who}{how}: {decided.reason}"))


def _park(planner: Planner, decided: ev.PersonDecided) -> None:
    why = f"{decided.who} stopped the run: {decided.reason}"
    withdraw(planner, why)
    parked = planner.state.parked
    if parked is not None and not parked.tries:
        return
    # A question about tries is answered by their ends, and the run would go on although it was stopped.
    question = "it was stopped; resume to go on where it was, or end the run"
    planner.add(ev.RunParked(question=question, reason=why, rule="person.park"))


def stoppable(state: RunState) -> bool:
    """Whether a run that waits for a person has still something to stop: jobs, or that it goes on by itself."""
    if state.parked is None or state.parked.tries:
        return True
    return any(not submission.cancel_asked for _, _, submission in state.open_tries())


def _counts(state: RunState, decided: ev.PersonDecided) -> bool:
    """An ending is final; only force still has something to say to a run that has ended and is not closed."""
    return state.ended is None or (decided.force and not state.closed)


def withdraw(planner: Planner, reason: str) -> None:
    """Ask for the end of every submission that is under way."""
    names = {s.name for _, _, s in planner.state.open_tries() if not s.cancel_asked}
    if names:
        planner.add(ev.CancelAsked(submissions=tuple(sorted(names)), reason=reason))


def in_person(planner: Planner, step: Step, current: Try, ruling: Ruling, evidence: Evidence) -> Ruling:
    """What a person's word, or the end of the run, makes of a ruling; force has its own say when all are known."""
    why = planner.given_up.get((step.spec.key, current.number))
    if ruling.verdict == "ask" and why is not None:
        ruling = replace(ruling, rule=ev.GAVE_UP, verdict="ended", outcome="lost", reason=why, needs="")
    if planner.state.ended is None or planner.state.forced is not None:
        return ruling
    look = evidence.look
    unreadable = ruling.rule == "record.unreadable" and look.queue is Availability.ANSWERED
    gone = look.queue_row is None or classify(look.queue_row.state).life is Life.ENDED
    if ruling.verdict == "ask" or (unreadable and gone):
        return Ruling("run.over", "ended", f"the run has ended, so nobody waits for this: {ruling.reason}", "lost")
    return ruling


def forced(planner: Planner) -> Iterator[tuple[Step, Try, Submission, Ruling]]:
    """End every try that is still open in a run that a person ended by force."""
    decided = planner.state.forced
    if decided is None:
        return
    for step, current, submission in list(planner.state.open_tries()):
        known = planner.rulings.get((step.spec.key, current.number))
        unsure = "whether it ever became a job" if submission.status != "bound" else "nobody looked in this pass"
        why = f"{decided.who} ended it by force: {decided.reason}; unsettled: {known or unsure}"
        yield step, current, submission, Ruling(ev.FORCED, "ended", why, "lost")
