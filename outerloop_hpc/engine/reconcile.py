"""Plan one run from its state, its evidence and its kind. Pure: the same input gives the same plan.

Order: a person's word, what became of tries, unbound submissions, the kind's decisions, new submissions, the archive.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from outerloop_hpc.engine import events as ev
from outerloop_hpc.engine import kind as kinds
from outerloop_hpc.engine import outbound, people
from outerloop_hpc.engine.basis import LASTING, LookupBasis, TryBasis, lasting
from outerloop_hpc.engine.closing import closing, let_go
from outerloop_hpc.engine.evidence import Evidence, Files, Look
from outerloop_hpc.engine.plan import Input, Line, Plan
from outerloop_hpc.engine.planner import Planner
from outerloop_hpc.engine.rules import Ruling, rule
from outerloop_hpc.engine.state import Step, Submission, Try
from outerloop_hpc.engine.submissions import intend, over_budget, waiting
from outerloop_hpc.slurm.port import Availability

_NOT_LOOKED = Evidence(Files(), Look(Availability.UNAVAILABLE, Availability.UNAVAILABLE))


def plan(given: Input) -> Plan:
    """Plan one run."""
    planner = Planner(given)
    if given.state.started_at is None:
        planner.add(ev.RunStarted(spec_digest=given.spec.digest()))
    people.listen(planner)
    _tries(planner)
    abandon = _unbound(planner)
    _force(planner)
    outbound.news(planner)
    if planner.state.ended is None and planner.state.parked is None:
        _decide(planner)
        _launch(planner)
    if planner.state.ended is not None and not planner.state.closed:
        for post in given.kind.farewell(given.spec, planner.state):
            outbound.post(planner, post)
    archive, close = closing(planner)
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
        let_go(planner.state, archive),
        post=outbound.posts(planner),
        propose=outbound.proposals(planner),
        close=close,
    )


def _tries(planner: Planner) -> None:
    host, forced = planner.given.here.host, planner.state.forced is not None
    ended: list[ev.Event] = []
    sightings: list[ev.Sighting] = []
    asks: list[tuple[Line, ev.Element]] = []
    for step, current, ruling, basis in list(_rulings(planner)):
        subject, needs = f"{step.spec.key} try {current.number}", ruling.needs or LASTING.get(ruling.rule, "")
        line = Line(subject, ruling.rule, ruling.verdict, ruling.reason, needs, basis)
        planner.lines.append(line)
        if forced:
            planner.rulings[step.spec.key, current.number] = ruling.reason
        if ruling.verdict == "ended" and ruling.outcome is not None:
            ended.append(_try_ended(step.spec.key, ruling, basis))
            continue
        if (seen := _sighting(current, ruling, basis.evidence)) is not None:
            sightings.append(seen)
        if ruling.verdict == "ask":
            asks.append((line, ev.Element(step=step.spec.key, try_number=current.number)))
    if sightings:
        planner.add(ev.Sighted(host=host, sightings=tuple(sightings)))
    planner.add(*ended)
    if asks and planner.state.parked is None and planner.state.ended is None:
        first = asks[0][0]
        question = f"{first.subject}: what became of it? Resume to try again, or end the run."
        told = {} if first.basis is None else first.basis.told()
        tries = tuple(asked for _, asked in asks)
        planner.add(ev.RunParked(question=question, reason=first.reason, tries=tries, rule=first.rule, evidence=told))


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


def _rulings(planner: Planner) -> Iterator[tuple[Step, Try, Ruling, TryBasis]]:
    """Rule on every open try that there is evidence about; one without a job id only by what its job left."""
    given = planner.given
    for step, current, submission in planner.state.open_tries():
        evidence = given.evidence.get((submission.name, current.index))
        if evidence is None:
            continue
        files, silent = evidence.files, given.silent.get(submission.compute)
        if submission.status != "bound" and not (files.record or files.claim or files.fault):
            continue
        ruling = rule(
            evidence,
            current,
            submission,
            now=given.now,
            host=given.here.host,
            policy=given.policies[submission.compute],
            silent=silent,
        )
        if ruling.verdict == "wait" and submission.status != "bound" and not files.fault:
            continue
        basis = TryBasis(evidence, current, submission, given.now, silent)
        yield step, current, people.in_person(planner, step, current, ruling, evidence), basis


def _force(planner: Planner) -> None:
    ended = []
    for step, current, submission, ruling in people.forced(planner):
        seen = planner.given.evidence.get((submission.name, current.index))
        silent = planner.given.silent.get(submission.compute)
        now, evidence = planner.given.now, seen or _NOT_LOOKED
        basis = TryBasis(evidence, current, submission, now, silent, looked=seen is not None)
        subject = f"{step.spec.key} try {current.number}"
        planner.say(subject, ruling.rule, ruling.verdict, ruling.reason, lasting(ruling.rule), basis)
        ended.append(_try_ended(step.spec.key, ruling, basis))
    planner.add(*ended)


def _try_ended(key: str, ruling: Ruling, basis: TryBasis) -> ev.TryEnded:
    evidence = basis.evidence
    record, row = evidence.files.record, evidence.look.accounting_row
    node = record.holder.host if record is not None else row.columns.get("NodeList", "") if row is not None else ""
    assert ruling.outcome is not None  # noqa: S101 - narrows the type; the caller checked
    return ev.TryEnded(
        step=key,
        try_number=basis.current.number,
        outcome=ruling.outcome,
        rule=ruling.rule,
        reason=ruling.reason,
        word=ruling.word,
        node="" if node == "None assigned" else node,
        node_unfit=record is not None and record.node_unfit,
        begun=evidence.files.begun,
        part=record.part if record is not None else "",
        evidence=basis.told(),
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
        tell = partial(planner.say, name, basis=LookupBasis(submission, given.now, known.found, known.answered))
        if known.found is not None:
            reason = "the scheduler knows a job of this name"
            bound = ev.SubmissionBound(
                name=name, job_id=known.found, cluster=submission.cluster, adopted=True, reason=reason
            )
            planner.add(bound)
            tell("submission.adopted", "bound", f"{reason}: {known.found}", lasting("submission.adopted"))
        elif not known.answered:
            tell("submission.unknown", "wait", "the scheduler did not answer", "squeue and sacct answers")
        elif name in faulty:
            needs = "readable files of its tries"
            tell("submission.unreadable", "wait", "its job left a file that cannot be read", needs)
        elif _surfaced_by(submission, given) > given.now:
            lag = given.policies[submission.compute].submit_lag_s
            tell("submission.lagging", "wait", "no job of this name yet", f"{lag:g} s of this, or a job")
        elif planner.state.forced is None:
            abandon.append(name)
            needs = "a job that claimed first: it is adopted"
            tell("submission.abandoned", "abandon", "it never reached the scheduler", needs)
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
        planner.add(ev.RunParked(question=question, reason=reason, rule="submit.refused"))
        planner.say("run", "submit.refused", "ask", reason)
        return
    known = _told(planner)
    for decision in given.kind.plan(kinds.view_of(given.read_spec, planner.state, given.now)):
        _take_decision(planner, decision)
        if planner.state.ended is not None or planner.state.parked is not None:
            return
    if _told(planner) > known:
        _decide(planner)


def _told(planner: Planner) -> tuple[int, int]:
    """What the kind said that changes its own view: steps that waited for a try and are over, conclusions."""
    withdrawn = sum(1 for step in planner.state.steps.values() if step.withdrawn)
    return withdrawn, len(planner.state.conclusions)


def _take_decision(planner: Planner, decision: kinds.Decision) -> None:
    match decision:
        case kinds.Submit(steps, reason):
            new = tuple(step for step in steps if step.key not in planner.state.steps)
            if new:
                planner.add(ev.StepsWanted(steps=new, reason=reason))
                planner.say("run", "kind.submit", "submit", reason)
        case kinds.Ask(question, reason):
            planner.add(ev.RunParked(question=question, reason=reason, rule="kind.ask"))
            planner.say("run", "kind.ask", "ask", reason, question)
        case kinds.Cancel(keys, reason):
            _withdraw(planner, keys, reason)
        case kinds.Hold(keys, reason):
            planner.held.update(keys)
            planner.say("run", "kind.hold", "wait", f"{len(keys)} steps wait: {reason}", "what is under way to end")
        case kinds.Conclude(key, document, reason):
            _conclude(planner, key, document, reason)
        case kinds.Post():
            outbound.post(planner, decision)
        case kinds.Propose():
            outbound.propose(planner, decision)
        case kinds.End(ending, reason, result):
            people.withdraw(planner, reason)
            planner.add(ev.RunEnded(ending=ending, reason=reason, result=dict(result)))
            planner.say("run", "kind.end", ending, reason)


def _conclude(planner: Planner, key: str, document: Mapping[str, Any], reason: str) -> None:
    if key not in planner.state.conclusions:
        planner.add(ev.ConclusionReached(key=key, document=dict(document), reason=reason))
        planner.say("run", "kind.conclude", "conclude", reason)


def _withdraw(planner: Planner, keys: tuple[str, ...], reason: str) -> None:
    held = {s.name for step, _, s in planner.state.open_tries() if step.spec.key in keys and not s.cancel_asked}
    steps = [planner.state.steps[key] for key in keys]
    over = tuple(step.spec.key for step in steps if step.settled() is None and not step.withdrawn)
    if held or over:
        planner.add(ev.CancelAsked(submissions=tuple(sorted(held)), steps=over, reason=reason))
        planner.say("run", "kind.cancel", "cancel", reason)


def _launch(planner: Planner) -> None:
    given, here = planner.given, planner.given.here
    if planner.state.ended is not None or planner.state.parked is not None:
        return
    due = waiting(planner.state, given.now, given.policies[here.compute])
    steps = [step for step in due if step.spec.key not in planner.held]
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
        planner.add(ev.RunParked(question=question, reason="its GPU hours are used up", rule="launch.budget"))
        planner.say("run", "launch.budget", "ask", question)
        return
    planner.add(*intents)
    for intent in intents:
        planner.say(intent.name, "submit", "submit", intent.reason)
