"""What a run is about, fixed when it is made: ``spec.json``."""

from __future__ import annotations

import hashlib
import json
from datetime import datetime
from typing import Any, ClassVar, Literal

from pydantic import AwareDatetime, Field

from outerloop_hpc.documents import Document, Value

Scalar = str | int | bool
KindName = Literal["steward", "benchmark", "evolve", "feature"]


def digest_of(*parts: Any) -> str:
    """Return the sha256 of JSON-like parts, independent of key order."""
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def file_digest(data: bytes) -> str:
    """Return the sha256 of a document's bytes.

    Of a specification that was written earlier only this is safe: another version may write the same one otherwise.
    """
    return hashlib.sha256(data).hexdigest()


class Image(Value):
    """A container image by path and content; empty for development without one."""

    path: str = ""
    sha256: str = ""


class ResourceAsk(Value):
    """What one element of a step asks for, before the site's options are added."""

    minutes: int = Field(ge=1)
    cpus: int = Field(default=1, ge=1)
    memory_mb: int | None = None
    gpus: int = Field(default=0, ge=0)
    signal_lead_s: int = Field(default=120, ge=0)
    parallel: int = Field(default=0, ge=0, description="elements of one array that may run at once; 0 = no limit")
    options: dict[str, Scalar] = Field(default_factory=dict)


class StepSpec(Value):
    """One step: a unit that becomes a job or an array element.

    Attributes:
        key: digest over run, kind of step, cause, round, parameters and image; a replay finds the same step.
        job: the kind of step, which names its ``jobs/<job>.toml``.
        cause: what triggered it (a tree, a record), never only a counter.
        parameters: what its body needs.
        resources: what it asks for.
        max_tries: executions that may be lost to infrastructure before a person is asked.
        longer: over 1: after a try that reached its walltime there is one more with so many times the walltime.
        memory_final: whether that it ran out of memory for good is what it found, which no person's resume undoes.
    """

    key: str
    job: str
    cause: str
    round: int = 0
    parameters: dict[str, Any] = Field(default_factory=dict)
    resources: ResourceAsk
    body: str
    max_tries: int = Field(default=3, ge=1)
    longer: float = Field(default=1.0, ge=1, le=10)
    memory_final: bool = False


class RunSpec(Document):
    """``spec.json``: immutable. ``work`` is the kind's own part, read by the kind alone.

    ``scratch`` is the node-local folder for jobs; a leading ``$NAME`` is read on the node, empty means TMPDIR.
    ``gpu_hours`` is what its submissions may ask for before a person is asked; ``None`` is no limit. ``wake``: each of
    its submissions gets a tiny job that moves it on, whatever the settings say, since no tick may ever come.
    """

    name: ClassVar[str] = "run-spec"

    run: str
    kind: KindName
    target: str
    commit: str
    cause: str
    made_at: AwareDatetime
    made_by: str
    image: Image = Field(default_factory=Image)
    scratch: str = ""
    gpu_hours: float | None = None
    wake: bool = False
    work: dict[str, Any] = Field(default_factory=dict)

    def digest(self) -> str:
        """Digest of the whole specification as this version writes it; jobs compare the file's own bytes."""
        return file_digest(self.encoded())


def step_spec(  # noqa: PLR0913 - a step is all of this
    run: RunSpec,
    *,
    job: str,
    cause: str,
    body: str,
    resources: ResourceAsk,
    parameters: dict[str, Any],
    max_tries: int,
    round_: int = 0,
    longer: float = 1.0,
    memory_final: bool = False,
) -> StepSpec:
    """Make a step whose key follows from what it is."""
    digest = digest_of(run.run, job, cause, round_, parameters, run.image.sha256)
    return StepSpec(
        key=f"{job}-{digest[:16]}",
        job=job,
        cause=cause,
        round=round_,
        parameters=parameters,
        resources=resources,
        body=body,
        max_tries=max_tries,
        longer=longer,
        memory_final=memory_final,
    )


def stamp(at: datetime) -> str:
    """Format a time for people and file names: ISO 8601, UTC, seconds."""
    return f"{at:%Y-%m-%dT%H:%M:%SZ}"
