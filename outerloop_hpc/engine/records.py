"""What a job writes about its own try, and the manifest that it reads. One writer per file."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import AwareDatetime, Field

from outerloop_hpc.documents import Document, Value
from outerloop_hpc.engine.spec import Image, StepSpec

RecordOutcome = Literal["completed", "failed", "infrastructure", "refused", "timed_out", "out_of_memory"]

CLAIM = "claim.json"
RECORD = "record.json"
INTERRUPTED = "interrupted.json"
HEARTBEAT = "heartbeat.json"
BEGUN = "begun.json"
LOG = "log"


class Holder(Value):
    """Who wrote a document: enough to find the process or the log again."""

    host: str
    pid: int
    job_id: str = ""
    restart: int = 0


class Begun(Document):
    """``eNNNN.begun.json``: from here on the step costs something that no repetition gives back, such as a session.

    Published by the body before that begins. A try that has none has used up nothing, however it ended. ``place`` is
    the folder on that host in which it works.
    """

    name: ClassVar[str] = "begun"

    step: str
    host: str
    at: AwareDatetime
    place: str = ""


class Claim(Document):
    """``eNNNN.claim.json``: published by the first execution of a try, or by the reconciler to keep it from starting.

    This one file decides between a late job and a reconciler that gave it up.
    """

    name: ClassVar[str] = "claim"

    nonce: str
    at: AwareDatetime
    holder: Holder
    abandoned: bool = False


class Record(Document):
    """``eNNNN.record.json``: the final word of a try; the first one published stays.

    ``outcome`` is for the engine; ``payload`` is for the kind. ``node_unfit``: the job blames its node, so the next
    try goes elsewhere. ``image_sha256``: the image that the submission asked for, whatever came of the try; empty
    without one. Which image was found and used is the payload's to say. ``part``: as in ``body.Result``.
    """

    name: ClassVar[str] = "record"

    run: str
    submission: str
    index: int
    step: str
    try_number: int
    nonce: str
    outcome: RecordOutcome
    reason: str = ""
    started_at: AwareDatetime
    ended_at: AwareDatetime
    holder: Holder
    node_unfit: bool = False
    part: str = ""
    image_sha256: str = ""
    payload: dict[str, Any] = Field(default_factory=dict)


class Interrupted(Document):
    """``eNNNN.interrupted.json``: a signal ended this execution; Slurm's word says what that meant."""

    name: ClassVar[str] = "interrupted"

    nonce: str
    at: AwareDatetime
    signal: str
    holder: Holder
    payload: dict[str, Any] = Field(default_factory=dict)


class Wake(Document):
    """``wake/wake.json`` of a submission: what its wake job moves on, and with which settings.

    In a file, since a site's ``--export=NONE`` takes the environment away. ``config`` is the project file of the pass
    that submitted; empty when it had none.
    """

    name: ClassVar[str] = "wake"

    run: str
    state_root: str
    config: str = ""


class Heartbeat(Document):
    """``eNNNN.heartbeat.json``: a changing nonce; its age is measured by who sees it unchanged, not by its time."""

    name: ClassVar[str] = "heartbeat"

    nonce: str
    at: AwareDatetime
    beat: int


class ManifestElement(Value):
    """One array element: which try of which step."""

    step: StepSpec
    try_number: int


class Manifest(Document):
    """``manifest.json`` of a submission: all that its elements need, written before the submission."""

    name: ClassVar[str] = "manifest"

    run: str
    kind: str
    target: str
    submission: str
    spec_digest: str
    image: Image
    state_root: str
    elements: tuple[ManifestElement, ...]
