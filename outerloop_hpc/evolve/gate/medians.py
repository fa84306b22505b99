"""``medians-v5``: the rule of the reference implementation, for comparison and never the default. Pure.

It compares medians of each task with fixed bars, knows nothing of spread or chance, and rounds improvements to a tenth
of a percent before it compares them; all that is kept, since it is what the comparison is about.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from outerloop_hpc.evolve.gate.decision import GateDecision, TaskFound, Word
from outerloop_hpc.evolve.gate.evidence import Evidence, Row, digits
from outerloop_hpc.evolve.gate.paired import harness
from outerloop_hpc.evolve.gate.pairs import Reading
from outerloop_hpc.evolve.gate.policy import GatePolicy, Metric

_MIN_RUNS = 3
_FAILED_TASK_REGRESSION = 100.0
_CLEAR_LEAD = 2


@dataclass(frozen=True, slots=True)
class TaskMedians:
    """One task: valid runs and those resolved, of incumbent and candidate; ``improvement`` in percent if measured."""

    task: str
    runs: tuple[int, int]
    resolved: tuple[int, int]
    excluded: tuple[int, int]
    improvement: float | None

    @property
    def measured(self) -> bool:
        """Whether both arms have the same number of runs, enough of them, and lost none."""
        return min(self.runs) >= _MIN_RUNS and self.runs[0] == self.runs[1] and not any(self.excluded)

    @property
    def gated(self) -> bool:
        """Whether the task takes part: not when both arms failed it in every run."""
        return not (self.measured and not any(self.resolved) and self.improvement is not None)


def decide(policy: GatePolicy, evidence: Evidence, given: Mapping[str, Any]) -> GateDecision:
    """Decide by medians; ``given`` are the document's fields that say what was asked."""
    tasks = medians(policy, evidence)
    word, reasons = rule(policy, evidence, tasks)
    lead = improvement(tasks)
    return GateDecision(
        **given,
        decision=word,
        reasons=reasons,
        gain=None if lead is None else digits(lead / 100),
        found=tuple(_found(task) for task in tasks),
        rows=evidence.rows,
    )


def medians(policy: GatePolicy, evidence: Evidence) -> tuple[TaskMedians, ...]:
    """Return what the rule looks at, by task."""
    return tuple(
        _medians(policy, task.task, [row for row in evidence.rows if row.pair.task == task.task])
        for task in evidence.tasks
    )


def improvement(tasks: Sequence[TaskMedians]) -> float | None:
    """Return the median improvement of the gated tasks, in percent."""
    found = [task.improvement for task in tasks if task.gated and task.improvement is not None]
    return median(found) if found else None


def rule(policy: GatePolicy, evidence: Evidence, tasks: Sequence[TaskMedians]) -> tuple[Word, tuple[str, ...]]:
    """Return the decision and its reasons."""
    if broken := harness(evidence):
        return "harness_broken", (broken,)
    if insufficient := list(_insufficient(tasks)):
        return "insufficient_evidence", tuple(insufficient)
    if vetoes := list(_vetoes(policy, tasks)):
        return "keep_incumbent", tuple(vetoes)
    lead = sum(task.resolved[1] - task.resolved[0] for task in tasks)
    if lead >= _CLEAR_LEAD:
        return "promote", (f"the candidate resolved {lead} runs more",)
    gained, asked = improvement(tasks), 100 * policy.primary.min_effect
    if gained is not None and gained >= asked:
        return "promote", (f"the median improvement is {gained:g} %, at least {asked:g} %",)
    return "keep_incumbent", (f"the median improvement is {gained} %, below {asked:g} %",)


def _insufficient(tasks: Sequence[TaskMedians]) -> Iterator[str]:
    gated = [task for task in tasks if task.gated]
    for task in gated:
        if not task.measured:
            yield f"task {task.task} was not fully measured: {task.runs[0]} and {task.runs[1]} valid runs"
        elif task.improvement is None:
            yield f"task {task.task} has no metric to compare"
    if not gated or 2 * len(gated) < len(tasks):
        yield f"{len(gated)} of {len(tasks)} tasks are gated, and half of them are needed"


def _vetoes(policy: GatePolicy, tasks: Sequence[TaskMedians]) -> Iterator[str]:
    for task in tasks:
        gained = 0.0 if task.improvement is None else task.improvement
        if not task.gated:
            if gained < -_FAILED_TASK_REGRESSION:
                yield f"task {task.task}: {gained:g} % although neither arm resolved it"
            continue
        if task.resolved[1] < task.resolved[0]:
            yield f"task {task.task}: the candidate resolved fewer runs"
        elif task.resolved[0] and task.resolved[1] < task.runs[1]:
            yield f"task {task.task}: the candidate did not resolve every run"
        if gained < -100 * policy.max_task_regression:
            yield f"task {task.task}: {gained:g} % is worse than the cap"


def _medians(policy: GatePolicy, task: str, rows: Sequence[Row]) -> TaskMedians:
    arms = ([row.pair.incumbent for row in rows], [row.pair.candidate for row in rows])
    valid = [[reading for reading in arm if reading.word != "missing"] for arm in arms]
    incumbent, candidate = valid
    return TaskMedians(
        task,
        (len(incumbent), len(candidate)),
        (_resolved(incumbent), _resolved(candidate)),
        (len(rows) - len(incumbent), len(rows) - len(candidate)),
        _improvement(policy.primary, _middle(policy, incumbent), _middle(policy, candidate)),
    )


def _resolved(readings: Sequence[Reading]) -> int:
    return sum(reading.word == "measured" and reading.success is not False for reading in readings)


def _middle(policy: GatePolicy, readings: Sequence[Reading]) -> float | None:
    """Return the median metric; one run without it makes it unknown."""
    values = [reading.metrics.get(policy.primary.name, math.nan) for reading in readings]
    return median(values) if values and all(math.isfinite(value) for value in values) else None


def _improvement(metric: Metric, incumbent: float | None, candidate: float | None) -> float | None:
    if incumbent is None or candidate is None or incumbent <= 0:
        return None
    share = (incumbent - candidate if metric.direction == "min" else candidate - incumbent) / incumbent
    percent = 100 * share
    return round(percent, 1) if math.isfinite(percent) else None


def _found(task: TaskMedians) -> TaskFound:
    return TaskFound(
        task=task.task,
        gated=task.gated,
        pairs=min(task.runs),
        compared=0 if task.improvement is None else min(task.runs),
        incumbent_solved=task.resolved[0],
        candidate_solved=task.resolved[1],
        gain=None if task.improvement is None else digits(task.improvement / 100),
    )
