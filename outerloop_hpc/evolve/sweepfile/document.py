"""A sweep file, ``sweep.yaml``: read whole, checked whole, and explained when it is wrong. Pure."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from typing import Annotated, Literal

from pydantic import AwareDatetime, BeforeValidator, Field, StringConstraints, ValidationError

from outerloop_hpc.config.settings import TARGET_NAME
from outerloop_hpc.engine.spec import digest_of
from outerloop_hpc.errors import ConfigError
from outerloop_hpc.evolve.overlays.globs import allows, denying
from outerloop_hpc.evolve.sweepfile.ideas import AskTell, Grid, Proposer, template_problems
from outerloop_hpc.evolve.sweepfile.terms import Copy, Gate, Line, Metrics, Overlay, Part, Repeats, Slug, Task, as_tuple
from outerloop_hpc.target import strictyaml
from outerloop_hpc.target.complaints import complaints, refused
from outerloop_hpc.target.scope import folded, inside, overlap

SCHEMA = "sweep/1"
_WHAT = "the sweep file"
_TIMES = {"seconds", "duration", "time"}
_TIME_ENDINGS = ("_s", "_seconds")


def _moment(value: object) -> object:
    """Take a time as YAML reads it; text is one too when it was quoted."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise ValueError(f"{strictyaml.shown(value)} is no time; write it as in 2026-12-01T08:00:00Z") from None
    if isinstance(value, date) and (not isinstance(value, datetime) or value.tzinfo is None):
        raise ValueError(f"{value}: needs a time of day and a zone, as in 2026-12-01T08:00:00Z")
    # The zone is spelling: messages say UTC.
    try:
        return value.astimezone(UTC) if isinstance(value, datetime) else value
    except OverflowError:
        raise ValueError(f"{value}: is beyond what a time can be; write it as in 2026-12-01T08:00:00Z") from None


class Budget(Part):
    """What the sweep may use; what is left out has no limit, except generations."""

    cells: int | None = Field(default=None, ge=1)
    cpu_hours: float | None = Field(default=None, gt=0)
    gpu_hours: float | None = Field(default=None, gt=0)
    money: float | None = Field(default=None, gt=0)
    generations: int = Field(default=1, ge=1, le=1000)
    deadline: Annotated[AwareDatetime, BeforeValidator(_moment)] | None = None


class Sweep(Part):
    """A whole sweep file; names in it are not looked up yet.

    Attributes:
        document_schema: ``sweep/1``.
        target: a configured target's name.
        ref: commit, branch or tag of it; its branch's head unless told.
        parallel: elements of one array that may run at once; 0 is no limit.
        unit: one arm of a pair, or both on one node; left out, the primary metric decides.
    """

    document_schema: Literal["sweep/1"] = Field(alias="schema")
    name: Slug
    target: Annotated[str, StringConstraints(pattern=TARGET_NAME)]
    ref: Line | None = None
    overlay: Overlay
    copies: Annotated[tuple[Copy, ...], BeforeValidator(as_tuple), Field(max_length=64)] = ()
    proposer: Proposer
    tasks: Annotated[tuple[Task, ...], BeforeValidator(as_tuple), Field(min_length=1, max_length=256)]
    metrics: Metrics = Metrics()
    repeats: Repeats = Repeats()
    unit: Literal["cell", "pair"] | None = None
    parallel: int = Field(default=0, ge=0, le=100_000)
    budget: Budget = Budget()
    gate: Gate = Gate()
    expires_days: int = Field(default=90, ge=1, le=90)

    @property
    def digest(self) -> str:
        """Digest of what the file means: spelling, order of keys and written defaults change nothing."""
        return digest_of(self.model_dump(mode="json", by_alias=True))


def load(data: bytes, *, name: str = "sweep.yaml") -> Sweep:
    """Read a sweep file.

    Args:
        data: the file's bytes.
        name: what to call it in messages.

    Raises:
        ConfigError: with every key that is wrong, what was found and what is allowed.
    """
    document = strictyaml.load(data, name)
    said = document.get("schema")
    if said != SCHEMA:
        # Every other complaint would be about another kind of file.
        found = "nothing" if said is None else strictyaml.shown(said)
        raise ConfigError(f"{name}: schema: must be {SCHEMA}, which this version reads, found {found}")
    try:
        sweep = Sweep.model_validate(document)
    except ValidationError as error:
        raise refused(name, _WHAT, complaints(error, Sweep)) from error
    problems = list(_problems(sweep))
    if problems:
        raise refused(name, _WHAT, problems)
    return sweep


def is_time(sweep: Sweep, metric: str) -> bool:
    """Whether the primary metric depends on the node that it was measured on, as times and energy do."""
    kind = sweep.metrics.primary.kind
    if kind is not None:
        return kind in {"time", "energy"}
    name = metric.lower()
    return name in _TIMES or name.endswith(_TIME_ENDINGS)


def _problems(sweep: Sweep) -> Iterator[str]:
    """Yield what is wrong between keys that are well each by itself."""
    yield from _task_problems(sweep)
    yield from _metric_problems(sweep)
    yield from _copy_problems(sweep)
    yield from _proposer_problems(sweep)
    repeats = sweep.repeats
    if repeats.most < repeats.confirm:
        yield f"repeats.most: at least repeats.confirm ({repeats.confirm}), found {repeats.most}"


def _task_problems(sweep: Sweep) -> Iterator[str]:
    seen: dict[str, int] = {}
    for index, task in enumerate(sweep.tasks):
        first = seen.setdefault(task.id.casefold(), index)
        if first != index:
            yield f"tasks[{index}].id: {task.id!r} is already the id of tasks[{first}]"
        for number, path in enumerate(task.oracle.files if task.oracle else ()):
            if path in sweep.overlay.allow:
                yield (
                    f"tasks[{index}].oracle.files[{number}]: {path!r} is given to candidates by overlay.allow; "
                    "a hidden check cannot be what is changed"
                )
        for word in task.oracle.command if task.oracle else ():
            if (lacking := _not_handed_out(word, task.oracle.files if task.oracle else ())) is not None:
                yield (
                    f"tasks[{index}].oracle.command: {word!r} names {lacking!r}, which is none of oracle.files; they "
                    "keep their paths in the target, below {oracle}"
                )


def _not_handed_out(word: str, files: Sequence[str]) -> str | None:
    """Return the path that a word of an oracle's command looks for in vain: every answer of it would be a no."""
    if not word.startswith("{oracle}/"):
        return None
    path = posixpath.normpath(word.removeprefix("{oracle}/"))
    # Behind a colon may be which part of a file is meant, as pytest has it, or a further path.
    for place in (path, path.partition(":")[0]):
        if place == "." or any(one == place or one.startswith(f"{place}/") for one in files):
            return None
    return path


def _metric_problems(sweep: Sweep) -> Iterator[str]:
    primary, by_name = sweep.metrics.primary, dict[str, str]()
    commands = [task.id for task in sweep.tasks if task.command is not None]
    for key in ("name", "direction"):
        if getattr(primary, key) is None and commands:
            yield (
                f"metrics.primary.{key}: needed, since the task {commands[0]!r} is a command; "
                "only benchmarks of the contract bring one"
            )
    if primary.scale == "ratio" and primary.min_effect >= 1:
        yield (
            f"metrics.primary.min_effect: below 1, a share of what the incumbent needs (0.05 is 5 %), found "
            f"{primary.min_effect:g}; no candidate could be promoted for it"
        )
    if primary.name is not None:
        by_name[primary.name] = "metrics.primary"
    for index, guardrail in enumerate(sweep.metrics.guardrails):
        first = by_name.setdefault(guardrail.name, f"metrics.guardrails[{index}]")
        if first != f"metrics.guardrails[{index}]":
            yield f"metrics.guardrails[{index}].name: {guardrail.name!r} is already {first}"
    if sweep.metrics.success and not any(task.success or task.oracle for task in sweep.tasks):
        yield "metrics.success: no task has a success key or an oracle, so there is nothing that could succeed"


def _copy_problems(sweep: Sweep) -> Iterator[str]:
    taken: dict[tuple[str, ...], int] = {}
    for index, copy in enumerate(sweep.copies):
        where = f"copies[{index}]"
        if overlap(copy.source, copy.to):
            yield f"{where}: {copy.source!r} and {copy.to!r} lie in one another"
        first = taken.setdefault(folded(copy.to), index)
        if first != index:
            yield f"{where}.to: {copy.to!r} is already that of copies[{first}]"
        if any(allows(pattern, copy.to) for pattern in sweep.overlay.allow):
            yield f"{where}.to: {copy.to!r} is itself allowed by overlay.allow; a candidate could bring another content"
        if denying(sweep.overlay.deny, copy.to) is not None:
            yield f"{where}.to: {copy.to!r} is denied by overlay.deny"
        if any(inside(copy.to, closed) for closed in (".git", ".github")):
            yield f"{where}.to: {copy.to!r}: nobody but a person changes that"


def _proposer_problems(sweep: Sweep) -> Iterator[str]:
    proposer = sweep.proposer
    if isinstance(proposer, AskTell):
        names = [parameter.name for parameter in proposer.parameters]
        if repeated := sorted({name for name in names if names.count(name) > 1}):
            yield f"proposer.parameters: {repeated[0]!r} stands here twice"
    elif isinstance(proposer, Grid):
        names = list(proposer.values)
    else:
        return
    if isinstance(proposer.template, dict):
        yield from (f"proposer.template: {problem}" for problem in template_problems(proposer.template, names))
