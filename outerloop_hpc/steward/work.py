"""What a steward run is about: the kind's part of ``spec.json``. Pure."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, ValidationError

from outerloop_hpc.documents import Value
from outerloop_hpc.engine.enclose import Containment
from outerloop_hpc.engine.ruler import Ruler
from outerloop_hpc.engine.spec import ResourceAsk, RunSpec, digest_of
from outerloop_hpc.errors import Fault

KIND: Literal["steward"] = "steward"
ROLE = "steward"
#: How much of an order and of a contract a session is shown; characters.
ORDER_SHOWN = 20_000
CONTRACT_SHOWN = 10_000
#: The newest comments on it, and how much of each.
COMMENTS_SHOWN = 20
COMMENT_SHOWN = 4_000


class OrderText(Value):
    """The order as it was when it was claimed. Foreign text."""

    order_id: str
    title: str
    body: str
    author: str


class OrderComment(Value):
    """What somebody whose word counts said on the order. Foreign text."""

    author: str
    body: str


class AgentWork(Value):
    """The program of the session; paths are of the host, and the key itself is nowhere but in its file.

    Attributes:
        output_bytes: how much it may say.
    """

    command: tuple[str, ...] = Field(min_length=1)
    files: str = ""
    key_file: str = ""
    key_env: str = ""
    turns: int
    minutes: int
    output_bytes: int = 64 * 1024 * 1024


class Territories(Value):
    """Where the session may write, and what is closed to it; paths of the repository."""

    allowed: tuple[str, ...]
    forbidden: tuple[str, ...]


class StepAsk(Value):
    """What one kind of step of the run asks for; ``min_free_gb`` on the node's scratch, before it begins."""

    resources: ResourceAsk
    max_tries: int = 3
    min_free_gb: float = 0.0
    containment: Containment = Field(default_factory=Containment)


class StewardWork(Value):
    """One order on one benchmark, resolved: nothing of it changes when the target or the settings change.

    Attributes:
        comments: what people said on it before it was claimed, oldest first.
        claim: id of the claim on the order. attempt: which one it is on this order, from 1.
        identity: the tool's name on the forge.
        onto: branch that the change is proposed for.
        tree: tree of the base commit.
        ruler: the benchmark that is to be mended, as the base has it.
        siblings: every other benchmark; each must still measure.
        seeds: fresh seeds, which follow from the run.
        leader: the repository's ``results/leader.json`` at the base; empty when there is none.
        best: best number known before, and the run it comes from; the repository's, else what was measured here.
        digits: significant digits of each benchmark's numbers in ``BENCHMARKS.md``.
        contract: the contract's text, for the brief.
    """

    order: OrderText
    comments: tuple[OrderComment, ...] = ()
    claim: str
    attempt: int = Field(ge=1)
    identity: str
    onto: str
    tree: str
    contract: str
    contract_digest: str
    ruler: Ruler
    siblings: tuple[Ruler, ...] = ()
    seeds: tuple[int, ...] = Field(min_length=1)
    validation: str = ""
    validation_minutes: int = 30
    territories: Territories
    leader: str = ""
    best: float | None = None
    best_run: str = ""
    digits: dict[str, int] = Field(default_factory=dict)
    agent: AgentWork
    session: StepAsk
    validate_: StepAsk = Field(alias="validate", serialization_alias="validate")
    measure: StepAsk


def work_of(spec: RunSpec) -> StewardWork:
    """Read the kind's part of a specification.

    Raises:
        Fault: it is not one of this version's.
    """
    try:
        return StewardWork.model_validate(spec.work)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(str(part) for part in first["loc"])
        raise Fault(f"{spec.run}: spec.json holds no steward's work of this version: {key}: {first['msg']}") from None


def dump(work: StewardWork) -> dict[str, Any]:
    """Return the kind's part as it goes into the specification."""
    return work.model_dump(mode="json", exclude_none=True, by_alias=True)


def order_key(order_id: str, attempt: int) -> str:
    """Name one attempt at an order; whoever claims it first has it."""
    return f"{KIND}/{order_id}/{attempt}"


def claim_id(target: str, run: str) -> str:
    """Return the id that joins marker, run, job names and records: 16 hex digits that follow from the run."""
    return digest_of("claim", target, run)[:16]


def branch_of(run: str) -> str:
    """Return the branch of the run's change."""
    return f"feat/steward/{run}"
