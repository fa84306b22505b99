"""What a benchmark run is about: the kind's part of ``spec.json``, and the seeds."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from outerloop_hpc.documents import Value
from outerloop_hpc.engine.enclose import Containment
from outerloop_hpc.engine.ruler import Ruler, seeds_of
from outerloop_hpc.engine.spec import ResourceAsk, RunSpec

KIND: Literal["benchmark"] = "benchmark"


class Earlier(Value):
    """The run to compare with: the newest one of another commit that was known when this run was made."""

    run: str
    commit: str
    values: dict[int, float]


class BenchmarkWork(Ruler):
    """One benchmark at one commit.

    Attributes:
        seeds: one array element each.
        head: whether the commit was the branch's head when the run was made; older commits are measured on request.
        picked: whether a person picked the seeds; such numbers never enter the ledger.
    """

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
    return seeds_of(count, target, benchmark)


def dump(work: BenchmarkWork) -> dict[str, Any]:
    """Return the kind's part as it goes into the specification."""
    return work.model_dump(mode="json", exclude_none=True)
