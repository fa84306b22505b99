"""Plan one run from its state, its evidence and its kind. Pure: the same input gives the same plan.

Order: a person's word, what became of tries, unbound submissions, the kind's decisions, new submissions, the archive.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta

from outerloop_hpc.engine import events as ev
from outerloop_hpc.engine import kind as kinds
from outerloop_hpc.engine import outbound
from outerloop_hpc.engine.evidence import Evidence
from outerloop_hpc.engine.plan import Input, Line, Plan
from outerloop_hpc.engine.planner import Planner
from outerloop_hpc.engine.rules import Policy, Ruling, rule
from outerloop_hpc.engine.state import Step, Submission, Try
from outerloop_hpc.engine.submissions import intend, over_budget, waiting
from outerloop_hpc.slurm.port import Availability
from outerloop_hpc.slurm.states import Life, classify


def plan(given: Input) -> Plan:
    """Plan one run."""
    planner = Planner(given)
    if given.state.started_at is None:
        planner.add(ev.RunStarted(spec_digest=given.spec.digest()))
    _people(planner)
    _tries(planner)
    abandon = _unbound(planner)
    outbound.news(planner)
    if planner.state.ended is None and planner.state.parked is None:
        _decide(planner)
        _launch(planner)
    if planner.state.ended is not None and not planner.state.closed:
        for post in given.kind.farewell(given.spec, planner.state):
            outbound.post(planner, post)
    archive, close = _closing(planner)
    after = planner.state.model_copy(update={"seq": given.state.seq + 1}) if planner.events else given.state
    over = planner.state.ended is not None
    known = {decided.file for decided in planner.state.person}
    taken = tuple(decided.file for decided in given.inbox if over or decided.file in known)
    return Plan(
        tuple(planner.events),
        after,
        tuple(planner.lines),
        taken,
        abandon,
        archive,
        post=outbound.posts(planner),
        propose=outbound.proposals(planner),
        close=close,
    )


def _people(planner: Planner) -> None:
    taken = {decided.file for decided in planner.state.person}
    for decided in planner.given.inbox:
        if decided.file in taken or planner.state.ended is not None:
            continue
        if decided.action == "resume" and planner.state.parked is not None:
            why = f"{decided.who} gave it up: {decided.reason}"
            planner.given_up |= {(e.step, e.try_number): why for e in planner.state.parked.tries}
        planner.add(decided)
        planner.say("run", f"person.{decided.action}", decided.action, f"{decided.who}: {decided.reason}")
        if decided.action == "end":
            _withdraw(planner, f"{decided.who} ended the run: {decided.reason}")
            planner.add(ev.RunEnded(ending="operator", reason=f"{decided.who}: {decided.reason}"))


def _withdraw(planner: Planner, reason: str) -> None:
    names = {s.name for _, _, s in planner.state.open_tries() if not s.cancel_asked}
    if names:
        planner.add(ev.CancelAsked(submissions=tuple(sorted(names)), reason=reason))


def _tries(planner: Planner) -> None:
    host = planner.given.here.host
    ended: list[ev.Event] = []
    sightings: list[ev.Sighting] = []
    asks: list[tuple[Line, ev.Element]] = []
    for step, current, ruling, evidence in list(_rulings(planner)):
        line = Line(f"{step.spec.key} try {current.number}", ruling.rule, ruling.verdict, ruling.reason, ruling.needs)
        planner.lines.append(line)
        if ruling.verdict == "ended" and ruling.outcome is not None:
            ended.append(_try_ended(step.spec.key, current.number, ruling, evidence))
            continue
        if (seen := _sighting(current, ruling, evidence)) is not None:
            sightings.append(seen)
        if ruling.verdict == "ask":
            asks.append((line, ev.Element(step=step.spec.key, try_number=current.number)))
    if sightings:
        planner.add(ev.Sighted(host=host, sightings=tuple(sightings)))
    planner.add(*ended)
    if asks and planner.state.parked is None and planner.state.ended is None:
        first = asks[0][0]
        question = f"{first.subject}: what became of it? Resume to try again, or end the run."
        planner.add(ev.RunParked(question=question, reason=first.reason, tries=tuple(asked for _, asked in asks)))


def _sighting(current: Try, ruling: Ruling, evidence: Evidence) -> ev.Sighting | None:
    """What is new: absent, back, or a last word of the queue, which keeps it for minutes only."""
    if ruling.absent is None:
        return None
    row, known = evidence.look.queue_row, current.absent_since is not None
    word = ruling.word if row is None else row.state
    learnt = known and ruling.absent and row is not None and word != current.absent_word
    if ruling.absent == known and not learnt:
        return None
    return ev.Sighting(
        submission=current.submission, index=current.index, absent=ruling.absent, word=word if ruling.absent else ""
    )


def _rulings(planner: Planner) -> Iterator[tuple[Step, Try, Ruling, Evidence]]:
    """Rule on every open try that there is evidence about; one without a job id only by what its job left."""
    given = planner.given
    for step, current, submission in planner.state.open_tries():
        evidence = given.evidence.get((submission.name, current.index))
        if evidence is None:
            continue
        files = evidence.files
        if submission.status != "bound" and not (files.record or files.claim or files.fault):
            continue
        ruling = rule(
            evidence,
            current,
            submission,
            now=given.now,
            host=given.here.host,
            policy=given.policies[submission.compute],
            silent=given.silent.get(submission.compute),
        )
        if ruling.verdict == "wait" and submission.status != "bound" and not files.fault:
            continue
        ruling = _or_given_up(ruling, planner.given_up.get((step.spec.key, current.number)))
        if planner.state.ended is not None:
            ruling = _or_over(ruling, evidence)
        yield step, current, ruling, evidence


def _or_given_up(ruling: Ruling, why: str | None) -> Ruling:
    """End a try that the table cannot rule on, once a person has answered what was asked about it."""
    if ruling.verdict != "ask" or why is None:
        return ruling
    return replace(ruling, rule=ev.GAVE_UP, verdict="ended", outcome="lost", reason=why, needs="")


def _or_over(ruling: Ruling, evidence: Evidence) -> Ruling:
    """End a try of an ended run that would otherwise wait for a person; a job that still lives is waited for."""
    look = evidence.look
    unreadable = ruling.rule == "record.unreadable" and look.queue is Availability.ANSWERED
    gone = look.queue_row is None or classify(look.queue_row.state).life is Life.ENDED
    if ruling.verdict == "ask" or (unreadable and gone):
        return Ruling("run.over", "ended", f"the run has ended, so nobody waits for this: {ruling.reason}", "lost")
    return ruling


def _try_ended(key: str, number: int, ruling: Ruling, evidence: Evidence) -> ev.TryEnded:
    record, row = evidence.files.record, evidence.look.accounting_row
    node = record.holder.host if record is not None else row.columns.get("NodeList", "") if row is not None else ""
    assert ruling.outcome is not None  # noqa: S101 - narrows the type; the caller checked
    return ev.TryEnded(
        step=key,
        try_number=number,
        outcome=ruling.outcome,
        rule=ruling.rule,
        reason=ruling.reason,
        word=ruling.word,
        node="" if node == "None assigned" else node,
        node_unfit=record is not None and record.node_unfit,
        begun=evidence.files.begun,
        evidence=evidence.summary(),
        record_outcome=record.outcome if record is not None else "",
        payload=record.payload if record is not None and ruling.outcome == "done" else {},
    )


def _unbound(planner: Planner) -> tuple[str, ...]:
    given, abandon = planner.given, []
    faulty = {name for (name, _), seen in given.evidence.items() if seen.files.fault}
    for name, submission in list(planner.state.submissions.items()):
        known = given.unbound.get(name)
        if submission.status != "intended" or known is None:
            continue
        if known.found is not None:
            reason = "the scheduler knows a job of this name"
            bound = ev.SubmissionBound(
                name=name, job_id=known.found, cluster=submission.cluster, adopted=True, reason=reason
            )
            planner.add(bound)
            planner.say(name, "submission.adopted", "bound", f"{reason}: {known.found}")
        elif not known.answered:
            planner.say(name, "submission.unknown", "wait", "the scheduler did not answer", "squeue and sacct answers")
        elif name in faulty:
            needs = "readable files of its tries"
            planner.say(name, "submission.unreadable", "wait", "its job left a file that cannot be read", needs)
        elif _surfaced_by(submission, given) > given.now:
            lag = given.policies[submission.compute].submit_lag_s
            planner.say(name, "submission.lagging", "wait", "no job of this name yet", f"{lag:g} s of this, or a job")
        else:
            abandon.append(name)
            planner.say(name, "submission.abandoned", "abandon", "it never reached the scheduler")
    return tuple(abandon)


def _surfaced_by(submission: Submission, given: Input) -> datetime:
    policy = given.policies[submission.compute]
    skew = 0.0 if submission.host == given.here.host else policy.skew_s
    return submission.intended_at + timedelta(seconds=policy.submit_lag_s + skew)


def _decide(planner: Planner) -> None:
    given = planner.given
    refused = max((step.refusals() for step in planner.state.steps.values()), default=0)
    if refused >= given.policies[given.here.compute].refusals:
        last = next(s.last for s in planner.state.steps.values() if s.refusals() == refused)
        reason = last.reason if last else ""
        question = f"{refused} submissions in a row came to nothing; mend the cause, then resume or end the run"
        planner.add(ev.RunParked(question=question, reason=reason))
        planner.say("run", "submit.refused", "ask", reason)
        return
    for decision in given.kind.plan(kinds.view_of(given.read_spec, planner.state, given.now)):
        _take_decision(planner, decision)
        if planner.state.ended is not None or planner.state.parked is not None:
            return


def _take_decision(planner: Planner, decision: kinds.Decision) -> None:
    match decision:
        case kinds.Submit(steps, reason):
            new = tuple(step for step in steps if step.key not in planner.state.steps)
            if new:
                planner.add(ev.StepsWanted(steps=new, reason=reason))
                planner.say("run", "kind.submit", "submit", reason)
        case kinds.Ask(question, reason):
            planner.add(ev.RunParked(question=question, reason=reason))
            planner.say("run", "kind.ask", "ask", reason, question)
        case kinds.Cancel(keys, reason):
            held = {s.name for step, _, s in planner.state.open_tries() if step.spec.key in keys and not s.cancel_asked}
            if held:
                planner.add(ev.CancelAsked(submissions=tuple(sorted(held)), reason=reason))
                planner.say("run", "kind.cancel", "cancel", reason)
        case kinds.Post():
            outbound.post(planner, decision)
        case kinds.Propose():
            outbound.propose(planner, decision)
        case kinds.End(ending, reason, result):
            _withdraw(planner, reason)
            planner.add(ev.RunEnded(ending=ending, reason=reason, result=dict(result)))
            planner.say("run", "kind.end", ending, reason)


def _launch(planner: Planner) -> None:
    given, here = planner.given, planner.given.here
    if planner.state.ended is not None or planner.state.parked is not None:
        return
    steps = waiting(planner.state, given.now, given.policies[here.compute])
    if not steps:
        return
    if here.launches <= 0:
        planner.say(
            "run", "launch.held", "wait", f"{len(steps)} steps wait; launches are held", "a pass that may launch"
        )
        return
    began = {submission.compute for submission in planner.state.submissions.values()}
    if began and here.compute not in began:
        # A pass without sbatch on its PATH (cron has a short one) must not bring a cluster's work to its own host.
        where = " and ".join(sorted(began))
        reason = f"{len(steps)} steps wait; the run began on {where}, and this pass would submit to {here.compute}"
        planner.say("run", "launch.elsewhere", "wait", reason, f"a pass that submits to {where}; or end the run")
        return
    intents = intend(
        planner.state,
        steps,
        target=given.spec.target,
        compute=here.compute,
        user=here.user,
        cluster=here.cluster,
        host=here.host,
        largest=here.largest,
        most=here.launches,
    )
    if question := over_budget(planner.state, intents, lambda: given.spec.gpu_hours):
        planner.add(ev.RunParked(question=question, reason="its GPU hours are used up"))
        planner.say("run", "launch.budget", "ask", question)
        return
    planner.add(*intents)
    for intent in intents:
        planner.say(intent.name, "submit", "submit", intent.reason)


def _closing(planner: Planner) -> tuple[tuple[tuple[str, str], ...], bool]:
    state, given = planner.state, planner.given
    open_names = {s.name for _, _, s in state.open_tries()}
    # Nobody has asked accounting about the id of a job that was adopted just now: its rows are the next pass's.
    adopted = {name for name, was in given.state.submissions.items() if state.submissions[name].status != was.status}
    archive = tuple(
        (name, given.archivable[name])
        for name, submission in state.submissions.items()
        if name in given.archivable and not submission.archived and name not in open_names | adopted
    )
    done = state.ended is not None and not state.closed and not open_names and not outbound.unsaid(state)
    return archive, done and all(s.archived or s.name in dict(archive) for s in state.submissions.values())


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
