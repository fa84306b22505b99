"""Rows about runs and tries for the lists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from outerloop_hpc.cli.output import Column
from outerloop_hpc.engine import runs, watch
from outerloop_hpc.engine.journal import Journal
from outerloop_hpc.engine.layout import Layout, RunFolder, element_file, parse_run_id
from outerloop_hpc.engine.records import LOG
from outerloop_hpc.engine.state import RunState
from outerloop_hpc.errors import OuterloopError, UsageError
from outerloop_hpc.report.costs import Window
from outerloop_hpc.report.select import words

RUN_COLUMNS = (
    Column("run", "run id"),
    Column("kind", "steward, benchmark, evolve or feature", shown=False),
    Column("target", "target of the configuration"),
    Column("phase", "new, running, parked, ended, closed or faulty"),
    Column("steps", "steps with a last word / all steps"),
    Column("ending", "the verdict's word"),
    Column("commit", "commit that it is about", shown=False),
    Column("made_at", "when it was made", shown=False),
    Column("made_by", "user who made it", shown=False),
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


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which runs to list; what is empty keeps all. What a row does not say is not what was asked for.

    Attributes:
        phases: words of ``_PHASES``.
        target: name of the target.
        window: when the run was made.
        users: who made it.
    """

    phases: frozenset[str]
    target: str
    window: Window
    users: frozenset[str]

    def named(self, run_id: str) -> bool:
        """Whether the id alone, which holds target and time, leaves the run in question."""
        try:
            name = parse_run_id(run_id)
        except UsageError:
            return not self.target and self.window == Window()
        return self.target in {"", name.target} and self._made_in_window(int(name.at.timestamp()))

    def keeps(self, row: Mapping[str, object]) -> bool:
        """Whether what was read of the run is what was asked for."""
        asked = ((self.phases, row["phase"]), (self.users, row.get("made_by")))
        return all(not wanted or value in wanted for wanted, value in asked)

    def _made_in_window(self, at: int) -> bool:
        start, end = self.window.start, self.window.end
        return (start is None or at >= start) and (end is None or at < end)


def phases(text: str) -> frozenset[str]:
    """Read a comma-separated list of phases.

    Raises:
        UsageError: an unknown phase.
    """
    found = words(text)
    unknown = sorted(found - set(_PHASES))
    if unknown:
        raise UsageError(f"no phase {unknown[0]!r}; there are {', '.join(_PHASES)}")
    return found


def run_rows(layout: Layout, wanted: Wanted, *, everything: bool) -> Iterator[Mapping[str, object]]:
    """Yield one row per run; documents are only read of runs that their id leaves in question."""
    ids = (folder.run_id for folder in runs.every(layout)) if everything else runs.live(layout)
    rows = (_run_row(layout, run_id) for run_id in ids if wanted.named(run_id))
    return (row for row in rows if wanted.keeps(row))


def _run_row(layout: Layout, run_id: str) -> Mapping[str, object]:
    try:
        name = parse_run_id(run_id)
    except UsageError:
        return {"run": run_id, "phase": "faulty", "reason": "its live entry is not a run id; remove it"}
    row: dict[str, object] = {"run": run_id, "kind": name.kind, "target": name.target, "made_at": name.at}
    try:
        # Before the journal: of a run whose journal is broken it is still known whose it is.
        spec = Journal(layout.run(run_id)).spec()
        row |= {"commit": spec.commit, "made_by": spec.made_by}
        found = watch.load(layout, run_id)
        state = found.state
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
