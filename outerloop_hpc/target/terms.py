"""The terms of a contract as frozen values: what is measured, how much may be spent, who may change what. Pure.

Names are those of existing contracts; unknown keys are errors at every level.
"""

from __future__ import annotations

import re
import shlex
from typing import Annotated, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    model_validator,
)

from outerloop_hpc.errors import UsageError
from outerloop_hpc.target.scope import Scope, declared

_MANAGED = re.compile(
    r"HOME|PATH|TMPDIR|LANG|VIRTUAL_ENV|PYTHON.*"
    r"|(UV|APPTAINER|APPTAINERENV|SINGULARITY|SINGULARITYENV|SLURM|OUTERLOOP|LD|DYLD|GIT)_.*"
)


def _no_folder(name: str) -> str:
    if not name.strip("."):
        raise ValueError("must hold more than dots, since it becomes a file name")
    return name


def _unmanaged(name: str) -> str:
    if _MANAGED.fullmatch(name):
        raise ValueError("this variable belongs to the environment of the measurement; choose a name of its own")
    return name


def _command(text: str) -> str:
    text = text.strip()
    if "\0" in text or not text:
        raise ValueError("must be a command")
    try:
        shlex.split(text)
    except ValueError as error:
        raise ValueError(f"cannot be split into words: {str(error).lower()}") from error
    return text


def _tuple(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


RepositoryPath = Annotated[str, AfterValidator(declared)]
Paths = Annotated[tuple[RepositoryPath, ...], BeforeValidator(_tuple)]
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]{1,64}$"), AfterValidator(_no_folder)]
Word = Annotated[str, StringConstraints(min_length=1, max_length=200)]
SeedVariable = Annotated[str, StringConstraints(pattern=r"^[A-Z][A-Z0-9_]{0,63}$"), AfterValidator(_unmanaged)]
Floor = Annotated[float, Field(ge=0)]
Direction = Literal["min", "max"]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class Regression(_Part):
    """How far a sibling may fall; accepted, not acted on."""

    free: bool | float | None = None
    max: float | None = None
    requires_gain: bool | float | None = None
    absolute: bool | float | None = None
    relative: bool | float | None = None


class Benchmark(_Part):
    """One number of a target and how it is measured.

    Attributes:
        name: identity in ledgers, branches and file names.
        command: run in the root of the tree; prints one JSON object with ``metric`` in it.
        metric: key of the number in that object.
        direction: whether ``min`` or ``max`` is better.
        display_digits: significant digits for people; comparisons use the full number.
        seed_env: variable that carries the seed, when the benchmark draws anything.
        eval_minutes: expected minutes of one measurement, see ``limits``.
        gpus: GPUs of one measurement.
        nodes: nodes of one measurement.
        baseline: ``paired`` measures the base next to each candidate, ``cached`` once.
        min_delta: noise floor in units of the metric.
        min_delta_rel: noise floor as a fraction of the level.
    """

    name: Name
    command: Annotated[str, AfterValidator(_command)]
    metric: Word
    direction: Direction
    display_digits: int | None = Field(default=None, ge=2, le=12)
    seed_env: SeedVariable | None = None
    eval_minutes: int | None = Field(default=None, ge=1)
    gpus: int = Field(default=0, ge=0, le=8)
    nodes: int = Field(default=1, ge=1, le=64)
    baseline: Literal["paired", "cached"] = "paired"
    min_delta: Floor | None = None
    min_delta_rel: Annotated[float, Field(ge=0, le=1)] | None = None
    depth_k: int = Field(default=10, ge=0, le=16)
    sleep_k: int = Field(default=20, ge=1, le=32)
    lines: bool = False
    verification: Literal["gate", "self_report"] = "gate"
    regression: Regression | None = None
    guidance: str | None = None

    @property
    def argv(self) -> tuple[str, ...]:
        """The command as words; it never goes through a shell."""
        return tuple(shlex.split(self.command))

    @model_validator(mode="after")
    def _cached_needs_a_floor(self) -> Self:
        if self.baseline == "cached" and not (self.min_delta or self.min_delta_rel):
            raise ValueError(
                "baseline: cached compares numbers of different seeds, so min_delta or min_delta_rel must be above 0"
            )
        return self


class Suite(_Part):
    """One number over all benchmarks."""

    metric: Word
    direction: Direction


class ReviewTopup(_Part):
    """Extra budget in review; accepted, not acted on."""

    launches: int = Field(default=2, ge=0, le=16)
    sleeps: int = Field(default=4, ge=1, le=32)
    gpu_hours: float = Field(default=0.5, ge=0)


class Budgets(_Part):
    """Wishes about spending, see ``limits``; ``None`` leaves a number to the operator."""

    gpu_hours_per_run: float | None = Field(default=None, ge=0)
    runs_per_week: int | None = Field(default=None, gt=0)
    session_max_turns: int | None = Field(default=None, gt=0)
    session_minutes: int | None = Field(default=None, gt=0)
    attempt_job_minutes: int | None = Field(default=None, gt=0)
    followup_job_minutes: int | None = Field(default=None, gt=0)
    attempt_cooldown_minutes: int | None = Field(default=None, ge=0)
    max_active_attempts: int | None = Field(default=None, ge=1)
    max_concurrent_gpus: int | None = Field(default=None, ge=1)
    review_topup: ReviewTopup | None = None


class SolverScope(_Part):
    """The solver's side, as written; ``Contract.territories`` has the rules."""

    allowed: Annotated[Paths, Field(min_length=1)]
    forbidden: Paths = ()
    shared: Paths = ()


class StewardScope(_Part):
    """The steward's side: evaluation, tests, reference data."""

    allowed: Annotated[Paths, Field(min_length=1)]


class Channels(_Part):
    """Switches between agents; accepted, not acted on."""

    siblings: bool = True
    messages: bool = True
    shared_reports: bool = True
    branches: bool = True


class Workspace(_Part):
    """Parts of the tree that a checkout holds; accepted, not acted on (measurements take the whole tree)."""

    sparse: Paths = ()


class Contract(_Part):
    """A whole contract."""

    benchmarks: Annotated[tuple[Benchmark, ...], BeforeValidator(_tuple), Field(min_length=1)]
    scope: SolverScope
    budgets: Budgets = Budgets()
    steward: StewardScope | None = None
    suite: Suite | None = None
    roadmap: RepositoryPath | None = None
    merge: Literal["manual", "auto"] = "manual"
    channels: Channels | None = None
    guidance: str | None = None
    max_concurrent_gpus: int | None = Field(default=None, ge=1)
    workspace: Workspace | None = None

    def benchmark(self, name: str) -> Benchmark:
        """Return a benchmark by name; raises UsageError with the names that exist."""
        for benchmark in self.benchmarks:
            if benchmark.name == name:
                return benchmark
        names = ", ".join(benchmark.name for benchmark in self.benchmarks)
        raise UsageError(f"the contract has no benchmark {name[:80]!a}; it has {names}")

    def territories(self) -> Scope:
        """Return who may write where."""
        return Scope(
            allowed=self.scope.allowed,
            forbidden=self.scope.forbidden,
            shared=self.scope.shared,
            steward_allowed=self.steward.allowed if self.steward else (),
            roadmap=self.roadmap,
        )
