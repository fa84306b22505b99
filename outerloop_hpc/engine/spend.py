"""What a run has used of the cluster, from the accounting rows that were archived. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from outerloop_hpc.engine.state import RunState
from outerloop_hpc.slurm.port import AccountingRow
from outerloop_hpc.slurm.quantities import tres


@dataclass(frozen=True, slots=True)
class Used:
    """Of one submission, all attempts together: seconds of CPUs and of GPUs held; ``None`` is not measured."""

    cpu_s: float | None = None
    gpu_s: float | None = None


@dataclass(frozen=True, slots=True)
class Spend:
    """What a run has used, in hours.

    Attributes:
        cpu_hours, gpu_hours: measured: of submissions whose accounting is archived.
        asked_cpu_hours, asked_gpu_hours: the most that the others can use, by their walltimes: they are under way, or
            accounting never told.
        by_job: the measured CPU and GPU hours of each kind of step.
        settling: whether accounting of what has ended is still awaited, so that the upper bound will come down.
    """

    cpu_hours: float = 0.0
    gpu_hours: float = 0.0
    asked_cpu_hours: float = 0.0
    asked_gpu_hours: float = 0.0
    settling: bool = False
    by_job: Mapping[str, tuple[float, float]] = field(default_factory=dict)


def used(rows: Iterable[AccountingRow]) -> Used:
    """Add up what allocations held; rows of steps say nothing about that. Nothing is measured without any row."""
    cpu_s: float | None = None
    gpu_s: float | None = None
    for row in rows:
        if row.step:
            continue
        elapsed, cpus = row.columns.get("ElapsedRaw", ""), row.columns.get("AllocCPUS", "")
        if not (elapsed.isdecimal() and cpus.isdecimal()):
            continue
        held = 0 if row.start is None else int(elapsed)
        cpu_s = (cpu_s or 0.0) + held * int(cpus)
        gpu_s = (gpu_s or 0.0) + held * _gpus(row.columns.get("AllocTRES", ""))
    return Used(cpu_s, gpu_s)


def _gpus(text: str) -> int:
    found = tres(text)
    typed = sum(count for name, count in found.items() if name.startswith("gres/gpu:"))
    return found.get("gres/gpu", typed)


def spend_of(state: RunState) -> Spend:
    """Add up a run. What never became a job has cost nothing."""
    cpu = gpu = asked_cpu = asked_gpu = 0.0
    settling = False
    by_job: dict[str, tuple[float, float]] = defaultdict(lambda: (0.0, 0.0))
    open_names = {submission.name for _, _, submission in state.open_tries()}
    for name, one in state.submissions.items():
        if one.status in {"refused", "abandoned"}:
            continue
        settling = settling or (name not in open_names and not one.archived)
        if one.archived and one.cpu_s is not None:
            held = (one.cpu_s / 3600, (one.gpu_s or 0.0) / 3600)
            cpu, gpu = cpu + held[0], gpu + held[1]
            # An array holds steps of one kind.
            job = state.steps[one.elements[0].step].spec.job
            by_job[job] = (by_job[job][0] + held[0], by_job[job][1] + held[1])
            continue
        hours = one.resources.minutes * len(one.elements) / 60
        asked_cpu += hours * one.resources.cpus
        asked_gpu += hours * one.resources.gpus
    return Spend(cpu, gpu, asked_cpu, asked_gpu, settling, dict(by_job))
