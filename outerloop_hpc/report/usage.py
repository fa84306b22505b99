"""What one attempt used of what it held (pure). ``None`` is "not measured" and never 0.

The formulas are printed with every report (``formulas.py``); where a number needs a caveat it carries a note.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields

from outerloop_hpc.report.attempts import Attempt, Row
from outerloop_hpc.report.nodes import node_names
from outerloop_hpc.slurm.quantities import UNLIMITED, bytes_of, limit_seconds, requested_memory, seconds, tres

#: The clock of a step starts and stops up to a second beside the job's.
_CLOCK_SLACK_S = 1
#: Slurm's 32-bit "no value" and "infinite" start here, and its longer ones are longer; as a time it is the year 2106.
_NEVER = 2**32 - 4
_DIGITS = len(str(_NEVER))
# NVIDIA's names of slices: 1g.5gb, a100_3g.20gb, 1g.10gb+me.
_MIG_SLICE = re.compile(r"[0-9]+g\.[0-9]+gb", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Usage:
    """One attempt's use of its allocation; every ``None`` means "not measured".

    Attributes:
        elapsed_s: wall seconds without suspended time; so far, for a running attempt.
        alloc_cpus: CPUs held.
        cpu_s: CPU seconds used by all steps.
        cpu_efficiency: 0…1, ``cpu_s`` of ``elapsed_s x alloc_cpus``.
        memory_used_bytes: the largest step's peak over all its tasks.
        memory_asked_bytes: what the job asked for.
        memory_allocated_bytes: what it was given, more than asked on whole nodes.
        memory_efficiency: 0…1, used of allocated (of asked where the allocation is not recorded).
        time_efficiency: 0…1, elapsed of the time limit.
        gpu_count: whole GPUs held; ``None`` also where GPUs are not accounted.
        gpu_hours: ``gpu_count x elapsed_s`` in hours.
        cpu_hours: ``alloc_cpus x elapsed_s`` in hours.
        notes: what to know before these numbers are believed.
    """

    elapsed_s: float | None
    alloc_cpus: int | None
    cpu_s: float | None
    cpu_efficiency: float | None
    memory_used_bytes: int | None
    memory_asked_bytes: int | None
    memory_allocated_bytes: int | None
    memory_efficiency: float | None
    time_efficiency: float | None
    gpu_count: int | None
    gpu_hours: float | None
    cpu_hours: float | None
    notes: tuple[str, ...]


def epoch(text: str) -> int | None:
    """Read a time column: epoch seconds; ``Unknown``, ``None``, empty and "never" are ``None``."""
    return _number(text)


def count(row: Row, *names: str) -> int | None:
    """Read the first of these columns that holds a number."""
    numbers = (_number(row.get(name, "")) for name in names)
    return next((number for number in numbers if number is not None), None)


def _number(text: str) -> int | None:
    if not text.isascii() or not text.isdecimal() or len(text) > _DIGITS:
        return None
    return int(text) if int(text) < _NEVER else None


def has_started(job: Row) -> bool:
    """Whether the attempt ever held nodes; pending rows of 22.05 carry the CPUs that were only asked for."""
    return epoch(job.get("Start", "")) is not None and count(job, "AllocNodes", "NNodes") != 0


def is_running(job: Row) -> bool:
    """Whether it holds nodes now, as far as this row knows."""
    return has_started(job) and epoch(job.get("End", "")) is None


def not_measured(why: str) -> Usage:
    """Return the use of an attempt that no accounting row tells of."""
    nothing = dict.fromkeys(field.name for field in fields(Usage) if field.name != "notes")
    return Usage(**nothing, notes=(why,))


def usage(attempt: Attempt) -> Usage:
    """Compute an attempt's use from its rows alone."""
    job, notes = attempt.job, _Notes()
    started, running = has_started(job), is_running(job)
    elapsed = _elapsed(job) if started else None
    cpus = count(job, "AllocCPUS", "NCPUS") if started else None
    core_s = None if elapsed is None or cpus is None else elapsed * cpus
    if running:
        notes.add("still running: time and cost are so far, CPU and memory are not known yet")
    cpu_s = _cpu_seconds(attempt) if started and not running else None
    memory = _memory(attempt, notes, measured=started and not running)
    gpus = _gpus(job, notes) if started else None
    limit = limit_seconds(job.get("TimelimitRaw", ""), job.get("Timelimit", ""))
    _mark_long_steps(attempt.steps, elapsed, notes)
    return Usage(
        elapsed_s=elapsed,
        alloc_cpus=cpus,
        cpu_s=cpu_s,
        cpu_efficiency=notes.share("CPU efficiency", cpu_s, core_s),
        memory_used_bytes=memory.used,
        memory_asked_bytes=memory.asked,
        memory_allocated_bytes=memory.allocated,
        memory_efficiency=notes.share("memory efficiency", memory.used, memory.whole),
        time_efficiency=notes.share("time efficiency", elapsed, None if limit == UNLIMITED else limit),
        gpu_count=gpus,
        gpu_hours=None if gpus is None or elapsed is None else gpus * elapsed / 3600,
        cpu_hours=None if core_s is None else core_s / 3600,
        notes=notes.told(),
    )


class _Notes:
    """Collects caveats while numbers are computed."""

    def __init__(self) -> None:
        self._texts: list[str] = []

    def add(self, text: str) -> None:
        if text not in self._texts:
            self._texts.append(text)

    def share(self, what: str, part: float | None, whole: float | None) -> float | None:
        """Divide; what is over 1 is clipped, and never in silence."""
        if part is None or not whole:
            return None
        value = part / whole
        if value > 1:
            self.add(f"{what} {value:.1%} shown as 100 %")
        return min(value, 1.0)

    def told(self) -> tuple[str, ...]:
        return tuple(self._texts)


@dataclass(frozen=True, slots=True)
class _Memory:
    used: int | None
    asked: int | None
    allocated: int | None

    @property
    def whole(self) -> int | None:
        return self.allocated or self.asked


def _elapsed(job: Row) -> float | None:
    value = seconds(job.get("ElapsedRaw", ""))
    return seconds(job.get("Elapsed", "")) if value is None else value


def _cpu_seconds(attempt: Attempt) -> float | None:
    """Total of the job row, else of its steps. Exactly 0 means that nothing was gathered: a process costs something."""
    total = seconds(attempt.job.get("TotalCPU", ""))
    if not total:
        total = sum(seconds(step.get("TotalCPU", "")) or 0.0 for step in attempt.steps)
    return total or None


def _memory(attempt: Attempt, notes: _Notes, *, measured: bool) -> _Memory:
    job = attempt.job
    nodes = count(job, "AllocNodes", "NNodes")
    asked = tres(job.get("ReqTRES", "")).get("mem") or requested_memory(
        job.get("ReqMem", ""), nodes=nodes, cpus=count(job, "AllocCPUS", "NCPUS")
    )
    allocated = tres(job.get("AllocTRES", "")).get("mem") if has_started(job) else None
    if asked and allocated and allocated > asked:
        notes.add("more memory was allocated than asked for (whole nodes): the share is of the allocation")
    used = _peak(attempt.steps, nodes, notes) if measured else None
    return _Memory(used, asked or None, allocated or None)


def _peak(steps: Sequence[Row], job_nodes: int | None, notes: _Notes) -> int | None:
    """The largest step's peak. Steps are never summed: they may have run one after the other."""
    peaks: list[int] = []
    seen: list[Row] = []
    for step in steps:
        exact = tres(step.get("TRESUsageInTot", "")).get("mem")
        value = exact or _from_largest_task(step)
        if value:  # 0 is what Slurm prints for a step that ended before the first sample
            peaks.append(value)
            seen.append(step)
            if not exact and (count(step, "NTasks") or 1) > 1:
                notes.add("memory is MaxRSS x NTasks, an upper bound (no TRESUsageInTot)")
    if not peaks:
        return None
    covered = _nodes_covered(seen)
    if job_nodes and covered and covered < job_nodes:
        notes.add(f"only {covered} of {job_nodes} nodes had a measured step")
    return max(peaks)


def _from_largest_task(step: Row) -> int | None:
    largest, tasks = bytes_of(step.get("MaxRSS", "")), count(step, "NTasks")
    return None if largest is None else largest * (tasks or 1)


def _nodes_covered(steps: Sequence[Row]) -> int | None:
    names: set[str] = set()
    for step in steps:
        of_step = node_names(step.get("NodeList", ""))
        if of_step is None:
            counts = [count(one, "AllocNodes", "NNodes") for one in steps]
            return max((number for number in counts if number is not None), default=None)
        names |= of_step
    return len(names)


def _gpus(job: Row, notes: _Notes) -> int | None:
    """Whole GPUs: ``gres/gpu`` (its typed twins count the same devices), else the typed ones. Slices stand apart."""
    held = tres(job.get("AllocTRES", ""))
    typed = {name: number for name, number in held.items() if name.startswith("gres/gpu:")}
    slices = sum(number for name, number in typed.items() if _MIG_SLICE.search(name))
    total = held.get("gres/gpu", sum(typed.values()))
    if slices:
        notes.add(f"{slices} MIG slices are not counted as GPUs")
    if held.get("gres/shard"):
        notes.add(f"{held['gres/shard']} GPU shards are not counted as GPUs")
    if not total and any(name.startswith("gres/gpu") for name in tres(job.get("ReqTRES", ""))):
        notes.add("GPUs were asked for and none is recorded as allocated")
    return max(total - slices, 0) or None


def _mark_long_steps(steps: Sequence[Row], elapsed: float | None, notes: _Notes) -> None:
    """On 22.05 a fast requeue keeps the row and restarts its clock, but not its batch step's."""
    if elapsed is None:
        return
    longest = max((value for step in steps if (value := _elapsed(step)) is not None), default=0.0)
    if longest > elapsed + _CLOCK_SLACK_S:
        notes.add(f"a step ran {longest:.0f} s, longer than the job's {elapsed:.0f} s: requeued within one record")
