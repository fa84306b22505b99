"""The journal's vocabulary: a closed set of events, grouped into transactions that are published whole."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import AwareDatetime, Field

from outerloop_hpc.documents import Document, Value
from outerloop_hpc.engine.spec import ResourceAsk, StepSpec

#: How a try ended, in the engine's words. ``done`` has a record; ``refused`` and ``abandoned`` never started.
TryOutcome = Literal[
    "done", "lost", "timed_out", "out_of_memory", "cancelled", "withdrawn", "refused", "abandoned", "superseded"
]

#: The rule of a try that a person gave up when nobody could say what became of it; it uses up none of the tries.
GAVE_UP = "person.gave-up"

#: The rule of a try that a person ended by force, whatever was known of it.
FORCED = "person.forced"

#: What a person may say in the inbox.
PersonAction = Literal["resume", "end", "park"]


class Element(Value):
    """One element of a submission, by position."""

    step: str
    try_number: int


class RunStarted(Value):
    """The first event of every run."""

    type: Literal["run.started"] = "run.started"
    spec_digest: str


class StepsWanted(Value):
    """The kind asked for these steps, and why."""

    type: Literal["steps.wanted"] = "steps.wanted"
    steps: tuple[StepSpec, ...]
    reason: str


class SubmissionIntended(Value):
    """About to submit. Committed before the submission, so that a crash is healed by looking the name up."""

    type: Literal["submission.intended"] = "submission.intended"
    name: str
    compute: str
    user: str
    cluster: str = ""
    elements: tuple[Element, ...]
    resources: ResourceAsk
    exclude_nodes: tuple[str, ...] = ()
    host: str
    reason: str


class SubmissionBound(Value):
    """The scheduler has it under this id; ``adopted`` when that was found out by looking the name up."""

    type: Literal["submission.bound"] = "submission.bound"
    name: str
    job_id: str
    cluster: str = ""
    adopted: bool = False
    reason: str = ""


class SubmissionRefused(Value):
    """The scheduler said no; its tries never started and count for nothing."""

    type: Literal["submission.refused"] = "submission.refused"
    name: str
    complaint: str


class SubmissionAbandoned(Value):
    """It never reached the scheduler; its claims are taken, so a late start would leave at once.

    ``withheld``: sbatch was not even started, so that there is nothing to be taken and nobody's fault to be counted.
    """

    type: Literal["submission.abandoned"] = "submission.abandoned"
    name: str
    reason: str
    withheld: bool = False


class Sighting(Value):
    """What the reconciler saw of one try when that changed: absent from the queue, its last word there, or back."""

    submission: str
    index: int
    absent: bool
    word: str = ""


class Sighted(Value):
    """Changes in what was seen. Windows are measured from here, by the clock of the host that saw it."""

    type: Literal["sighted"] = "sighted"
    host: str
    sightings: tuple[Sighting, ...]


class TryEnded(Value):
    """A try is over. ``rule`` names the line of the decision table, ``evidence`` what it rests on.

    ``node_unfit``: by the job's own record ``node`` lacks what it needs. ``begun``: it had begun what cannot be given
    back. ``part``: as in ``body.Result``, by its record.
    """

    type: Literal["try.ended"] = "try.ended"
    step: str
    try_number: int
    outcome: TryOutcome
    rule: str
    reason: str
    word: str = ""
    node: str = ""
    node_unfit: bool = False
    begun: bool = False
    part: str = ""
    evidence: dict[str, Any] = Field(default_factory=dict)
    record_outcome: str = ""
    payload: dict[str, Any] = Field(default_factory=dict)


class RunParked(Value):
    """The run waits for a person. ``tries`` are those that nobody can account for: a resume gives them up.

    ``rule`` names the line of the decision table, ``evidence`` what it rests on; earlier versions wrote neither.
    """

    type: Literal["run.parked"] = "run.parked"
    question: str
    reason: str
    tries: tuple[Element, ...] = ()
    rule: str = ""
    evidence: dict[str, Any] = Field(default_factory=dict)


class PersonDecided(Value):
    """A person's decision was taken from the inbox. ``force``: the run is ended and closed without waiting."""

    type: Literal["person.decided"] = "person.decided"
    file: str
    action: PersonAction
    who: str
    reason: str
    force: bool = False


class CancelAsked(Value):
    """The engine wants these submissions ended, and no further try of these steps."""

    type: Literal["cancel.asked"] = "cancel.asked"
    submissions: tuple[str, ...]
    steps: tuple[str, ...] = ()
    reason: str


class AccountingArchived(Value):
    """Final accounting rows of a submission are in ``accounting/``; ``note`` says what is missing, if anything is.

    ``cpu_s``, ``gpu_s``: what all its attempts held together, by these rows; ``None`` is not measured.
    """

    type: Literal["accounting.archived"] = "accounting.archived"
    submission: str
    rows: int
    note: str = ""
    cpu_s: float | None = None
    gpu_s: float | None = None


class ConclusionReached(Value):
    """What the kind concluded from what had been seen. It stays, also when a later version would compute otherwise."""

    type: Literal["conclusion.reached"] = "conclusion.reached"
    key: str
    document: dict[str, Any]
    reason: str


class PostWanted(Value):
    """Something is to be said on an order. ``key`` names it: it is said once, however often that is tried."""

    type: Literal["post.wanted"] = "post.wanted"
    key: str
    order: str
    text: str
    reason: str


class PostDone(Value):
    """It was said, as this comment; or cannot be said any more, and the note says why."""

    type: Literal["post.done"] = "post.done"
    key: str
    comment: str = ""
    note: str = ""


class ChangeWanted(Value):
    """A change is to be proposed: a measured candidate, with files of ours in a commit of their own on top of it.

    ``candidate`` is a commit of the target's mirror and ``tree`` its tree, which is what was measured.
    """

    type: Literal["change.wanted"] = "change.wanted"
    key: str
    order: str
    branch: str
    onto: str
    candidate: str
    tree: str
    files: dict[str, str] = Field(default_factory=dict)
    message: str = ""
    title: str
    body: str
    reason: str


class ChangeBound(Value):
    """The forge has it under this id."""

    type: Literal["change.bound"] = "change.bound"
    key: str
    change: str
    commit: str
    where: str


class ChangeSeen(Value):
    """What became of a proposed change. ``gone``: the forge answered, and it is not there any more."""

    type: Literal["change.seen"] = "change.seen"
    key: str
    status: Literal["open", "merged", "closed", "gone"]
    commit: str = ""


class RunEnded(Value):
    """The verdict. ``ending`` is one of the kind's words; ``result`` is the kind's own."""

    type: Literal["run.ended"] = "run.ended"
    ending: str
    reason: str
    result: dict[str, Any] = Field(default_factory=dict)


class RunClosed(Value):
    """Report and accounting are in place; the run leaves the live index."""

    type: Literal["run.closed"] = "run.closed"


Event = Annotated[
    RunStarted
    | StepsWanted
    | SubmissionIntended
    | SubmissionBound
    | SubmissionRefused
    | SubmissionAbandoned
    | Sighted
    | TryEnded
    | RunParked
    | PersonDecided
    | CancelAsked
    | AccountingArchived
    | ConclusionReached
    | PostWanted
    | PostDone
    | ChangeWanted
    | ChangeBound
    | ChangeSeen
    | RunEnded
    | RunClosed,
    Field(discriminator="type"),
]


class Author(Value):
    """Which process wrote a transaction."""

    host: str
    pid: int
    user: str
    version: str


class Transaction(Document):
    """``journal/NNNNNNNN.json``: events that hold together. ``nonce`` tells ours from another's after a lost reply."""

    name: ClassVar[str] = "transaction"

    run: str
    seq: int = Field(ge=1)
    nonce: str
    at: AwareDatetime
    by: Author
    events: tuple[Event, ...] = Field(min_length=1)
