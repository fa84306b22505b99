"""The terms of a sweep file as frozen values: what may change, what is measured, what decides. Pure.

Unknown keys are errors at every level; ``document`` reads the file and ``resolve`` makes work of it.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, model_validator

from outerloop_hpc.config.ownership import refused_option
from outerloop_hpc.config.settings import NAMED_OPTIONS
from outerloop_hpc.errors import ConfigError
from outerloop_hpc.evolve.overlays.globs import glob_problem
from outerloop_hpc.measure.command import split_command
from outerloop_hpc.target.terms import RepositoryPath, SeedVariable

_SECONDS = 7 * 86_400
#: 64 TiB; sbatch takes no number that is much larger.
_MEMORY_MB = 64 * 1024 * 1024


def as_tuple(value: object) -> object:
    """Let a list of the file be a tuple."""
    return tuple(value) if isinstance(value, list) else value


def _argv(value: object) -> object:
    """Split a command, or take one that is written as a list of words."""
    if not isinstance(value, str) and not (isinstance(value, list) and all(isinstance(word, str) for word in value)):
        raise ValueError("must be a command: text, or a list of words")
    try:
        argv = split_command(value)
    except ConfigError as error:
        raise ValueError(str(error)) from None
    if any("\0" in word for word in argv):
        raise ValueError("must hold no NUL")
    return argv


def _commands(value: object) -> object:
    """Take one command, or a list of them; a list of words would be several commands."""
    return tuple(_argv(one) for one in (value if isinstance(value, list) else [value]))


def _glob(value: str) -> str:
    if problem := glob_problem(value):
        raise ValueError(f"{value!a}: {problem}")
    return value


def _line(value: str) -> str:
    if not value.isprintable():
        raise ValueError("must be one line of printable characters")
    return value


Line = Annotated[str, StringConstraints(min_length=1, max_length=1000), AfterValidator(_line)]
Slug = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
#: A key of the object that a command prints.
Key = Annotated[str, StringConstraints(min_length=1, max_length=200), AfterValidator(_line)]
Globs = Annotated[tuple[Annotated[str, AfterValidator(_glob)], ...], BeforeValidator(as_tuple)]
Argv = Annotated[tuple[str, ...], BeforeValidator(_argv)]
Seconds = Annotated[float, Field(gt=0, le=_SECONDS)]
Direction = Literal["min", "max"]
Scale = Literal["ratio", "linear"]


class Part(BaseModel):
    """One mapping of the file."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class Overlay(Part):
    """Which files a candidate may bring, by globs; ``deny`` wins."""

    allow: Annotated[Globs, Field(min_length=1, max_length=64)]
    deny: Annotated[Globs, Field(max_length=256)] = ()
    may_add: bool = False
    max_files: int = Field(default=64, ge=1, le=1024)
    max_bytes: int = Field(default=4 * 1024 * 1024, ge=1, le=64 * 1024 * 1024)


class Copy(Part):
    """A further place of a file, or of a folder's files, that an applied candidate is written to."""

    source: RepositoryPath = Field(alias="from")
    to: RepositoryPath


class Oracle(Part):
    """Hidden checks: files of the target that neither proposer nor candidate sees, and the command that uses them."""

    command: Argv
    files: Annotated[tuple[RepositoryPath, ...], BeforeValidator(as_tuple), Field(min_length=1, max_length=8)]
    timeout_s: Seconds = 300


def _options(value: object) -> object:
    if not isinstance(value, dict):
        raise ValueError("must be a mapping of sbatch options")  # noqa: TRY004 - pydantic explains ValueError only
    for option, given in value.items():
        # Each task may ask for a partition of its own, say; what a site says for all is only the default.
        problem = None if option in NAMED_OPTIONS - {"clusters"} else refused_option(str(option))
        if problem:
            raise ValueError(problem)
        if not isinstance(given, str | int) or (isinstance(given, str) and not (given.strip() and given.isprintable())):
            raise ValueError(f"{option}: must be a line of text, a whole number, true or false")
    return value


class Resources(Part):
    """What one array element asks for beyond ``jobs/cell.toml``; ``minutes`` is the walltime."""

    cpus: int | None = Field(default=None, ge=1, le=4096)
    memory_mb: int | None = Field(default=None, ge=1, le=_MEMORY_MB)
    gpus: int | None = Field(default=None, ge=0, le=64)
    minutes: int | None = Field(default=None, ge=1, le=_SECONDS // 60)
    options: Annotated[dict[str, str | int | bool], BeforeValidator(_options)] = Field(default_factory=dict)


class Task(Part):
    """One task: a benchmark of the target's contract, or a command.

    Attributes:
        kind: a word for reports.
        setup: commands that run before any overlay is there.
        success: key that holds true or false.
        ref: another commit than the sweep's.
        expensive: left out unless it is asked for.
    """

    id: Slug
    kind: Annotated[str, StringConstraints(max_length=64), AfterValidator(_line)] = ""
    benchmark: Line | None = None
    command: Argv | None = None
    setup: Annotated[tuple[tuple[str, ...], ...], BeforeValidator(_commands)] = ()
    setup_timeout_s: Seconds = 600
    oracle: Oracle | None = None
    success: Key | None = None
    seed_env: SeedVariable | None = None
    timeout_s: Seconds | None = None
    resources: Resources = Resources()
    ref: Line | None = None
    expensive: bool = False

    @model_validator(mode="after")
    def _measured_somehow(self) -> Self:
        if (self.benchmark is None) == (self.command is None):
            raise ValueError("give either benchmark (a name in the target's contract) or command")
        if self.seed_env is not None and self.seed_env.startswith("OL_"):
            raise ValueError(f"seed_env: {self.seed_env}: names that begin with OL_ are this tool's own")
        if self.command is not None and self.timeout_s is None:
            raise ValueError("a command needs timeout_s, the seconds that it may take")
        return self


class Primary(Part):
    """The metric that a promotion rests on; a benchmark of the contract brings name and direction.

    Attributes:
        kind: ``time`` and ``energy`` are compared on one node.
    """

    name: Key | None = None
    direction: Direction | None = None
    kind: Literal["time", "energy", "other"] | None = None
    scale: Scale = "ratio"
    min_effect: float = Field(default=0.05, ge=0)


class Guardrail(Part):
    """A metric that must not get worse by more than ``max_regression``."""

    name: Key
    direction: Direction
    scale: Scale = "ratio"
    max_regression: float = Field(ge=0)


class Success(Part):
    """How success flags count."""

    deterministic: bool = True
    margin: float = Field(default=0.10, gt=0, lt=1)
    harm_level: float = Field(default=0.10, gt=0, lt=1)


class Metrics(Part):
    """What is looked at."""

    primary: Primary = Primary()
    guardrails: Annotated[tuple[Guardrail, ...], BeforeValidator(as_tuple), Field(max_length=32)] = ()
    success: Success | None = None


class Repeats(Part):
    """Pairs for each task."""

    screen: int = Field(default=3, ge=2, le=1000)
    confirm: int = Field(default=10, ge=2, le=1000)
    most: int = Field(default=20, ge=2, le=2000)


class Gate(Part):
    """The rule that decides, and its levels."""

    kind: Literal["paired-v1", "medians-v5"] = "paired-v1"
    level: float = Field(default=0.05, ge=1e-6, lt=0.5)
    screen_level: float = Field(default=0.2, gt=0, le=1)
    max_task_regression: float = Field(default=0.20, gt=0)
    harm_level: float = Field(default=0.10, gt=0, lt=1)
