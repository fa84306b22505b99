"""What a sweep is about: the kind's part of ``spec.json``. All of it is resolved before anything is submitted."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, Field, ValidationError

from outerloop_hpc.documents import Value
from outerloop_hpc.engine.enclose import Containment
from outerloop_hpc.engine.spec import ResourceAsk, RunSpec
from outerloop_hpc.errors import Fault
from outerloop_hpc.evolve.gate.policy import GatePolicy

KIND: Literal["evolve"] = "evolve"


class OverlayRules(Value):
    """Which files a candidate may bring. ``allow`` and ``deny`` are globs on repository paths; ``deny`` wins."""

    allow: tuple[str, ...] = Field(min_length=1)
    deny: tuple[str, ...] = ()
    may_add: bool = False
    max_files: int = Field(default=64, ge=1, le=1024)
    max_bytes: int = Field(default=4 * 1024 * 1024, ge=1, le=64 * 1024 * 1024)


class Copy(Value):
    """A place in the target that holds the same as ``source``; it is kept equal when a candidate is applied.

    Either both are files or both are folders.
    """

    source: str
    to: str


def copies_of(path: str, copies: Iterable[Copy]) -> tuple[str, ...]:
    """Return the further places of one of a candidate's files."""
    inner = ((copy, path[len(copy.source) :]) for copy in copies if path.startswith(copy.source))
    return tuple(f"{copy.to}{rest}" for copy, rest in inner if not rest or rest.startswith("/"))


class Oracle(Value):
    """Hidden checks. ``files`` are repository paths that neither proposer nor candidate ever sees.

    ``command`` runs after the candidate's own run, in its workspace; ``OL_ORACLE`` names the folder with the files.
    """

    command: tuple[str, ...] = Field(min_length=1)
    files: tuple[str, ...] = Field(min_length=1)
    timeout_s: float = Field(default=300, gt=0)


class Task(Value):
    """One task: a command in a workspace at a pinned commit that prints one JSON object of numbers.

    Attributes:
        commit: full hash; ``tree`` is its tree.
        setup: commands that run on the base files, before any overlay is there.
        success_key: key of the object that holds true or false; empty when there is none.
        seed_env: a further variable that carries the seed, beside ``OL_SEED``.
        timeout_s: limit of ``command`` alone; the walltime is longer.
    """

    id: str
    kind: str = ""
    commit: str
    tree: str
    command: tuple[str, ...] = Field(min_length=1)
    setup: tuple[tuple[str, ...], ...] = ()
    setup_timeout_s: float = Field(default=600, gt=0)
    oracle: Oracle | None = None
    success_key: str = ""
    seed_env: str = ""
    timeout_s: float = Field(gt=0)
    resources: ResourceAsk


class Dirs(Value):
    """Prepared overlays: folders that were frozen when the sweep was submitted, by digest, in this order."""

    kind: Literal["dirs"] = "dirs"
    digests: tuple[str, ...] = Field(min_length=1)


class Grid(Value):
    """Values put into a template: every combination, in the order of the keys, the last one fastest.

    ``template`` holds the text of each file; ``{{name}}`` stands for a value.
    """

    kind: Literal["grid"] = "grid"
    template: dict[str, str] = Field(min_length=1)
    values: dict[str, tuple[str | int | float | bool, ...]] = Field(min_length=1)


class Parameter(Value):
    """One declared parameter of a search; numbers between ``low`` and ``high``, both included, or ``choices``."""

    name: str
    kind: Literal["int", "float", "choice"]
    low: float | None = None
    high: float | None = None
    log: bool = False
    choices: tuple[str | int | float | bool, ...] = ()


class AskTell(Value):
    """Optuna's sampler over declared parameters, put into a template as in ``Grid``."""

    kind: Literal["ask-tell"] = "ask-tell"
    template: dict[str, str] = Field(min_length=1)
    parameters: tuple[Parameter, ...] = Field(min_length=1)
    sampler: Literal["tpe", "random"] = "tpe"


class Command(Value):
    """Any program. It reads ``OL_EVIDENCE``, works in ``OL_WORKSPACE`` and writes ``OL_OVERLAY`` and ``OL_PROPOSAL``.

    Exit 0 means proposed, 10 no more ideas, 75 try later, anything else failed. ``program`` is an absolute path outside
    the target (mounted read-only) or a path in it.
    """

    kind: Literal["command"] = "command"
    command: tuple[str, ...] = Field(min_length=1)
    environment: tuple[str, ...] = ()
    timeout_s: float = Field(default=3600, gt=0)
    network: bool = False


class Agent(Value):
    """A program of the agent backends, which gets a brief."""

    kind: Literal["agent"] = "agent"
    command: tuple[str, ...] = Field(min_length=1)
    environment: tuple[str, ...] = ()
    timeout_s: float = Field(default=5400, gt=0)
    network: bool = True


Proposer = Annotated[Dirs | Grid | AskTell | Command | Agent, Field(discriminator="kind")]


class Budget(Value):
    """What a sweep may use; ``None`` is no limit. Looked at before every submission, never in the middle of a cell."""

    cells: int | None = Field(default=None, ge=1)
    cpu_hours: float | None = Field(default=None, gt=0)
    gpu_hours: float | None = Field(default=None, gt=0)
    money: float | None = Field(default=None, gt=0)
    deadline: AwareDatetime | None = None

    def late(self, now: datetime) -> str:
        """Say that the deadline has passed; empty when it has not, or there is none."""
        if self.deadline is None or now < self.deadline:
            return ""
        return f"{self.deadline:%Y-%m-%dT%H:%M:%SZ} has passed"


class EvolveWork(Value):
    """A sweep, resolved.

    Attributes:
        document: sha256 of the sweep file's meaning (not of its spelling).
        candidates: proposals for each generation.
        unit: what one array element is: one arm of a pair, or both on one node.
        base: sha256 of each incumbent file that the overlay rules allow, by path.
        copies: further places that an applied candidate is written to.
        proposing: what a proposal's job asks for. containment: of cells; proposing_containment: of proposals.
        max_tries: executions of a cell that the machines may lose. proposing_tries: of a proposal; each may cost money.
        expires_days: how long evidence may be applied.
        skipped_oracles: oracle files of the file's tasks that this sweep leaves out; another one may measure by them.
        pilot: over 0: nothing is proposed, the incumbent is measured beside itself with so many pairs a task.
    """

    name: str
    document: str
    overlay: OverlayRules
    copies: tuple[Copy, ...] = ()
    proposer: Proposer
    candidates: int = Field(default=1, ge=1)
    tasks: tuple[Task, ...] = Field(min_length=1)
    unit: Literal["cell", "pair"]
    gate: GatePolicy
    budget: Budget = Field(default_factory=Budget)
    base: dict[str, str]
    proposing: ResourceAsk
    max_tries: int = Field(default=5, ge=1)
    proposing_tries: int = Field(default=2, ge=1)
    containment: Containment = Field(default_factory=Containment)
    proposing_containment: Containment = Field(default_factory=Containment)
    expires_days: int = Field(default=90, ge=1)
    pilot: int = Field(default=0, ge=0)
    skipped_oracles: tuple[str, ...] = ()

    def task(self, name: str) -> Task:
        """Return a task by its id; raises KeyError."""
        return {task.id: task for task in self.tasks}[name]

    def hidden(self) -> tuple[str, ...]:
        """Return the oracle files of all tasks, skipped ones too; a cell of one could read those of another."""
        found = {path for task in self.tasks if task.oracle is not None for path in task.oracle.files}
        return tuple(sorted(found.union(self.skipped_oracles)))


def work_of(spec: RunSpec) -> EvolveWork:
    """Read the kind's part of a specification.

    Raises:
        Fault: it says no sweep that this version understands.
    """
    try:
        return EvolveWork.model_validate(spec.work)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in ("work", *first["loc"]))
        raise Fault(f"{spec.run}: its specification says no sweep: {where}: {first['msg']}") from error


def dump(work: EvolveWork) -> dict[str, Any]:
    """Return the kind's part as it goes into the specification."""
    return work.model_dump(mode="json", exclude_none=True)
