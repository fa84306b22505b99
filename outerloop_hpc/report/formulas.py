"""How every computed column is computed, in words that are printed with the report (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

#: Column to formula, in the names of sacct's columns. Nothing else is used.
FORMULAS: Final[Mapping[str, str]] = {
    "elapsed_s": "Elapsed (without suspended time); of a run: the sum over its attempts",
    "cpu_s": "TotalCPU of the job, else the sum over its steps",
    "cpu_hours": "AllocCPUS x Elapsed",
    "cpu_efficiency": "TotalCPU / (AllocCPUS x Elapsed); of several attempts: sum / sum over the measured ones",
    "memory_used_bytes": "the largest step: TRESUsageInTot mem, else MaxRSS x NTasks; steps are not added",
    "memory_asked_bytes": "ReqTRES mem, else ReqMem",
    "memory_allocated_bytes": "AllocTRES mem",
    "memory_efficiency": "memory used / AllocTRES mem (else / memory asked for)",
    "memory_peak_bytes": "the largest attempt's memory used",
    "time_efficiency": "Elapsed / Timelimit; none for UNLIMITED",
    "gpu_count": "AllocTRES gres/gpu, else the sum of gres/gpu:<type>; MIG slices and shards are not GPUs",
    "gpu_hours": "GPUs x Elapsed",
    "success_rate": "completed / (completed + failed); requeued, cancelled and rejected attempts are in neither",
}

NOT_MEASURED: Final = '"-" is not measured, never 0'


def footer(columns: Iterable[str], window: str = "") -> tuple[str, ...]:
    """List the formulas of the columns that are shown, and the window that the report covers.

    Args:
        columns: names of the columns shown.
        window: the window in words; printed always, since a silent default window has surprised everyone.
    """
    lines = [f"{name} = {FORMULAS[name]}" for name in columns if name in FORMULAS]
    if lines:
        lines.append(NOT_MEASURED)
    return (*((f"window: {window}",) if window else ()), *lines)
