r"""squeue and sacct text to typed rows. Pure and total: every line becomes a row or a problem, never an exception.

Both are asked for with a separator of our own between the columns and the job name, the only text here that people
choose, last: ``|`` and newlines in a name then neither shift a column nor hide a job. ``SlurmQuery`` adds a random
part to the separator, so that no name can pretend to be a row either.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from outerloop_hpc.slurm.jobid import base_of, parse_job_id
from outerloop_hpc.slurm.port import AccountingRow, QueueRow
from outerloop_hpc.slurm.states import cancelled_by, state_word

SEPARATOR = "\x1f"

#: The columns of one queue line, as squeue's ``-o`` letters: id, submit, state, user, partition, nodes, reason, name.
QUEUE_LETTERS = ("i", "V", "T", "u", "P", "N", "r", "j")

_CLUSTER_HEADING = re.compile(r"CLUSTER: \S+")
_EPOCH = re.compile(r"[0-9]{1,12}")
_EXIT_CODE = re.compile(r"([0-9]{1,5}):([0-9]{1,5})")
_COLUMN = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_NO_TIME = frozenset({"", "0", "unknown", "none", "n/a", "(null)", "null"})


@dataclass(frozen=True, slots=True)
class Problem:
    """A line that could not be read.

    Attributes:
        text: one line for people.
        job_id: base id that the line is about, when that much could be read.
        name: name of the job that the line is about, when that much could be read.
        talk: the line looks like no row at all (a site's banner), so that no job hides in it.
    """

    text: str
    job_id: str | None = None
    name: str | None = None
    talk: bool = False


def queue_format(separator: str = SEPARATOR) -> str:
    """Return squeue's ``-o`` for these columns."""
    return separator.join(f"%{letter}" for letter in QUEUE_LETTERS)


def parse_queue(text: str, separator: str = SEPARATOR) -> tuple[tuple[QueueRow, ...], tuple[Problem, ...]]:
    """Read the answer to ``squeue -h -o queue_format(separator)``; ``CLUSTER: x`` headings of ``-M`` are skipped."""
    rows: list[QueueRow] = []
    problems: list[Problem] = []
    continues = False
    for line in text.split("\n"):
        if not line.strip() or _CLUSTER_HEADING.fullmatch(line.strip()):
            continue
        values = line.split(separator, len(QUEUE_LETTERS) - 1)
        if len(values) == 1 and continues:
            rows[-1] = replace(rows[-1], name=f"{rows[-1].name}\n{line}")
            continue
        outcome = _queue_row(values, line)
        continues = isinstance(outcome, QueueRow)
        if isinstance(outcome, QueueRow):
            rows.append(outcome)
        else:
            problems.append(outcome)
    return tuple(rows), tuple(problems)


def _queue_row(values: list[str], line: str) -> QueueRow | Problem:
    if len(values) < len(QUEUE_LETTERS):
        return _short_line("squeue", values, line, len(QUEUE_LETTERS))
    printed, submit, state, user, partition, nodes, reason, name = (value.strip() for value in values)
    parsed = parse_job_id(printed)
    if isinstance(parsed, str):
        return Problem(f"squeue: {parsed}", base_of(printed), name)
    return QueueRow(
        job_id=parsed.base,
        tasks=parsed.tasks,
        name=name,
        user=user,
        state=state_word(state),
        reason=reason,
        nodes=nodes,
        partition=partition,
        submit=_epoch(submit),
    )


def parse_accounting(
    text: str, delimiter: str = SEPARATOR
) -> tuple[tuple[AccountingRow, ...] | None, tuple[Problem, ...]]:
    """Read the answer to ``sacct -P`` with its header line, which names the columns.

    A collapsed line (``13_[6-30:3%2]``) becomes one row for each element. Rows keep the order in which they came:
    an allocation, then its steps. Rows are keyed by ``JobID``; ``JobIDRaw`` of an array's last element is the id
    of the array itself and would hide it.

    Returns:
        The rows, or None when there is no header line (then it was no answer); and the problems.
    """
    lines = text.split("\n")
    header = next((number for number, line in enumerate(lines) if _is_header(line, delimiter)), None)
    if header is None:
        return None, tuple(_banner(line) for line in lines if line.strip())
    problems = [_banner(line) for line in lines[:header] if line.strip()]
    names = lines[header].split(delimiter)
    rows: list[AccountingRow] = []
    for values in _records(lines[header + 1 :], names, delimiter, problems.append):
        rows.extend(_accounting_rows(values, problems))
    return tuple(rows), _once(problems)


def _is_header(line: str, delimiter: str) -> bool:
    return {"JobID", "State"} <= set(line.split(delimiter))


def _records(
    lines: Iterable[str], names: list[str], delimiter: str, report: Callable[[Problem], None]
) -> list[dict[str, str]]:
    records: list[dict[str, str]] = []
    continues = False
    for line in lines:
        if not line.strip():
            continue
        values = line.split(delimiter, len(names) - 1)
        if len(values) == len(names):
            records.append(dict(zip(names, values, strict=True)))
        elif len(values) == 1 and continues:
            records[-1][names[-1]] += f"\n{line}"
            continue
        else:
            report(_short_line("sacct", values, line, len(names)))
        continues = len(values) == len(names)
    return records


def _accounting_rows(values: Mapping[str, str], problems: list[Problem]) -> list[AccountingRow]:
    printed = values["JobID"].strip()
    parsed = parse_job_id(printed)
    if isinstance(parsed, str):
        problems.append(Problem(f"sacct: {parsed}", base_of(printed), values.get("JobName")))
        return []
    times = {column: values.get(column, "").strip() for column in ("Submit", "Start", "End")}
    problems.extend(
        Problem(f"sacct: {column} is not in epoch seconds (SLURM_TIME_FORMAT=%s was not honoured)", talk=True)
        for column, value in times.items()
        if _epoch(value) is None and value.lower() not in _NO_TIME
    )
    exit_code = _EXIT_CODE.fullmatch(values.get("ExitCode", "").strip())
    state = values["State"].strip()
    row = AccountingRow(
        job_id=parsed.base,
        task=None,
        step=parsed.step,
        name=values.get("JobName", ""),
        user=values.get("User", "").strip(),
        cluster=values.get("Cluster", "").strip(),
        state=state_word(state),
        cancelled_by=cancelled_by(state),
        submit=_epoch(times["Submit"]),
        start=_epoch(times["Start"]),
        end=_epoch(times["End"]),
        exit_code=(int(exit_code[1]), int(exit_code[2])) if exit_code else None,
        columns=MappingProxyType(dict(values)),
    )
    if parsed.tasks is None:
        return [row]
    return [replace(row, task=task) for task in sorted(parsed.tasks)]


def parse_columns(text: str) -> frozenset[str]:
    """Read ``sacct --helpformat``; an empty set when the text is no list of columns."""
    words = frozenset(word for word in text.split() if _COLUMN.fullmatch(word))
    return words if {"JobID", "JobName", "State", "Submit"} <= words else frozenset()


def _epoch(text: str) -> int | None:
    return int(text) or None if _EPOCH.fullmatch(text) else None


def _short_line(source: str, values: list[str], line: str, expected: int) -> Problem:
    if len(values) == 1:
        return _banner(line)
    return Problem(
        f"{source}: a line has {len(values)} of {expected} columns: {line[:80]!r}", base_of(values[0].strip())
    )


def _banner(line: str) -> Problem:
    return Problem(f"not a row: {line[:80]!r}", talk=True)


def _once(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    return tuple(dict.fromkeys(problems))
