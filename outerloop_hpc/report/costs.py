"""CPU and GPU hours by month, account, partition, user … within a window (pure).

A job that only touches the window, or a month, counts with the part of its time that lies in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from outerloop_hpc.errors import UsageError
from outerloop_hpc.report.jobs import JobReport
from outerloop_hpc.report.runs import total

#: What costs can be grouped by.
KEYS: Final = ("month", "account", "partition", "qos", "user", "cluster", "compute", "outcome")


@dataclass(frozen=True, slots=True)
class Window:
    """A span of epoch seconds, end not included; ``None`` is open."""

    start: int | None = None
    end: int | None = None

    def __str__(self) -> str:
        return f"{_iso(self.start, 'the beginning')} to {_iso(self.end, 'now')}"


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one group.

    Attributes:
        group: value of each key asked for, in that order.
        attempts: how many attempts touch it; one that touches two months is in both.
        cpu_hours, gpu_hours: cost inside the window; ``None`` is "not measured".
    """

    group: tuple[str, ...]
    attempts: int
    cpu_hours: float | None
    gpu_hours: float | None


@dataclass(frozen=True, slots=True)
class _Part:
    group: tuple[str, ...]
    cpu_hours: float | None
    gpu_hours: float | None


def costs(jobs: Iterable[JobReport], by: Sequence[str], window: Window | None = None, *, now: int) -> tuple[Cost, ...]:
    """Sum up what attempts cost, grouped and sorted by ``by``.

    Args:
        jobs: attempts; those that never held nodes cost nothing and are not counted.
        by: some of ``KEYS``.
        window: the span that counts; everything when not given.
        now: epoch seconds up to which running attempts are counted.

    Raises:
        UsageError: ``by`` names an unknown key.
    """
    for key in by:
        if key not in KEYS:
            raise UsageError(f"costs cannot be grouped by {key!r}; known: {', '.join(KEYS)}")
    groups: dict[tuple[str, ...], list[_Part]] = {}
    for job in jobs:
        for part in _parts(job, by, window or Window(), now):
            groups.setdefault(part.group, []).append(part)
    return tuple(
        Cost(group, len(parts), total(part.cpu_hours for part in parts), total(part.gpu_hours for part in parts))
        for group, parts in sorted(groups.items())
    )


def share_within(job: JobReport, window: Window, now: int) -> float:
    """Say which part of an attempt's time lies in the window, 0…1.

    Elapsed leaves suspended time out and nobody recorded when it was, so it counts as spread evenly.
    """
    if job.start is None:
        return 0.0
    end = max(job.end if job.end is not None else now, job.start)
    begin = job.start if window.start is None else max(job.start, window.start)
    until = end if window.end is None else min(end, window.end)
    if end == job.start:  # took no time: inside or not, it is whole
        return float(begin == job.start and (window.end is None or job.start < window.end))
    return max(until - begin, 0) / (end - job.start)


def _parts(job: JobReport, by: Sequence[str], window: Window, now: int) -> Iterator[_Part]:
    for month, span in _spans(job, window, now) if "month" in by else [("", window)]:
        share = share_within(job, span, now)
        if share > 0:
            group = tuple(month if key == "month" else str(getattr(job, key)) for key in by)
            yield _Part(group, _scaled(job.usage.cpu_hours, share), _scaled(job.usage.gpu_hours, share))


def _spans(job: JobReport, window: Window, now: int) -> Iterator[tuple[str, Window]]:
    """Cut the window into the months (UTC) that the attempt touches."""
    if job.start is None:
        return
    last = job.end if job.end is not None else now
    begin, name = _month(job.start)
    while begin <= last:
        # 32 days after its first second is always in the next month.
        following, next_name = _month(begin + 32 * 86400)
        start = begin if window.start is None else max(begin, window.start)
        end = following if window.end is None else min(following, window.end)
        if start < end:
            yield name, Window(start, end)
        begin, name = following, next_name


def _month(epoch: int) -> tuple[int, str]:
    first = datetime.fromtimestamp(epoch, UTC).replace(day=1, hour=0, minute=0, second=0)
    return int(first.timestamp()), first.strftime("%Y-%m")


def _scaled(hours: float | None, share: float) -> float | None:
    return None if hours is None else hours * share


def _iso(epoch: int | None, otherwise: str) -> str:
    if epoch is None:
        return otherwise
    return datetime.fromtimestamp(epoch, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
