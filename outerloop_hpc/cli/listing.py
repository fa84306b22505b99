"""Rows about runs and tries for the lists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from outerloop_hpc.cli.output import Column
from outerloop_hpc.engine import runs, watch
from outerloop_hpc.engine.layout import Layout, RunFolder, element_file, parse_run_id
from outerloop_hpc.engine.records import LOG
from outerloop_hpc.engine.state import RunState
from outerloop_hpc.errors import OuterloopError, UsageError

RUN_COLUMNS = (
    Column("run", "run id"),
    Column("kind", "steward, benchmark, evolve or feature", shown=False),
    Column("target", "target of the configuration"),
    Column("phase", "new, running, parked, ended, closed or faulty"),
    Column("steps", "steps with a last word / all steps"),
    Column("ending", "the verdict's word"),
    Column("commit", "commit that it is about", shown=False),
    Column("made_at", "when it was made", shown=False),
    Column("reason", "of the ending, the question or the fault", cut=True),
)

TRY_COLUMNS = (
    Column("step", "step key"),
    Column("try", "number of the execution"),
    Column("job_id", "as the scheduler names it"),
    Column("outcome", "engine's word; empty while under way"),
    Column("rule", "line of the decision table"),
    Column("node", "where it ran"),
    Column("submission", "job name", shown=False),
    Column("log", "the job's log", shown=False),
    Column("reason", "why", cut=True),
)

_PHASES = ("new", "running", "parked", "ended", "closed", "faulty")


def run_rows(layout: Layout, *, everything: bool, states: str, target: str) -> Iterator[Mapping[str, object]]:
    """Yield one row per run.

    Raises:
        UsageError: an unknown phase.
    """
    wanted = tuple(word for word in states.split(",") if word)
    unknown = [word for word in wanted if word not in _PHASES]
    if unknown:
        raise UsageError(f"no phase {unknown[0]!r}; there are {', '.join(_PHASES)}")
    ids = [folder.run_id for folder in runs.every(layout)] if everything else runs.live(layout)
    for run_id in ids:
        row = _run_row(layout, run_id)
        if (not wanted or row["phase"] in wanted) and (not target or row.get("target") == target):
            yield row


def _run_row(layout: Layout, run_id: str) -> Mapping[str, object]:
    try:
        name = parse_run_id(run_id)
    except UsageError:
        return {"run": run_id, "phase": "faulty", "reason": "its live entry is not a run id; remove it"}
    row: dict[str, object] = {"run": run_id, "kind": name.kind, "target": name.target, "made_at": name.at}
    try:
        found = watch.load(layout, run_id)
        state = found.state
        row["commit"] = found.spec.commit
        trouble = watch.unreadable(found) if state.ended is None else ""
    except OuterloopError as fault:
        return {**row, "phase": "faulty", "reason": str(fault)}
    if trouble:
        return {**row, "phase": "faulty", "reason": trouble}
    settled = sum(1 for step in state.steps.values() if step.settled() is not None)
    row |= {"phase": state.phase, "steps": f"{settled}/{len(state.steps)}"}
    if state.ended is not None:
        row |= {"ending": state.ended.ending, "reason": state.ended.reason}
    elif state.parked is not None:
        row["reason"] = f"{state.parked.question} ({state.parked.reason})"
    return row


def try_rows(folder: RunFolder, state: RunState) -> Iterator[Mapping[str, object]]:
    """Yield one row per try of a run."""
    for step in state.steps.values():
        for one in step.tries:
            submission = state.submissions[one.submission]
            log = folder.submission(one.submission) / element_file(one.index, LOG)
            yield {
                "step": step.spec.key,
                "try": one.number,
                "job_id": submission.job_of(one.index),
                "outcome": one.outcome,
                "rule": one.rule,
                "node": one.node,
                "submission": one.submission,
                "log": str(log) if log.exists() else None,
                "reason": one.reason,
            }
