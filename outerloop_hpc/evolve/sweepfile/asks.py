"""What a sweep's jobs ask for, and what its gate goes by, from the sweep file and the contract. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from outerloop_hpc.engine.jobs import JobDefinition
from outerloop_hpc.engine.spec import ResourceAsk
from outerloop_hpc.errors import UsageError
from outerloop_hpc.evolve.gate import policy as policies
from outerloop_hpc.evolve.sweepfile.document import Sweep, is_time
from outerloop_hpc.evolve.sweepfile.ideas import Agent, Command
from outerloop_hpc.evolve.sweepfile.terms import Task
from outerloop_hpc.target.limits import Limits
from outerloop_hpc.target.terms import Benchmark

#: A proposer that only fills in values needs no more.
_FILLING_MINUTES = 5


@dataclass(frozen=True, slots=True)
class CellAsk:
    """What one array element of a task asks for; ``timeout_s`` of the task's command alone."""

    timeout_s: float
    resources: ResourceAsk


@dataclass(frozen=True, slots=True)
class Decided:
    """The gate's policy, or what keeps it from being made; ``name`` is the primary metric's where it is known."""

    name: str
    policy: policies.GatePolicy | None
    problems: tuple[str, ...] = ()


def unit_of(sweep: Sweep, metric: str) -> Literal["cell", "pair"]:
    """Return what one array element is: both arms on one node where the number depends on the node."""
    return sweep.unit or ("pair" if is_time(sweep, metric) else "cell")


def policy(sweep: Sweep, benchmarks: Mapping[str, Benchmark | None]) -> Decided:
    """Make the gate's policy.

    Args:
        sweep: the file.
        benchmarks: of the contract, by the id of each task that is measured; None for a command.
    """
    primary = sweep.metrics.primary
    brought = {task: one for task, one in benchmarks.items() if one is not None}
    names = {primary.name} if primary.name else {one.metric for one in brought.values()}
    if len(names) != 1:
        found = ", ".join(f"{task}: {one.metric}" for task, one in brought.items()) or "none"
        return Decided("", None, (f"metrics.primary.name: needed, since the tasks' benchmarks have {found}",))
    (name,) = names
    same = {task: one.direction for task, one in brought.items() if one.metric == name}
    directions = {*same.values(), *([primary.direction] if primary.direction else [])}
    if len(directions) != 1:
        found = ", ".join(f"{task}: {direction}" for task, direction in same.items()) or "none"
        said = f"the sweep says {primary.direction}, the contract {found}" if primary.direction else f"found {found}"
        return Decided(name, None, (f"metrics.primary.direction: one direction for {name!r} is needed; {said}",))
    (direction,) = directions
    metric = policies.Metric(name=name, direction=direction, scale=primary.scale, min_effect=primary.min_effect)
    return Decided(name, _policy(sweep, metric, [task for task in sweep.tasks if task.id in benchmarks]))


def _policy(sweep: Sweep, metric: policies.Metric, tasks: list[Task]) -> policies.GatePolicy:
    gate, given = sweep.gate, sweep.metrics.success
    flagged = any(task.success or task.oracle for task in tasks)
    success = policies.Success(**(given.model_dump() if given else {})) if flagged else None
    return policies.GatePolicy(
        kind=gate.kind,
        primary=metric,
        guardrails=tuple(policies.Guardrail(**one.model_dump()) for one in sweep.metrics.guardrails),
        success=success,
        repeats=policies.Repeats(**sweep.repeats.model_dump()),
        level=gate.level,
        generations=sweep.budget.generations,
        screen_level=gate.screen_level,
        max_task_regression=gate.max_task_regression,
        harm_level=gate.harm_level,
    )


def cell_ask(
    sweep: Sweep, task: Task, benchmark: Benchmark | None, job: JobDefinition, allowed: Limits, metric: str
) -> CellAsk:
    """Return limits and resources of one task's cells.

    Args:
        sweep: the file.
        task: one of its tasks.
        benchmark: the task's, when it names one.
        job: the definition of ``cell``.
        allowed: what the operator lets a measurement take.
        metric: the primary one.

    Raises:
        UsageError: more time than the operator allows, or a walltime that the work does not fit into.
    """
    timeout_s = task.timeout_s or (allowed.measurement_minutes(benchmark) * 60.0 if benchmark else 0.0)
    if timeout_s > allowed.eval_minutes * 60:
        raise UsageError(
            f"timeout_s: at most {allowed.eval_minutes * 60} s ([limits] eval_minutes), found {timeout_s:g}"
        )
    arms = 2 if unit_of(sweep, metric) == "pair" else 1
    setup_s = task.setup_timeout_s * len(task.setup)
    oracle_s = task.oracle.timeout_s if task.oracle else 0.0
    work = math.ceil(arms * (timeout_s + setup_s + oracle_s) / 60)
    given = task.resources
    gpus = given.gpus if given.gpus is not None else benchmark.gpus if benchmark else 0
    ask = job.ask(minutes=work, gpus=gpus, parallel=sweep.parallel)
    if given.minutes is not None and given.minutes < ask.minutes:
        raise UsageError(
            f"resources.minutes: at least {ask.minutes} ({arms} x ({timeout_s:g} s, setup {setup_s:g} s, hidden checks "
            f"{oracle_s:g} s), and {job.overhead_minutes} min around them), found {given.minutes}"
        )
    changes = {
        "cpus": given.cpus or ask.cpus,
        "memory_mb": given.memory_mb or ask.memory_mb,
        "minutes": given.minutes or ask.minutes,
        "options": {**ask.options, **given.options},
    }
    return CellAsk(timeout_s, ask.model_copy(update=changes))


def proposing_ask(sweep: Sweep, job: JobDefinition) -> ResourceAsk:
    """Return what the job that proposes one generation asks for."""
    proposer = sweep.proposer
    minutes = _FILLING_MINUTES
    if isinstance(proposer, Command | Agent):
        minutes = math.ceil(proposer.timeout_s * proposer.candidates / 60)
    return job.ask(minutes=minutes, gpus=0, parallel=0)
