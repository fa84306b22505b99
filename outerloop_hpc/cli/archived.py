"""Read the archived accounting rows of runs for the reports; what cannot be read is named, never left out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from outerloop_hpc import fsio
from outerloop_hpc.engine import archive, runs
from outerloop_hpc.engine.layout import Layout, RunFolder
from outerloop_hpc.errors import Fault, UsageError
from outerloop_hpc.report.costs import Window
from outerloop_hpc.report.formulas import footer
from outerloop_hpc.report.jobs import JobReport, job_reports

_RELATIVE = re.compile(r"^now-(?P<count>\d{1,6})(?P<unit>seconds|minutes|hours|days|weeks)$")


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which rows a report is about. Empty filters let everything through."""

    window: Window
    now: int
    run: str = ""
    users: frozenset[str] = frozenset()
    accounts: frozenset[str] = frozenset()
    clusters: frozenset[str] = frozenset()
    states: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls,
        *,
        run: str = "",
        since: str = "",
        until: str = "",
        users: str = "",
        accounts: str = "",
        clusters: str = "",
        states: str = "",
    ) -> Wanted:
        """Read the options.

        Raises:
            UsageError: a time that is not one.
        """
        now = datetime.now(UTC)
        window = Window(epoch_of(since, now), epoch_of(until, now))
        words = frozenset(word.upper() for word in _words(states))
        return cls(window, int(now.timestamp()), run, _words(users), _words(accounts), _words(clusters), words)

    def takes(self, job: JobReport) -> bool:
        """Whether a job is in: its filters match and its time touches the window."""
        if self.users and job.user not in self.users:
            return False
        if self.accounts and job.account not in self.accounts:
            return False
        if self.clusters and job.cluster not in self.clusters:
            return False
        if self.states and job.state not in self.states:
            return False
        begin, end = job.start or job.submit, job.end or self.now
        after = self.window.end is not None and begin is not None and begin >= self.window.end
        before = self.window.start is not None and end < self.window.start
        return not (after or before)


@dataclass(frozen=True, slots=True)
class Found:
    """The rows, and what could not be had."""

    pairs: tuple[tuple[str, JobReport], ...]
    problems: tuple[str, ...]
    window: Window

    def footer(self, columns: str | Sequence[str]) -> tuple[str, ...]:
        """Return the lines under the table: problems, window, formulas."""
        names = columns.split(",") if isinstance(columns, str) else columns
        return (*self.problems, *footer(names, str(self.window)))

    def meta(self) -> dict[str, object]:
        """Return the same for machines."""
        return {"problems": list(self.problems), "window": {"start": self.window.start, "end": self.window.end}}


def job_pairs(layout: Layout, wanted: Wanted) -> Found:
    """Read the archives of all runs, or of one, and keep what is wanted."""
    folders: Iterable[RunFolder] = [runs.find(layout, wanted.run)] if wanted.run else runs.every(layout)
    pairs: list[tuple[str, JobReport]] = []
    problems: list[str] = []
    for folder in folders:
        for reports in _of_run(folder, problems):
            pairs.extend((folder.run_id, job) for job in reports if wanted.takes(job))
    return Found(tuple(pairs), tuple(problems), wanted.window)


def _of_run(folder: RunFolder, problems: list[str]) -> Iterator[tuple[JobReport, ...]]:
    for name in fsio.names(folder.path / "accounting"):
        submission = name.removesuffix(".json")
        try:
            found = archive.read(folder, submission)
        except Fault as fault:
            problems.append(str(fault))
            continue
        if found is not None:
            if found.note:
                problems.append(f"{folder.run_id}: {submission}: {found.note}")
            source = str(folder.accounting(submission))
            yield job_reports(found.rows, submission=submission, compute=found.compute, source=source)


def _words(text: str) -> frozenset[str]:
    return frozenset(word.strip() for word in text.split(",") if word.strip())


def epoch_of(text: str, now: datetime) -> int | None:
    """Read a time: ISO date or date and time (UTC unless it says otherwise), ``today``, ``now``, ``now-7days``.

    Raises:
        UsageError: it is none of these.
    """
    if not text:
        return None
    match = _RELATIVE.match(text)
    if match is not None:
        return int((now - timedelta(**{match["unit"]: int(match["count"])})).timestamp())
    if text == "now":
        return int(now.timestamp())
    if text == "today":
        return int(now.replace(hour=0, minute=0, second=0, microsecond=0).timestamp())
    try:
        at = datetime.fromisoformat(text)
    except ValueError as error:
        raise UsageError(f"{text!r} is not a time: 2026-11-29, 2026-11-29T12:00, today, now-7days") from error
    return int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp())
