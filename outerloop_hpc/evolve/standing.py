"""How a sweep stands now: its generation and stage, cells, spend and the estimate so far. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from outerloop_hpc.engine.kind import Outcome, view_of
from outerloop_hpc.engine.spec import RunSpec, StepSpec
from outerloop_hpc.engine.spend import Spend, spend_of
from outerloop_hpc.engine.state import RunState
from outerloop_hpc.evolve.cells import JOB
from outerloop_hpc.evolve.findings import ArmFound, CellFound, cell_found
from outerloop_hpc.evolve.gate.differences import difference, gain
from outerloop_hpc.evolve.given import CellGiven
from outerloop_hpc.evolve.work import EvolveWork, work_of


@dataclass(frozen=True, slots=True)
class Standing:
    """One sweep.

    Attributes:
        generation: the newest one, from 0. stage: ``propose``, ``screen``, ``confirm`` or ``pilot``; empty before any.
        cells: of the whole sweep: with a result, an arm of theirs failed, without one for good, under way, waiting.
        best: candidate of the newest stage with the best estimate. gain: that estimate, of whole pairs so far.
    """

    generation: int
    stage: str
    done: int
    failed: int
    lost: int
    running: int
    waiting: int
    spend: Spend
    best: str = ""
    gain: float | None = None
    pairs: int = 0

    @property
    def cells(self) -> int:
        """All of them."""
        return self.done + self.lost + self.running + self.waiting


def standing(spec: RunSpec, state: RunState, now: datetime) -> Standing:
    """Say how a sweep stands."""
    work = work_of(spec)
    view = view_of(lambda: spec, state, now)
    cells = [step for step in view.steps.values() if step.job == JOB]
    open_ = {step.spec.key for step, _, _ in state.open_tries()}
    outcomes = {step.key: view.outcomes[step.key] for step in cells if step.key in view.outcomes}
    read = {key: cell_found(one.payload) for key, one in outcomes.items() if _has_result(one)}
    found = {key: one for key, one in read.items() if one is not None}
    last = next(reversed(list(view.steps.values())), None)
    stage = "" if last is None else str(last.parameters.get("stage", "propose"))
    best, estimate, pairs = _best(work, [s for s in cells if last and _same_stage(s, last)], found)
    return Standing(
        generation=0 if last is None else last.round,
        stage=stage,
        done=len(found),
        failed=sum(any(arm.word != "measured" for arm in one.arms) for one in found.values()),
        lost=len(outcomes) - len(found),
        running=sum(step.key in open_ for step in cells),
        waiting=sum(step.key not in open_ and step.key not in outcomes for step in cells),
        spend=spend_of(state),
        best=best,
        gain=estimate,
        pairs=pairs,
    )


def _has_result(outcome: Outcome) -> bool:
    return outcome.word == "record" and outcome.record_outcome == "completed"


def _same_stage(step: StepSpec, last: StepSpec) -> bool:
    return (step.round, step.parameters.get("stage")) == (last.round, last.parameters.get("stage"))


def _best(work: EvolveWork, steps: list[StepSpec], found: Mapping[str, CellFound]) -> tuple[str, float | None, int]:
    """Return the best candidate of a stage so far, its gain and its whole pairs; each task counts alike."""
    arms: dict[tuple[str, int, str, str], ArmFound] = {}
    for step in steps:
        cell = CellGiven.model_validate(step.parameters)
        for arm in found[step.key].arms if step.key in found else ():
            arms[
                cell.task, cell.repeat, cell.overlay if work.unit == "pair" or arm.arm == "candidate" else "", arm.arm
            ] = arm
    differences: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for (task, repeat, overlay, name), arm in arms.items():
        beside = arms.get((task, repeat, overlay if work.unit == "pair" else "", "incumbent"))
        if name == "candidate" and beside is not None and (d := _difference(work, beside, arm)) is not None:
            differences[overlay][task].append(d)
    means = {
        digest: sum(sum(ds) / len(ds) for ds in tasks.values()) / len(tasks) for digest, tasks in differences.items()
    }
    if not means:
        return "", None, 0
    best = max(means, key=lambda digest: means[digest])
    pairs = sum(len(ds) for ds in differences[best].values())
    return best, gain(work.gate.primary.scale, means[best]), pairs


def _difference(work: EvolveWork, incumbent: ArmFound, candidate: ArmFound) -> float | None:
    name = work.gate.primary.name
    if any(arm.word != "measured" or arm.success is False for arm in (incumbent, candidate)):
        # The gate compares only what both arms solved; a wrong answer is easily fast.
        return None
    if name not in incumbent.metrics or name not in candidate.metrics:
        return None
    return difference(work.gate.primary, incumbent.metrics[name], candidate.metrics[name])
