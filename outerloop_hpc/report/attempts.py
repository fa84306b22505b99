"""Which accounting rows belong together: one attempt is one allocation row and the steps that ran in it (pure)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

#: One accounting row: sacct's column names to text.
Row = Mapping[str, str]

# A long pending range is cut with "..." inside its bracket, so the step's dot is looked for behind the whole id.
_ID = re.compile(r"(?P<job>[0-9]+(?:[_+](?:[0-9]+|\[[^\]]*\]?))?)(?:\.(?P<step>.+))?", re.ASCII | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One execution of one job or array element.

    Attributes:
        job: its allocation row.
        steps: its step rows (batch, extern, 0 …), each once.
        superseded: whether a later attempt of the same job is in the same rows (requeued).
    """

    job: Row
    steps: tuple[Row, ...]
    superseded: bool


@dataclass(slots=True)
class _Open:
    job: Row
    steps: dict[str, Row]


def split_id(job_id: str) -> tuple[str, str]:
    """Split ``123_4.batch`` into job and step; ids that are not Slurm's are a job without step."""
    match = _ID.fullmatch(job_id)
    return (job_id, "") if match is None else (match["job"], match["step"] or "")


def attempts(rows: Iterable[Row]) -> tuple[Attempt, ...]:
    """Join allocation rows and steps, one attempt for each (cluster, job id, submission), in order of first sight.

    A step's own Submit is its start, so it is joined by ``SLUID`` where Slurm has it and otherwise to the allocation
    row of its id that stands before it, as sacct prints them. Of rows given twice the later one holds. A step whose
    allocation row is missing belongs to nothing and is left out.
    """
    jobs: dict[tuple[str, str], dict[str, _Open]] = {}
    current: dict[tuple[str, str], _Open] = {}
    early: list[Row] = []
    for row in rows:
        _, step = split_id(row.get("JobID", ""))
        if step:
            if not _join(row, step, jobs, current):
                early.append(row)
            continue
        same = jobs.setdefault(_key(row), {})
        mark = row.get("SLUID") or row.get("Submit", "")
        if mark in same:
            same[mark].job = row
        else:
            same[mark] = _Open(row, {})
        current[_key(row)] = same[mark]
    for row in early:
        _join(row, split_id(row.get("JobID", ""))[1], jobs, current)
    return tuple(found for same in jobs.values() for found in _closed(list(same.values())))


def _join(
    row: Row, step: str, jobs: dict[tuple[str, str], dict[str, _Open]], current: dict[tuple[str, str], _Open]
) -> bool:
    sluid = row.get("SLUID")
    owner = jobs.get(_key(row), {}).get(sluid) if sluid else None
    owner = owner or current.get(_key(row))
    if owner is None:
        return False
    owner.steps[step] = row
    return True


def _closed(same: list[_Open]) -> list[Attempt]:
    newest = max(same, key=lambda attempt: _time(attempt.job))
    return [
        Attempt(one.job, tuple(one.steps.values()), superseded=one is not newest or _state(one.job) == "REQUEUED")
        for one in same
    ]


def _key(row: Row) -> tuple[str, str]:
    # Not by JobIDRaw: the last element of an array has the array's own, and expanded pending ranges share it.
    job, _ = split_id(row.get("JobID", ""))
    return row.get("Cluster", ""), job


def _time(row: Row) -> int:
    text = row.get("Submit", "")
    return int(text) if text.isdecimal() else 0


def _state(row: Row) -> str:
    return row.get("State", "").partition(" ")[0]
