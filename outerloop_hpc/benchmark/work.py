"""What a benchmark run is about: the kind's part of ``spec.json``, and the seeds."""

from __future__ import annotations

import hashlib
from typing import Any, Literal

from pydantic import Field

from outerloop_hpc.documents import Value
from outerloop_hpc.engine.spec import ResourceAsk, RunSpec

KIND: Literal["benchmark"] = "benchmark"


class Containment(Value):
    """How the measurement is contained."""

    runtime: str = "auto"
    uncontained: bool = False
    network: bool = False


class Earlier(Value):
    """The run to compare with: the newest one of another commit that was known when this run was made."""

    run: str
    commit: str
    values: dict[int, float]


class BenchmarkWork(Value):
    """One benchmark of a contract, resolved: nothing of it changes when the target or the settings change.

    Attributes:
        eval_minutes: wall limit of the command, already clamped by the operator.
        seeds: one array element each.
        head: whether the commit was the branch's head when the run was made; older commits are measured on request.
        picked: whether a person picked the seeds; such numbers never enter the ledger.
    """

    benchmark: str
    command: str
    metric: str
    direction: Literal["min", "max"]
    seed_env: str | None = None
    display_digits: int = 6
    eval_minutes: int
    min_delta: float = 0.0
    min_delta_rel: float = 0.0
    tree: str
    contract_digest: str
    seeds: tuple[int, ...] = Field(min_length=1)
    resources: ResourceAsk
    max_tries: int = 3
    containment: Containment = Field(default_factory=Containment)
    earlier: Earlier | None = None
    head: bool = True
    picked: bool = False


def work_of(spec: RunSpec) -> BenchmarkWork:
    """Read the kind's part of a specification."""
    return BenchmarkWork.model_validate(spec.work)


def default_seeds(target: str, benchmark: str, count: int) -> tuple[int, ...]:
    """Return the fixed seeds of a benchmark: the same for every commit, so that runs can be compared in pairs."""
    return tuple(_seed(target, benchmark, index) for index in range(count))


def _seed(target: str, benchmark: str, index: int) -> int:
    digest = hashlib.sha256(f"{target}\0{benchmark}\0{index}".encode()).digest()
    return int.from_bytes(digest[:4], "big") & 0x7FFFFFFF


def dump(work: BenchmarkWork) -> dict[str, Any]:
    """Return the kind's part as it goes into the specification."""
    return work.model_dump(mode="json", exclude_none=True)
