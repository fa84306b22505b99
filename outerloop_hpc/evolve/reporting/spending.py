"""What a sweep's stages and arms have used. What was not measured is ``None``, never nothing. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from outerloop_hpc.engine.spec import StepSpec
from outerloop_hpc.engine.state import NEVER_STARTED, RunState, Submission
from outerloop_hpc.evolve.cells import JOB
from outerloop_hpc.evolve.findings import ArmFound, cell_found
from outerloop_hpc.evolve.given import CellGiven


@dataclass(frozen=True, slots=True)
class Spent:
    """By accounting: what the jobs of a stage held, all tries together.

    Attributes:
        stage: ``propose``, ``screen``, ``confirm`` or ``pilot``.
        arms: whose cells they are; one array may hold those of both.
        unmeasured: submissions whose accounting is not archived, or never told.
        cpu_s, gpu_s: of the others.
    """

    stage: str
    arms: str
    submissions: int
    unmeasured: int
    cpu_s: float | None
    gpu_s: float | None


@dataclass(frozen=True, slots=True)
class ArmSpent:
    """By the cells' own records: what the commands of one arm took. ``cpu_s``, ``seconds``: of those measured."""

    stage: str
    arm: str
    executions: int
    seconds: float | None
    cpu_s: float | None


def spending(state: RunState) -> tuple[Spent, ...]:
    """Add up accounting by stage; accounting knows arrays, so an arm only where an array holds no other."""
    groups: dict[tuple[str, str], list[Submission]] = defaultdict(list)
    for one in state.submissions.values():
        if one.status in NEVER_STARTED:
            continue
        steps = [state.steps[element.step].spec for element in one.elements if element.step in state.steps]
        groups[_joined(map(_stage, steps)), _joined(arm for step in steps for arm in _arms(step))].append(one)
    return tuple(_spent(stage, arms, found) for (stage, arms), found in groups.items())


def _spent(stage: str, arms: str, found: list[Submission]) -> Spent:
    measured = [one for one in found if one.archived and one.cpu_s is not None]
    return Spent(
        stage,
        arms,
        len(found),
        len(found) - len(measured),
        _sum(one.cpu_s for one in measured),
        _sum(one.gpu_s for one in measured),
    )


def arm_spending(state: RunState) -> tuple[ArmSpent, ...]:
    """Add up what the records of cells say, by stage and arm."""
    groups: dict[tuple[str, str], list[ArmFound]] = defaultdict(list)
    for step in state.steps.values():
        last = step.last
        if step.spec.job != JOB or step.settled() != "record" or last is None or last.record_outcome != "completed":
            continue
        found = cell_found(step.payload)
        for arm in found.arms if found is not None else ():
            groups[_stage(step.spec), arm.arm].append(arm)
    return tuple(
        ArmSpent(
            stage,
            arm,
            len(taken),
            # An execution that took no time at all did not come to its command.
            _sum(one.seconds or None for one in taken),
            _sum(one.cpu_s or None for one in taken),
        )
        for (stage, arm), taken in sorted(groups.items())
    )


def _stage(step: StepSpec) -> str:
    return str(step.parameters.get("stage", "")) if step.job == JOB else step.job


def _arms(step: StepSpec) -> tuple[str, ...]:
    return CellGiven.model_validate(step.parameters).arms if step.job == JOB else ()


def _joined(words: Iterable[str]) -> str:
    return " and ".join(sorted(set(words), reverse=True))


def _sum(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
