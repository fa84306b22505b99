"""The chain of evidence of one run, for people and as rows."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from outerloop_hpc.cli.cells import harmless
from outerloop_hpc.cli.output import Column
from outerloop_hpc.engine import events as ev
from outerloop_hpc.engine.journal import Journal
from outerloop_hpc.engine.layout import RunFolder
from outerloop_hpc.engine.spec import stamp

CHAIN_COLUMNS = (
    Column("at", "when it was committed"),
    Column("seq", "transaction number"),
    Column("by", "host:pid of the reconciler"),
    Column("event", "kind of event"),
    Column("text", "what it says"),
    Column("evidence", "what a ruling rests on"),
)


def chain_rows(folder: RunFolder) -> Iterator[Mapping[str, object]]:
    """Yield one row per event of the journal, in order."""
    for transaction in Journal(folder).transactions():
        for event in transaction.events:
            yield {
                "at": stamp(transaction.at),
                "seq": transaction.seq,
                "by": f"{transaction.by.host}:{transaction.by.pid}",
                "event": event.type,
                "text": describe(event),
                "evidence": event.evidence if isinstance(event, ev.TryEnded) else None,
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
        if row["evidence"]:
            lines.append(f"    {'':<22}   evidence: {harmless(json.dumps(row['evidence'], sort_keys=True))}")
    if awaited:
        lines += ["", "now"]
    for line in awaited:
        lines.append(f"    {line['subject']}: {line['decision']} by {line['rule']}: {harmless(str(line['reason']))}")
        if line["needs"]:
            lines.append(f"        for another decision: {harmless(str(line['needs']))}")
    return "\n".join(lines) + "\n"


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
            return f"{event.action} by {event.who}: {event.reason}"
        case ev.CancelAsked():
            return f"{', '.join(event.submissions)}: {event.reason}"
        case ev.AccountingArchived():
            note = f"; {event.note}" if event.note else ""
            return f"accounting/{event.submission}.json: {event.rows} rows{note}"
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
