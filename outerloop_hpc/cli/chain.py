"""The chain of evidence of one run, for people and as rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from outerloop_hpc.cli.cells import harmless
from outerloop_hpc.cli.output import Column
from outerloop_hpc.cli.seen import seen_lines
from outerloop_hpc.engine import events as ev
from outerloop_hpc.engine.basis import lasting
from outerloop_hpc.engine.journal import Journal
from outerloop_hpc.engine.layout import RunFolder
from outerloop_hpc.engine.spec import stamp
from outerloop_hpc.engine.state import WITHHELD

CHAIN_COLUMNS = (
    Column("at", "when it was committed"),
    Column("seq", "transaction number"),
    Column("by", "host:pid of the reconciler"),
    Column("event", "kind of event"),
    Column("text", "what it says"),
    Column("rule", "line of the decision table, for a decision"),
    Column("needs", "what would have to be seen for another one"),
    Column("evidence", "what a ruling rests on"),
)

#: The rules of events that only one rule makes.
_RULES = {
    "steps.wanted": "kind.submit",
    "submission.intended": "submit",
    "submission.refused": "submit.refused",
    "post.wanted": "kind.post",
    "change.wanted": "kind.propose",
    "change.seen": "change.seen",
}


def chain_rows(folder: RunFolder) -> Iterator[Mapping[str, object]]:
    """Yield one row per event of the journal, in order."""
    for transaction in Journal(folder).transactions():
        for event in transaction.events:
            rule = rule_of(event)
            yield {
                "at": stamp(transaction.at),
                "seq": transaction.seq,
                "by": f"{transaction.by.host}:{transaction.by.pid}",
                "event": event.type,
                "text": describe(event),
                "rule": rule or None,
                "needs": _needs(event, rule) or None,
                "evidence": event.evidence if isinstance(event, ev.TryEnded | ev.RunParked) else None,
            }


def chain_text(folder: RunFolder, awaited: Sequence[Mapping[str, object]]) -> str:
    """Return the chain as text: the run, its journal, what each ruling rests on, and what is awaited now."""
    spec = Journal(folder).spec()
    lines = [
        f"{spec.run}",
        f"  {spec.kind} of {spec.target} at {spec.commit}, because {harmless(spec.cause)}",
        f"  made {stamp(spec.made_at)} by {spec.made_by}; everything is in {folder.path}",
        "",
    ]
    seen = 0
    for row in chain_rows(folder):
        if row["seq"] != seen:
            lines.append(f"{row['at']}  #{row['seq']} by {row['by']}")
            seen = int(str(row["seq"]))
        lines.append(f"    {row['event']:<22} {harmless(str(row['text']))}")
        if row["rule"]:
            lines += _rests_on(row, told=row["event"] != "try.ended")
    if awaited:
        lines += ["", "now"]
    for line in awaited:
        lines.append(f"    {line['subject']}: {line['decision']} by {line['rule']}: {harmless(str(line['reason']))}")
        lines += _rests_on(line)
    return "\n".join(lines) + "\n"


def _rests_on(row: Mapping[str, Any], *, told: bool = False) -> Iterator[str]:
    """What one decision rests on, and what would have to be seen for another; ``told``: its rule is yet to be named."""
    if told:
        yield f"        by {row['rule']}"
    for line in seen_lines(row.get("evidence") or {}):
        yield f"        {harmless(line)}"
    if row["needs"]:
        yield f"        for another decision: {harmless(str(row['needs']))}"


def rule_of(event: ev.Event) -> str:
    """Name the line of the decision table by which an event came into the journal; empty for what decides nothing."""
    match event:
        case ev.TryEnded() | ev.RunParked():
            return event.rule
        case ev.SubmissionAbandoned():
            return WITHHELD if event.withheld else "submission.abandoned"
        case ev.SubmissionBound():
            return "submission.adopted" if event.adopted else ""
        case ev.PersonDecided():
            return f"person.{event.action}"
        case ev.RunEnded():
            return "person.end" if event.ending == "operator" else "kind.end"
    return _RULES.get(event.type, "")


def _needs(event: ev.Event, rule: str) -> str:
    if isinstance(event, ev.RunParked):
        return "a person's decision" + (", or a row or record that ends these tries" if event.tries else "")
    return lasting(rule)


def describe(event: ev.Event) -> str:  # noqa: C901, PLR0911, PLR0912 - one line for each kind of event
    """Say one event in a line."""
    match event:
        case ev.RunStarted():
            return f"specification {event.spec_digest[:16]}"
        case ev.StepsWanted():
            return f"{len(event.steps)} steps: {event.reason}"
        case ev.SubmissionIntended():
            return f"{event.name} on {event.compute}: {event.reason}"
        case ev.SubmissionBound():
            how = " (adopted: found by its name)" if event.adopted else ""
            return f"{event.name} is job {event.job_id}{how}"
        case ev.SubmissionRefused():
            return f"{event.name}: {event.complaint}"
        case ev.SubmissionAbandoned():
            return f"{event.name}: {event.reason}"
        case ev.Sighted():
            seen = [f"{s.submission}[{s.index}] {'absent' if s.absent else 'back'} {s.word}" for s in event.sightings]
            return f"{', '.join(one.rstrip() for one in seen)} (by {event.host})"
        case ev.TryEnded():
            return f"{event.step} try {event.try_number}: {event.outcome} by {event.rule}: {event.reason}"
        case ev.RunParked():
            return f"{event.question} ({event.reason})"
        case ev.PersonDecided():
            return f"{event.action}{', by force,' if event.force else ''} by {event.who}: {event.reason}"
        case ev.CancelAsked():
            return f"{', '.join((*event.submissions, *event.steps))}: {event.reason}"
        case ev.AccountingArchived():
            note = f"; {event.note}" if event.note else ""
            return f"accounting/{event.submission}.json: {event.rows} rows{note}"
        case ev.ConclusionReached():
            return f"{event.key}: {event.reason}"
        case ev.PostWanted():
            return f"{event.key} on order {event.order}: {event.reason}"
        case ev.PostDone():
            return f"{event.key}: {event.note or 'comment ' + event.comment}"
        case ev.ChangeWanted():
            return f"{event.branch} onto {event.onto}, candidate {event.candidate[:12]}: {event.reason}"
        case ev.ChangeBound():
            return f"{event.key} is change {event.change} at {event.where}, head {event.commit[:12]}"
        case ev.ChangeSeen():
            return f"{event.key}: {event.status} {event.commit[:12]}".rstrip()
        case ev.RunEnded():
            return f"{event.ending}: {event.reason}"
        case ev.RunClosed():
            return "report and accounting are in place"
