"""Reports as rows: column names with their meaning, and values whose unit is in the column's name (pure)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Final

from outerloop_hpc.report.costs import Cost
from outerloop_hpc.report.formulas import FORMULAS
from outerloop_hpc.report.jobs import JobReport
from outerloop_hpc.report.runs import RunReport

Row = Mapping[str, object]

_USAGE: Final = (
    "elapsed_s",
    "alloc_cpus",
    "cpu_s",
    "cpu_hours",
    "gpu_count",
    "gpu_hours",
    "time_efficiency",
    "cpu_efficiency",
    "memory_used_bytes",
    "memory_asked_bytes",
    "memory_allocated_bytes",
    "memory_efficiency",
)

#: Columns of ``report jobs`` and their meaning; a formula where there is one.
JOB_COLUMNS: Final[Mapping[str, str]] = {
    "job_id": "job or array element, as sacct shows it",
    "run_id": "run that it belongs to",
    "submission": "name of the submission",
    "name": "job name",
    "user": "who submitted it",
    "account": "account that pays",
    "partition": "partition",
    "qos": "quality of service",
    "cluster": "cluster",
    "compute": "slurm or local",
    "outcome": "completed, failed, cancelled, running, waiting, requeued or rejected",
    "state": "Slurm's word, without who cancelled it",
    "exit_code": "status:signal, as this Slurm version prints it",
    "submitted_at": "submission (of this attempt, after a requeue)",
    "started_at": "start",
    "ended_at": "end",
    **{name: FORMULAS.get(name, "CPUs held") for name in _USAGE},
    "restarts": "how often Slurm restarted it, where Slurm says so",
    "nodes": "nodes held",
    "notes": "what to know before these numbers are believed",
    "source": "file from which these numbers can be recomputed",
}
#: Those shown when nobody chooses.
JOB_SHOWN: Final = (
    "job_id",
    "run_id",
    "outcome",
    "state",
    "elapsed_s",
    "time_efficiency",
    "cpu_efficiency",
    "memory_efficiency",
    "memory_used_bytes",
    "nodes",
    "cpu_hours",
    "gpu_hours",
    "notes",
)

#: Columns of ``report runs`` and their meaning.
RUN_COLUMNS: Final[Mapping[str, str]] = {
    "run_id": "the run",
    "attempts": "attempts of all its jobs; the seven counts add up to it",
    "completed": "ended well",
    "failed": "ended otherwise (failure, time, memory, node, deadline)",
    "cancelled": "cancelled",
    "running": "hold nodes now",
    "waiting": "not started",
    "requeued": "followed by another attempt",
    "rejected": "refused by Slurm at submission",
    **{
        name: FORMULAS[name]
        for name in (
            "success_rate",
            "elapsed_s",
            "cpu_hours",
            "gpu_hours",
            "cpu_efficiency",
            "memory_peak_bytes",
        )
    },
    "notes": "what to know before these numbers are believed, each with how many attempts it holds for",
    "sources": "files from which these numbers can be recomputed",
}
RUN_SHOWN: Final = tuple(name for name in RUN_COLUMNS if name not in {"waiting", "rejected", "elapsed_s", "sources"})

#: Columns of ``report costs`` beside the keys that it is grouped by.
COST_COLUMNS: Final[Mapping[str, str]] = {
    "attempts": "attempts that touch this group; one that touches two months is in both",
    "cpu_hours": FORMULAS["cpu_hours"],
    "gpu_hours": FORMULAS["gpu_hours"],
}


def job_row(job: JobReport, run_id: str = "") -> Row:
    """Turn a job report into a row of ``JOB_COLUMNS``."""
    usage = job.usage
    return {
        "job_id": job.job_id,
        "run_id": run_id or None,
        "submission": job.submission,
        "name": job.name,
        "user": job.user,
        "account": job.account,
        "partition": job.partition,
        "qos": job.qos,
        "cluster": job.cluster,
        "compute": job.compute,
        "outcome": job.outcome.value,
        "state": job.state,
        "exit_code": job.exit_code,
        "submitted_at": _time(job.submit),
        "started_at": _time(job.start),
        "ended_at": _time(job.end),
        **{name: getattr(usage, name) for name in _USAGE},
        "restarts": job.restarts,
        "nodes": job.nodes,
        "notes": "; ".join(usage.notes),
        "source": job.source,
    }


def run_row(run: RunReport) -> Row:
    """Turn a run report into a row of ``RUN_COLUMNS``."""
    return {**asdict(run), "notes": "; ".join(run.notes), "sources": run.sources}


def cost_row(cost: Cost, by: Sequence[str]) -> Row:
    """Turn a cost into a row of the keys that it was grouped by and ``COST_COLUMNS``."""
    return {
        **dict(zip(by, cost.group, strict=True)),
        "attempts": cost.attempts,
        "cpu_hours": cost.cpu_hours,
        "gpu_hours": cost.gpu_hours,
    }


def _time(epoch: int | None) -> datetime | None:
    return None if epoch is None else datetime.fromtimestamp(epoch, UTC)
