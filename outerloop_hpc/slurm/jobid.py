"""Slurm's job id grammar: ``id(_(n|[ranges[:step],…[%k]]))?(+offset)?(.step)?``. Pure and total."""

from __future__ import annotations

import re
from dataclasses import dataclass

#: Most array elements that one expression may stand for here; a larger one is reported, not expanded.
MAX_TASKS = 100_000

_SHOWN = 60

_ID = re.compile(
    r"(?P<base>[0-9]{1,20})"
    r"(?:_(?:(?P<task>[0-9]{1,10})|\[(?P<tasks>[0-9,:-]{1,1000000})(?:%[0-9]{1,10})?\]))?"
    r"(?:\+(?P<offset>[0-9]{1,10}))?"
    r"(?:\.(?P<step>[A-Za-z0-9_+-]{1,64}))?"
)
_RANGE = re.compile(r"([0-9]{1,10})(?:-([0-9]{1,10})(?::([0-9]{1,10}))?)?")
_BASE = re.compile(r"[0-9]{1,20}")


@dataclass(frozen=True, slots=True)
class JobId:
    """A parsed id.

    Attributes:
        base: what identifies the job: ``123``; for a component of a heterogeneous job ``16+0``, which is therefore
            never mistaken for the plain job 16.
        tasks: array elements that it stands for; None when it is no array.
        step: ``batch``, ``extern``, ``0`` …; empty for the job itself.
    """

    base: str
    tasks: frozenset[int] | None = None
    step: str = ""

    @property
    def task(self) -> int | None:
        """The array element, when it is exactly one."""
        return next(iter(self.tasks)) if self.tasks is not None and len(self.tasks) == 1 else None


def parse_job_id(text: str) -> JobId | str:
    """Parse an id as squeue (``%i``) and sacct (``JobID``) print it.

    Returns:
        The id, or one line that says what is wrong with it. A cut expression (``14_[1,3-4,...]``) is a problem:
        the elements that were cut off are alive somewhere, and nothing may be guessed about them.
    """
    found = _ID.fullmatch(text)
    if not found:
        if "..." in text or text.count("[") > text.count("]"):
            return f"job id {_short(text)} was cut off by Slurm (SLURM_BITSTR_LEN=0 was not honoured)"
        return f"job id {_short(text)} is not understood"
    base = found["base"] if found["offset"] is None else f"{found['base']}+{found['offset']}"
    step = found["step"] or ""
    if found["task"] is not None:
        return JobId(base, frozenset({int(found["task"])}), step)
    if found["tasks"] is None:
        return JobId(base, None, step)
    tasks = _expand(found["tasks"])
    if isinstance(tasks, str):
        return f"job id {_short(text)}: {tasks}"
    return JobId(base, tasks, step)


def base_of(text: str) -> str | None:
    """Return the base id that ``text`` begins with, even when the rest is cut or not understood; else None."""
    found = _BASE.match(text)
    return found[0] if found else None


def _expand(expression: str) -> frozenset[int] | str:
    tasks: set[int] = set()
    for part in expression.split(","):
        found = _RANGE.fullmatch(part)
        if not found:
            return f"array part {_short(part)} is not understood"
        first = int(found[1])
        last = int(found[2]) if found[2] else first
        step = int(found[3]) if found[3] else 1
        if last < first or step < 1:
            return f"array part {_short(part)} is not a range"
        if (last - first) // step + 1 + len(tasks) > MAX_TASKS:
            return f"stands for more than {MAX_TASKS} array elements"
        tasks.update(range(first, last + 1, step))
    return frozenset(tasks)


def _short(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")
