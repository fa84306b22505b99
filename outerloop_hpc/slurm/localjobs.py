"""What the event file of a local job says, as queue and accounting rows. Pure: lines and a liveness test in, rows out.

A local job has one append-only file, ``local/<name>.jsonl``: the submitter writes the first line, the controller all
others. It is to this machine what slurmdbd is to a cluster.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from outerloop_hpc.slurm.port import AccountingRow, QueueRow
from outerloop_hpc.slurm.processid import ProcessId

#: How long a submitted controller may take to show up, in seconds.
STARTUP_S = 60.0


Alive = Callable[[ProcessId], bool | None]


@dataclass(slots=True)
class LocalJob:
    """The fold of one event file."""

    submitted: Mapping[str, Any]
    controller: ProcessId | None = None
    job_id: str = ""
    started: dict[int, tuple[ProcessId, float]] = field(default_factory=dict)
    ended: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    last: float = 0.0

    @property
    def count(self) -> int:
        """How many elements it has."""
        return int(self.submitted["count"])

    @property
    def array(self) -> bool:
        """Whether its elements are array elements."""
        return self.count > 1


def parse(text: str) -> tuple[LocalJob | None, tuple[str, ...]]:
    """Fold an event file; a torn last line or an unknown one is a problem, not an error."""
    job: LocalJob | None = None
    problems: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        try:
            job = _take(job, json.loads(line))
        except (ValueError, LookupError, TypeError, ArithmeticError, RecursionError) as error:
            problems.append(f"line {number}: {type(error).__name__}: {error}")
    return job, tuple(problems)


def _take(job: LocalJob | None, event: Mapping[str, Any]) -> LocalJob:
    what, at = event["event"], _time(event["at"])
    if job is None:
        if what != "submitted":
            raise ValueError("the first line does not say what was submitted")
        return LocalJob(submitted=_submitted(event, at), last=at)
    if what == "controller":
        job.controller, job.job_id = _process(event), str(event["job_id"])
    elif what == "started":
        job.started[_index(job, event)] = (_process(event), at)
    elif what == "ended":
        job.ended[_index(job, event)] = _ended(event, at)
    else:
        raise ValueError(f"event {what!r} is not expected here")
    job.last = max(job.last, at)
    return job


def _submitted(event: Mapping[str, Any], at: float) -> Mapping[str, Any]:
    """Check what every row needs, so that a damaged line is a problem here and no error when rows are made."""
    whole = {key: int(event[key]) for key in ("count", "cpus", "minutes")}
    if whole["count"] < 1:
        raise ValueError(f"{whole['count']} elements")
    return {**event, **{key: str(event[key]) for key in ("name", "user", "host")}, **whole, "at": at}


def _ended(event: Mapping[str, Any], at: float) -> Mapping[str, Any]:
    """As above, for the end of an element; what was used is known only for those that ran."""
    whole = {key: int(event[key]) for key in ("status", "signal")}
    used = {key: _time(event[key]) for key in ("seconds", "cpu_s") if key in event}
    more = {key: int(event[key]) for key in ("uid", "rss") if key in event}
    if "cpu_s" in used and "rss" not in more:
        raise ValueError("CPU time without memory")
    return {**event, "state": str(event["state"]), **whole, **used, **more, "at": at}


def _time(value: Any) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{number} is not a time")
    return number


def _index(job: LocalJob, event: Mapping[str, Any]) -> int:
    index = int(event["index"])
    if not 0 <= index < job.count:
        raise ValueError(f"there is no element {index}")
    return index


def _process(event: Mapping[str, Any]) -> ProcessId:
    return ProcessId(int(event["pid"]), int(event["ticks"]), str(event["boot"]), str(event["host"]))


def rows(job: LocalJob, alive: Alive, now: float) -> tuple[list[QueueRow], list[AccountingRow]]:
    """Say of each element what squeue and sacct would say.

    An element on another host cannot be judged from here: it is left out of both, with the queue row ``?``.
    """
    queue: list[QueueRow] = []
    accounting: list[AccountingRow] = []
    for index in range(job.count):
        state = _state(job, index, alive, now)
        if state in {"PENDING", "RUNNING", "?"}:
            queue.append(_queue_row(job, index, state))
        if state != "?":
            accounting.extend(_accounting_rows(job, index, state))
    return queue, accounting


def _state(job: LocalJob, index: int, alive: Alive, now: float) -> str:
    if index in job.ended:
        return str(job.ended[index]["state"])
    controller = None if job.controller is None else alive(job.controller)
    if index in job.started:
        own = alive(job.started[index][0])
        if own is None:
            return "?"
        return "RUNNING" if own or controller else "NODE_FAIL"
    if job.controller is None:
        return "PENDING" if now - job.last < STARTUP_S else "BOOT_FAIL"
    if controller is None:
        return "?"
    return "PENDING" if controller else "NODE_FAIL"


def _queue_row(job: LocalJob, index: int, state: str) -> QueueRow:
    return QueueRow(
        job_id=job.job_id,
        tasks=frozenset({index}) if job.array else None,
        name=str(job.submitted["name"]),
        user=str(job.submitted["user"]),
        state=state,
        nodes=str(job.submitted["host"]) if state == "RUNNING" else "",
        submit=int(job.submitted["at"]),
    )


def _accounting_rows(job: LocalJob, index: int, state: str) -> list[AccountingRow]:
    ended = job.ended.get(index, {})
    start = int(job.started[index][1]) if index in job.started else None
    alive = state in {"PENDING", "RUNNING"}
    end = None if alive else int(float(ended.get("at", job.last)))
    columns = _columns(job, index, state, start, end)
    found = [_row(job, index, "", columns)]
    if "cpu_s" in ended:
        used = {
            **columns,
            "JobID": columns["JobID"] + ".batch",
            "NTasks": "1",
            "MaxRSS": str(ended["rss"]),
            "TotalCPU": columns["TotalCPU"],
        }
        found.append(_row(job, index, "batch", used))
    return found


def _row(job: LocalJob, index: int, step: str, columns: Mapping[str, str]) -> AccountingRow:
    ended = job.ended.get(index, {})
    code = None if not ended else (int(ended["status"]), int(ended["signal"]))
    by = ended.get("uid")
    return AccountingRow(
        job_id=job.job_id,
        task=index if job.array else None,
        step=step,
        name=str(job.submitted["name"]),
        user=str(job.submitted["user"]),
        cluster="",
        state=columns["State"].partition(" ")[0],
        cancelled_by=None if by is None else int(by),
        submit=int(job.submitted["at"]),
        start=_epoch(columns["Start"]),
        end=_epoch(columns["End"]),
        exit_code=code,
        columns=columns,
    )


def _epoch(text: str) -> int | None:
    return int(text) if text.isdigit() else None


def _columns(job: LocalJob, index: int, state: str, start: int | None, end: int | None) -> dict[str, str]:
    ended, said = job.ended.get(index, {}), job.submitted
    by = f" by {ended['uid']}" if state == "CANCELLED" and "uid" in ended else ""
    elapsed = 0 if start is None or end is None else end - start
    if "seconds" in ended:
        elapsed = round(float(ended["seconds"]))
    return {
        "JobID": f"{job.job_id}_{index}" if job.array else job.job_id,
        "JobName": str(said["name"]),
        "User": str(said["user"]),
        "Cluster": "local",
        "State": state + by,
        "ExitCode": f"{ended['status']}:{ended['signal']}" if ended else "0:0",
        "Submit": str(int(said["at"])),
        "Start": "Unknown" if start is None else str(start),
        "End": "Unknown" if end is None else str(end),
        "ElapsedRaw": str(elapsed),
        "TimelimitRaw": str(said["minutes"]),
        "AllocCPUS": str(said["cpus"]) if start is not None else "0",
        "NNodes": "1" if start is not None else "0",
        "AllocTRES": f"cpu={said['cpus']},node=1" if start is not None else "",
        "TotalCPU": _duration(float(ended["cpu_s"])) if "cpu_s" in ended else "",
        "NodeList": str(said["host"]) if start is not None else "None assigned",
    }


def _duration(seconds: float) -> str:
    """Format as sacct does: ``MM:SS.mmm`` under an hour, ``HH:MM:SS`` above."""
    if seconds < 3600:  # noqa: PLR2004 - an hour
        return f"{int(seconds // 60):02d}:{seconds % 60:06.3f}"
    whole = int(seconds)
    return f"{whole // 3600:02d}:{whole % 3600 // 60:02d}:{whole % 60:02d}"


def event_line(event: str, at: float, fields: Mapping[str, Any]) -> str:
    """Format one line of an event file."""
    return json.dumps({"event": event, "at": at, **fields}, sort_keys=True) + "\n"


def identity_of(process: ProcessId) -> dict[str, Any]:
    """Return a process's identity as event fields."""
    return {"pid": process.pid, "ticks": process.ticks, "boot": process.boot, "host": process.host}


def resources_of(cpus: int, minutes: int, arguments: Sequence[str]) -> dict[str, Any]:
    """Return what was asked for as fields of the first line."""
    return {"cpus": cpus, "minutes": minutes, "count": len(arguments), "arguments": list(arguments)}
