"""What the numbers say, before any rule: estimates, intervals and p values of tasks, success and guardrails. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from outerloop_hpc.evolve.gate import exact, levels
from outerloop_hpc.evolve.gate.decision import SuccessFound
from outerloop_hpc.evolve.gate.differences import allowed
from outerloop_hpc.evolve.gate.estimate import Estimate, estimate
from outerloop_hpc.evolve.gate.evidence import Evidence, TaskEvidence
from outerloop_hpc.evolve.gate.flips import p_value, smallest_p
from outerloop_hpc.evolve.gate.policy import GatePolicy, Guardrail


@dataclass(frozen=True, slots=True)
class TaskAssessed:
    """One task; the p values are adjusted over the tasks that were tested. ``own`` needs two differences."""

    evidence: TaskEvidence
    gated: bool
    differences: tuple[float, ...]
    own: Estimate | None = None
    p_harm: float | None = None
    beyond: bool = False
    p_fails: float | None = None


@dataclass(frozen=True, slots=True)
class GuardrailAssessed:
    """``limit``: the d that it may go down to; ``sure``: the harm beyond it is significant."""

    policy: Guardrail
    overall: Estimate
    bound: float
    limit: float
    sure: bool


@dataclass(frozen=True, slots=True)
class Assessment:
    """All numbers of a look, none of them rounded.

    ``overall`` and ``p`` are None, and ``thin`` says why, where a gated task has too few differences or all tasks
    together have too few to reach ``metric_level``.
    """

    tasks: tuple[TaskAssessed, ...]
    level: float
    metric_level: float
    overall: Estimate | None
    p: float | None
    thin: str
    success: SuccessFound
    guardrails: tuple[GuardrailAssessed, ...]

    @property
    def gated(self) -> tuple[TaskAssessed, ...]:
        """The tasks that take part."""
        return tuple(task for task in self.tasks if task.gated)


def assess(policy: GatePolicy, evidence: Evidence, level: float, salt: str) -> Assessment:
    """Compute everything that the rules look at; ``salt`` is for draws, where there are too many sign patterns."""
    tasks = _tasks(policy, evidence, salt)
    gated = [task for task in tasks if task.gated]
    success = _success(policy, gated, level)
    metric_level = level - success.level
    samples = [task.differences for task in gated]
    thin = _thin(gated, metric_level)
    overall = None if thin else estimate(samples)
    p = None if thin else p_value(_weights(samples), f"{salt}|primary")
    guardrails = () if thin else tuple(_guardrail(one, gated, level) for one in policy.guardrails)
    return Assessment(tasks, level, metric_level, overall, p, thin, success, guardrails)


def _tasks(policy: GatePolicy, evidence: Evidence, salt: str) -> tuple[TaskAssessed, ...]:
    gated = {task.task for task in evidence.tasks if task.incumbent_solved or task.candidate_solved}
    samples = {task.task: task.differences(policy.primary.name) for task in evidence.tasks}
    tested = [name for name, values in samples.items() if len(values) >= levels.LEAST_A_TASK]
    raw = [p_value([-value for value in samples[name]], f"{salt}|harm|{name}") for name in tested]
    harms = dict(zip(tested, exact.holm(raw), strict=True))
    fails = _fails(policy, [task for task in evidence.tasks if task.task in gated])
    limit = allowed(policy.primary.scale, policy.max_task_regression)
    found = []
    for task in evidence.tasks:
        values = samples[task.task]
        own = estimate([values]) if task.task in harms else None
        beyond = own is not None and own.mean < limit
        harm, failing = harms.get(task.task), fails.get(task.task)
        found.append(TaskAssessed(task, task.task in gated, values, own, harm, beyond, failing))
    return tuple(found)


def _fails(policy: GatePolicy, gated: Sequence[TaskEvidence]) -> dict[str, float]:
    """Return the adjusted p of each task that the candidate succeeds less often; nothing where success is a floor."""
    if policy.success is None or policy.success.deterministic:
        return {}
    raw = [
        exact.fisher(task.candidate_solved, len(task.judged), task.incumbent_solved, len(task.judged)) for task in gated
    ]
    return dict(zip((task.task for task in gated), exact.holm(raw), strict=True))


def _success(policy: GatePolicy, gated: Sequence[TaskAssessed], level: float) -> SuccessFound:
    pairs = [one for task in gated for one in task.evidence.judged]
    won = sum(one.solved == (False, True) for one in pairs)
    lost = sum(one.solved == (True, False) for one in pairs)
    old, new = sum(one.solved[0] for one in pairs), sum(one.solved[1] for one in pairs)
    # The pairs that only one arm solved are others than those with a difference. So both tests hold their level given
    # which pairs are which, and the level need only be shared where the former are enough to decide anything.
    share = level / 2 if math.ldexp(1.0, -(won + lost)) <= level / 2 else 0.0
    tested = policy.success is not None and not policy.success.deterministic and pairs
    bound = exact.newcombe(new, len(pairs), old, len(pairs), policy.level) if tested else None
    return SuccessFound(
        pairs=len(pairs),
        incumbent_solved=old,
        candidate_solved=new,
        won=won,
        lost=lost,
        p=exact.sign(won, lost),
        level=share,
        bound=bound,
    )


def _thin(gated: Sequence[TaskAssessed], metric_level: float) -> str:
    """Say why the metric cannot be tested; empty when it can."""
    for task in gated:
        if len(task.differences) < levels.LEAST_A_TASK:
            solved = f"{len(task.differences)} of {len(task.evidence.judged)} pairs of task {task.evidence.task}"
            return f"both arms solved {solved}: {levels.LEAST_A_TASK} are needed to compare the metric"
    pairs = sum(len(task.differences) for task in gated)
    if smallest_p(pairs) <= metric_level:
        return ""
    needed = levels.least(metric_level, len(gated))
    said = f"{pairs} pairs that both arms solved can never reach the level {metric_level:.4g}"
    return f"{said}: {needed} are needed" if pairs < needed else f"{said}: plan fewer generations"


def _weights(samples: Sequence[Sequence[float]]) -> list[float]:
    """Return what each difference adds to the mean of the tasks' means."""
    return [value / (len(samples) * len(task)) for task in samples for value in task]


def _guardrail(policy: Guardrail, gated: Sequence[TaskAssessed], level: float) -> GuardrailAssessed:
    overall = estimate([task.evidence.differences(policy.name) for task in gated])
    limit = allowed(policy.scale, policy.max_regression)
    return GuardrailAssessed(policy, overall, overall.lower(level), limit, overall.upper(level) < limit)
