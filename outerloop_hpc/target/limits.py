"""How much a run may spend: the operator's numbers, which a contract can lower and never raise. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from outerloop_hpc.target.terms import Benchmark, Contract

Number = TypeVar("Number", int, float)

#: Minutes of a measurement whose contract names none: the reference's 1800 s.
DEFAULT_EVAL_MINUTES = 30
MAX_EVAL_MINUTES = 1_440
#: Minutes around a session in its job: clone, validation, publication.
OVERHEAD_MINUTES = 20


@dataclass(frozen=True, slots=True)
class Range:
    """A limit's default, the least a contract can ask for, and the most an operator can give."""

    default: int
    floor: int
    ceiling: int


#: What a contract asks below the floor is raised to it: such a session could only fail.
RANGES = {
    "session_max_turns": Range(120, 10, 300),
    "session_minutes": Range(90, 10, 240),
    "attempt_job_minutes": Range(120, 40, 240),
    "followup_job_minutes": Range(90, 20, 240),
}


@dataclass(frozen=True, slots=True)
class Operator:
    """What the operator of this installation allows; ``None`` in the last two means no limit."""

    session_max_turns: int = RANGES["session_max_turns"].default
    session_minutes: int = RANGES["session_minutes"].default
    attempt_job_minutes: int = RANGES["attempt_job_minutes"].default
    followup_job_minutes: int = RANGES["followup_job_minutes"].default
    eval_minutes: int = MAX_EVAL_MINUTES
    attempt_cooldown_minutes: int = 360
    max_active_attempts: int = 1
    runs_per_week: int | None = None
    gpu_hours_per_run: float | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """What holds for a target: no number allows more than the operator's."""

    session_max_turns: int
    session_minutes: int
    attempt_job_minutes: int
    followup_job_minutes: int
    eval_minutes: int
    attempt_cooldown_minutes: int
    max_active_attempts: int
    runs_per_week: int | None
    gpu_hours_per_run: float | None
    overhead_minutes: int = OVERHEAD_MINUTES

    def measurement_minutes(self, benchmark: Benchmark) -> int:
        """Return the minutes that one measurement of ``benchmark`` may take: 1 to the operator's ceiling."""
        return min(self.eval_minutes, max(1, benchmark.eval_minutes or DEFAULT_EVAL_MINUTES))


def limits(contract: Contract, operator: Operator) -> Limits:
    """Clamp a contract's wishes into the operator's numbers."""
    budgets = contract.budgets
    return Limits(
        session_max_turns=_clamp("session_max_turns", operator.session_max_turns, budgets.session_max_turns),
        session_minutes=_clamp("session_minutes", operator.session_minutes, budgets.session_minutes),
        attempt_job_minutes=_clamp("attempt_job_minutes", operator.attempt_job_minutes, budgets.attempt_job_minutes),
        followup_job_minutes=_clamp(
            "followup_job_minutes", operator.followup_job_minutes, budgets.followup_job_minutes
        ),
        eval_minutes=min(MAX_EVAL_MINUTES, max(1, operator.eval_minutes)),
        # A longer pause spends less, so here the larger number wins.
        attempt_cooldown_minutes=max(operator.attempt_cooldown_minutes, budgets.attempt_cooldown_minutes or 0),
        max_active_attempts=_least(operator.max_active_attempts, budgets.max_active_attempts),
        runs_per_week=_lower(operator.runs_per_week, budgets.runs_per_week),
        gpu_hours_per_run=_lower(operator.gpu_hours_per_run, budgets.gpu_hours_per_run),
    )


def _clamp(name: str, operator: int, wish: int | None) -> int:
    bounds = RANGES[name]
    allowed = min(operator, bounds.ceiling)
    return allowed if wish is None else min(allowed, max(bounds.floor, wish))


def _least(operator: int, wish: int | None) -> int:
    return operator if wish is None else min(operator, wish)


def _lower(operator: Number | None, wish: Number | None) -> Number | None:
    given = [value for value in (operator, wish) if value is not None]
    return min(given) if given else None
