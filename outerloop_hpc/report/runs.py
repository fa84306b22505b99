"""Totals of runs over their jobs' attempts (pure). A total counts what was measured, and says of how many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from outerloop_hpc.report.jobs import JobReport, Outcome


@dataclass(frozen=True, slots=True)
class RunReport:
    """One run's totals; every ``None`` means "not measured".

    Attributes:
        attempts: all attempts, each of which may have cost something; the seven counts below add up to it.
        success_rate: 0…1, completed of completed and failed.
        elapsed_s: summed wall seconds of all attempts.
        cpu_hours, gpu_hours: cost of all attempts, requeued ones included.
        cpu_efficiency: 0…1 over the attempts whose CPU time was measured, weighted by what they held.
        memory_peak_bytes: the largest attempt's memory.
        notes: caveats, each with the number of attempts it holds for.
        sources: the files that these numbers can be recomputed from.
    """

    run_id: str
    attempts: int
    completed: int
    failed: int
    cancelled: int
    running: int
    waiting: int
    requeued: int
    rejected: int
    success_rate: float | None
    elapsed_s: float | None
    cpu_hours: float | None
    gpu_hours: float | None
    cpu_efficiency: float | None
    memory_peak_bytes: int | None
    notes: tuple[str, ...]
    sources: tuple[str, ...]


def run_reports(jobs: Iterable[tuple[str, JobReport]]) -> tuple[RunReport, ...]:
    """Sum up (run id, job report) pairs, one report for each run, in order of first sight."""
    runs: dict[str, list[JobReport]] = {}
    for run_id, job in jobs:
        runs.setdefault(run_id, []).append(job)
    return tuple(_total(run_id, found) for run_id, found in runs.items())


def _total(run_id: str, jobs: Sequence[JobReport]) -> RunReport:
    outcomes = Counter(job.outcome for job in jobs)
    decided = outcomes[Outcome.COMPLETED] + outcomes[Outcome.FAILED]
    peaks = [job.usage.memory_used_bytes for job in jobs if job.usage.memory_used_bytes is not None]
    return RunReport(
        run_id=run_id,
        attempts=len(jobs),
        completed=outcomes[Outcome.COMPLETED],
        failed=outcomes[Outcome.FAILED],
        cancelled=outcomes[Outcome.CANCELLED],
        running=outcomes[Outcome.RUNNING],
        waiting=outcomes[Outcome.WAITING],
        requeued=outcomes[Outcome.REQUEUED],
        rejected=outcomes[Outcome.REJECTED],
        success_rate=outcomes[Outcome.COMPLETED] / decided if decided else None,
        elapsed_s=total(job.usage.elapsed_s for job in jobs),
        cpu_hours=total(job.usage.cpu_hours for job in jobs),
        gpu_hours=total(job.usage.gpu_hours for job in jobs),
        cpu_efficiency=_cpu_efficiency(jobs),
        memory_peak_bytes=max(peaks, default=None),
        notes=_notes(jobs),
        sources=tuple(dict.fromkeys(job.source for job in jobs if job.source)),
    )


def total(values: Iterable[float | None]) -> float | None:
    """Sum what was measured; nothing measured is ``None``, not 0."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _cpu_efficiency(jobs: Sequence[JobReport]) -> float | None:
    # The mean of ratios would let a hundred short jobs outvote one long one.
    measured = [(u.cpu_s, u.cpu_hours * 3600) for u in (j.usage for j in jobs) if u.cpu_s and u.cpu_hours]
    held = sum(held for _, held in measured)
    return min(sum(used for used, _ in measured) / held, 1.0) if held else None


def _notes(jobs: Sequence[JobReport]) -> tuple[str, ...]:
    counted = Counter(note for job in jobs for note in job.usage.notes)
    notes = [f"{number}x {note}" for note, number in counted.items()]
    ended = [job for job in jobs if job.usage.cpu_hours and job.end is not None]
    measured = sum(job.usage.cpu_s is not None for job in ended)
    if measured < len(ended):
        notes.append(f"CPU time was measured for {measured} of {len(ended)} ended attempts")
    return tuple(notes)
