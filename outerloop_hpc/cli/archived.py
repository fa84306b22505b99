"""Read the archived accounting rows of runs for the reports; what cannot be read is named, never left out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from outerloop_hpc import fsio
from outerloop_hpc.engine import archive, runs, watch
from outerloop_hpc.engine.layout import Layout, RunFolder
from outerloop_hpc.errors import Fault, OuterloopError, UsageError
from outerloop_hpc.report.costs import Window
from outerloop_hpc.report.formulas import footer
from outerloop_hpc.report.jobs import JobReport, job_reports
from outerloop_hpc.report.select import Selection, state_words, words
from outerloop_hpc.report.times import moment
from outerloop_hpc.report.tries import untold
from outerloop_hpc.slurm.jobid import parse_job_id


def selection(
    *, since: str = "", until: str = "", users: str = "", accounts: str = "", clusters: str = "", states: str = ""
) -> Selection:
    """Read the options that choose rows.

    Raises:
        UsageError: a time that is not one, a window that ends before it starts, or a state that Slurm does not know.
    """
    now = datetime.now().astimezone()
    window = Window(moment(since, now) if since else None, moment(until, now) if until else None)
    if window.start is not None and window.end is not None and window.start >= window.end:
        raise UsageError(f"-S {since} is not before -E {until}: nothing lies in {window}")
    return Selection(
        window=window,
        users=words(users),
        accounts=words(accounts),
        clusters=words(clusters),
        states=state_words(states),
    )


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


def chosen_pairs(layout: Layout, *, run: str = "", **options: str) -> Found:
    """Read what the options that choose rows leave; see ``selection`` and ``job_pairs``."""
    return job_pairs(layout, selection(**options), run)


def job_pairs(layout: Layout, wanted: Selection, run: str = "") -> Found:
    """Read the archives of all runs, or of one, and keep what is wanted."""
    folders: Iterable[RunFolder] = [runs.find(layout, run)] if run else runs.every(layout)
    pairs: list[tuple[str, JobReport]] = []
    problems: list[str] = []
    for folder in folders:
        pairs.extend((folder.run_id, job) for job in _of_run(layout, folder, problems) if wanted.keeps(job))
    return Found(tuple(pairs), tuple(problems), wanted.window)


def _of_run(layout: Layout, folder: RunFolder, problems: list[str]) -> Iterator[JobReport]:
    """Every try of a run: from its archived accounting rows where there are any, else from its journal."""
    told: set[tuple[str, str]] = set()
    for name in _archives(folder, problems):
        submission = name.removesuffix(".json")
        try:
            found = archive.read(folder, submission)
        except Fault as fault:
            problems.append(str(fault))
            continue
        if found is None:
            continue
        if found.note:
            problems.append(f"{folder.run_id}: {submission}: {found.note}")
        source = str(folder.accounting(submission))
        for job in job_reports(found.rows, submission=submission, compute=found.compute, source=source):
            told |= {(submission, one) for one in _elements(job.job_id)}
            yield job
    try:
        state = watch.load(layout, folder.run_id).state
    except OuterloopError as fault:
        problems.append(str(fault))
        return
    yield from untold(state, told, str(folder.journal))


def _archives(folder: RunFolder, problems: list[str]) -> list[str]:
    path = folder.path / "accounting"
    try:
        return fsio.names(path)
    except OSError as error:
        problems.append(f"{path}: cannot be listed: {error.strerror}")
        return []


def _elements(job_id: str) -> Iterator[str]:
    """Ids of the elements that a row stands for: sacct prints what never started of an array as ``13_[0-4]``."""
    parsed = parse_job_id(job_id)
    if isinstance(parsed, str) or parsed.tasks is None:
        yield job_id
    else:
        yield from (f"{parsed.base}_{task}" for task in parsed.tasks)
