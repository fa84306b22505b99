"""The evidence of a decision as lines for people. Total: journals of earlier versions hold less, and it is shown."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from outerloop_hpc.engine.spec import stamp

#: What the lines below say in words; everything else is shown as it is.
_TOLD = frozenset(
    {
        *("queue", "queue_row", "queue_lacked", "accounting", "accounting_times", "accounting_steps"),
        *("accounting_silent_at", "exit_code", "cancelled_by", "record", "claim", "interrupted", "interrupted_at"),
        *("begun", "unreadable", "not_ours", "seen_at", "job", "intended_at", "intended_for_s", "sources"),
    }
)


def seen_lines(evidence: Mapping[str, Any]) -> Iterator[str]:
    """Yield ``source: what it said`` in the order in which the decision table reads them."""
    yield from _looked(evidence)
    yield from _files(evidence)
    if "queue" in evidence:
        yield f"queue: {evidence['queue']}{_queue(evidence)}"
    if "accounting" in evidence:
        yield f"accounting: {evidence['accounting']}{_accounting(evidence)}"
    if silent := evidence.get("accounting_silent_at"):
        yield f"accounting was last silent at {silent}"
    for foreign in evidence.get("not_ours", ()):
        yield f"not ours: {foreign}"
    if rest := {name: value for name, value in evidence.items() if name not in _TOLD}:
        yield f"also: {json.dumps(rest, sort_keys=True)}"


def _looked(evidence: Mapping[str, Any]) -> Iterator[str]:
    job, parts = evidence.get("job") or {}, []
    if job:
        parts.append(f"job {job.get('id')} named {job.get('name')}")
    if "intended_at" in evidence:
        parts.append(f"submission intended at {evidence['intended_at']}")
    if "seen_at" in evidence:
        parts.append(f"seen at {evidence['seen_at']}")
    if parts:
        yield ", ".join(parts)
    if "sources" in evidence:
        age = evidence.get("intended_for_s")
        yield f"queue and accounting, asked for that name: {evidence['sources']}, {age} s after the intent"


def _files(evidence: Mapping[str, Any]) -> Iterator[str]:
    if record := evidence.get("record"):
        yield f"record: {record.get('outcome')}{_span(record.get('started_at'), record.get('ended_at'))}"
    if claim := evidence.get("claim"):
        by = "taken by a reconciler on" if claim.get("taken_by_reconciler") else f"job {claim.get('job_id') or '-'} on"
        yield f"claim: {by} {claim.get('host')}{_at(claim.get('at'))}"
    if interrupted := evidence.get("interrupted"):
        yield f"interrupted: {interrupted}{_at(evidence.get('interrupted_at'))}"
    if evidence.get("begun"):
        yield "begun: it began what no repetition gives back"
    if "seen_at" in evidence and "queue" in evidence and not {"record", "claim", "unreadable"} & set(evidence):
        rest = "; what else it left is not read while it runs" if evidence["queue"] == "RUNNING" else ", no claim"
        yield f"files: no record{rest}"
    if fault := evidence.get("unreadable"):
        yield f"unreadable: {fault}"


def _queue(evidence: Mapping[str, Any]) -> str:
    row, lacked, said = evidence.get("queue_row") or {}, evidence.get("queue_lacked"), ""
    if row:
        reason = row.get("reason")
        said += f" ({reason})" if reason not in {"", "None", None} else ""
        said += f", submitted {_epoch(row.get('submit'))}"
    if lacked:
        said += f"; seen to lack it since {lacked['since']}, for {lacked['for_s']} s (clock of {lacked['clock_of']})"
        said += f", last word {lacked['last_word']}" if lacked.get("last_word") else ""
    return said


def _accounting(evidence: Mapping[str, Any]) -> str:
    times = evidence.get("accounting_times")
    if times is None:
        return ""
    said = "".join(f", {word} {_epoch(times.get(word))}" for word in ("submit", "start", "end"))
    code = evidence.get("exit_code")
    said += f", exit code {':'.join(map(str, code))}" if code else ""
    by = evidence.get("cancelled_by")
    said += f", cancelled by uid {by}" if by is not None else ""
    steps = evidence.get("accounting_steps")
    return said + (f", steps {' '.join(steps)}" if steps else "")


def _epoch(seconds: Any) -> str:
    return "unknown" if not isinstance(seconds, int) else stamp(datetime.fromtimestamp(seconds, UTC))


def _at(time: Any) -> str:
    return f" at {time}" if time else ""


def _span(start: Any, end: Any) -> str:
    return f", from {start} to {end}" if start and end else ""
