"""Rows about sweeps, and what a person is told of one in a line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime

from outerloop_hpc.cli.output import Column
from outerloop_hpc.engine import runs, watch
from outerloop_hpc.engine.layout import Layout, parse_run_id
from outerloop_hpc.engine.spec import RunSpec
from outerloop_hpc.engine.state import RunState
from outerloop_hpc.errors import Exit, OuterloopError
from outerloop_hpc.evolve.gate.differences import shown
from outerloop_hpc.evolve.promotion import PROMOTED
from outerloop_hpc.evolve.standing import Standing, standing
from outerloop_hpc.evolve.work import KIND, work_of

SWEEP_COLUMNS = (
    Column("run", "run id"),
    Column("name", "name in the sweep file"),
    Column("target", "target of the configuration", shown=False),
    Column("phase", "new, running, parked, ended, closed or faulty"),
    Column("generation", "newest one, from 0"),
    Column("stage", "propose, screen, confirm or pilot"),
    Column("done", "cells with a result"),
    Column("failed", "of them: an arm failed"),
    Column("lost", "cells without a result for good"),
    Column("running", "cells under way"),
    Column("waiting", "cells that wait to be submitted", shown=False),
    Column("cpu_hours", "measured by accounting so far"),
    Column("gpu_hours", "measured by accounting so far", shown=False),
    Column("gain", "best candidate of the newest stage, so far"),
    Column("pairs", "whole pairs that this rests on", shown=False),
    Column("ending", "the verdict's word"),
    Column("reason", "of the ending, the question or the fault", cut=True),
)

#: Exit statuses of verdicts; every other word is a sweep that finished without promotion.
_STATUSES: Mapping[str, Exit] = {
    PROMOTED: Exit.DONE,
    "piloted": Exit.DONE,
    "proposer gave up": Exit.PARTLY_FAILED,
    "harness broken": Exit.HARNESS_BROKEN,
    "halted": Exit.HALTED,
}


def verdict_status(state: RunState) -> Exit:
    """Return the exit status of a sweep: 0 promoted, 3 finished without, 10 under way, 20 waits for a person."""
    if state.ended is not None:
        return _STATUSES.get(state.ended.ending, Exit.FINDINGS)
    return Exit.WAITS_FOR_PERSON if state.parked is not None else Exit.IN_PROGRESS


def sweep_rows(layout: Layout, now: datetime, *, everything: bool) -> Iterator[Mapping[str, object]]:
    """Yield a row for each live sweep, or for every one that is there, newest first."""
    names = [run for run in (_every(layout) if everything else runs.live(layout)) if _is_sweep(run)]
    for run_id in sorted(names, key=lambda one: parse_run_id(one).stamp, reverse=True):
        yield sweep_row(layout, run_id, now)


def _every(layout: Layout) -> Iterator[str]:
    return (folder.run_id for folder in runs.every(layout))


def _is_sweep(run_id: str) -> bool:
    return run_id.startswith(f"{KIND}-")


def sweep_row(layout: Layout, run_id: str, now: datetime) -> Mapping[str, object]:
    """Return a sweep's row; one that cannot be read says so."""
    try:
        run = watch.load(layout, run_id)
        return {"run": run_id, **_cells(run.spec, run.state, now)}
    except OuterloopError as error:
        return {"run": run_id, "phase": "faulty", "reason": str(error)}


def _cells(spec: RunSpec, state: RunState, now: datetime) -> Mapping[str, object]:
    work, found = work_of(spec), standing(spec, state, now)
    reason = state.ended.reason if state.ended else state.parked.question if state.parked else ""
    return {
        "name": work.name,
        "target": spec.target,
        "phase": state.phase,
        "generation": found.generation,
        "stage": found.stage,
        "done": found.done,
        "failed": found.failed,
        "lost": found.lost,
        "running": found.running,
        "waiting": found.waiting,
        "cpu_hours": round(found.spend.cpu_hours, 4),
        "gpu_hours": round(found.spend.gpu_hours, 4),
        "gain": None if found.gain is None else round(found.gain, 6),
        "pairs": found.pairs,
        "ending": state.ended.ending if state.ended else "",
        "reason": reason,
    }


def said(spec: RunSpec, found: Standing) -> str:
    """Say in a line how a sweep stands."""
    where = f"generation {found.generation}, {found.stage or 'not begun'}"
    cells = f"{found.done} of {found.cells} cells done"
    parts = [where, cells, f"{found.running} running"]
    others = ((found.waiting, "to be submitted"), (found.failed, "with a failed arm"), (found.lost, "lost"))
    parts += [f"{count} {word}" for count, word in others if count]
    parts.append(f"{found.spend.cpu_hours:.3g} CPU hours")
    # A pilot's pairs are of the incumbent beside itself: there is nothing to gain.
    if found.gain is not None and found.best:
        scale = work_of(spec).gate.primary.scale
        parts.append(f"best {found.best[:12]}: a gain of {shown(scale, found.gain)} over {found.pairs} pairs")
    return ", ".join(parts)
