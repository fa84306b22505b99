"""What is known of a run, as values that are replaced and never changed in place."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile
from typing import Any, ClassVar, Literal

from pydantic import AwareDatetime, Field

from outerloop_hpc.documents import Document, Value
from outerloop_hpc.engine import events as ev
from outerloop_hpc.engine.spec import ResourceAsk, StepSpec

#: Outcomes that used up one of a step's tries: an execution was, or may have been, under way.
COUNTED = frozenset({"lost", "out_of_memory"})
#: Outcomes of submissions that never became a job.
NEVER_STARTED = frozenset({"refused", "abandoned"})
#: Outcomes after which a step is tried again as long as tries are left.
REPEATED = frozenset({"lost", "refused", "abandoned", "superseded", "out_of_memory"})

#: The rule that ends tries whose sbatch was not started, since the scheduler was seen not to answer.
WITHHELD = "submit.withheld"

StepWord = Literal["record", "timed out", "out of memory", "cancelled by a person", "withdrawn", "tries exhausted"]


class Try(Value):
    """One execution of a step, as far as the journal knows.

    ``absent_since`` is set while the queue lacks it; ``absent_host`` is whose clock that is.
    """

    number: int
    submission: str
    index: int
    absent_since: AwareDatetime | None = None
    absent_host: str = ""
    absent_word: str = ""
    outcome: ev.TryOutcome | None = None
    rule: str = ""
    reason: str = ""
    word: str = ""
    node: str = ""
    node_unfit: bool = False
    begun: bool = False
    part: str = ""
    record_outcome: str = ""
    ended_at: AwareDatetime | None = None
    forgiven: bool = False


class Step(Value):
    """A step with its tries; ``payload`` is its valid record's, once there is one.

    ``withdrawn`` says why its kind wants no further try of it.
    """

    spec: StepSpec
    withdrawn: str = ""
    tries: tuple[Try, ...] = ()
    payload: dict[str, Any] = Field(default_factory=dict)

    @property
    def open_try(self) -> Try | None:
        """The try that has not ended."""
        return self.tries[-1] if self.tries and self.tries[-1].outcome is None else None

    @property
    def last(self) -> Try | None:
        """The newest try."""
        return self.tries[-1] if self.tries else None

    @property
    def waits(self) -> bool:
        """Whether it is to get a try, its first or another one, and has none under way."""
        return self.open_try is None and self.settled() is None

    @property
    def final(self) -> bool:
        """Whether it has found what it was to find, so that nobody's resume makes another try of it."""
        word = self.settled()
        return word == "record" or (word == "out of memory" and self.spec.memory_final)

    def counted(self) -> int:
        """How many tries were used up (a person's resume forgives earlier ones)."""
        return sum(1 for t in self.tries if t.outcome in COUNTED and not t.forgiven)

    def refusals(self) -> int:
        """How many submissions in a row never became a job, refused or without a trace; drives the back-off.

        One whose sbatch was not started says nothing about the next.
        """
        count = 0
        for one in reversed(self.tries):
            if one.rule == WITHHELD:
                continue
            if one.outcome not in NEVER_STARTED or one.forgiven:
                break
            count += 1
        return count

    def turned_down(self) -> int:
        """How many submissions since its last job sbatch refused; those without a trace say nothing about the ask."""
        since = takewhile(lambda one: one.outcome in NEVER_STARTED and not one.forgiven, reversed(self.tries))
        return sum(one.outcome == "refused" for one in since)

    def out_of_memory(self) -> int:
        """How many tries ran out of memory; one is repeated with more, where the ask says how much it was."""
        return sum(1 for t in self.tries if t.outcome == "out_of_memory" and not t.forgiven)

    def timed_out(self) -> int:
        """How many tries reached their walltime; one is repeated with more, where the step says how much more."""
        return sum(1 for t in self.tries if t.outcome == "timed_out" and not t.forgiven)

    def settled(self) -> StepWord | None:
        """The word that the kind sees; ``None`` while the step is under way or will be tried again."""
        last = self.last
        if last is None or last.outcome is None or last.forgiven:
            return "withdrawn" if self.withdrawn and self.open_try is None else None
        fixed: dict[str, StepWord] = {
            "done": "record",
            "timed_out": "timed out",
            "cancelled": "cancelled by a person",
            "withdrawn": "withdrawn",
        }
        if last.outcome == "timed_out" and self.spec.longer > 1 and self.timed_out() == 1:
            return "withdrawn" if self.withdrawn else None
        if last.outcome in fixed:
            return fixed[last.outcome]
        if last.outcome == "out_of_memory" and self.out_of_memory() > (self.spec.resources.memory_mb is not None):
            return "out of memory"
        if self.counted() >= self.spec.max_tries:
            return "tries exhausted"
        return "withdrawn" if self.withdrawn else None


class Submission(Value):
    """One submission and where it stands."""

    name: str
    compute: str
    user: str
    host: str
    cluster: str = ""
    elements: tuple[ev.Element, ...]
    resources: ResourceAsk
    intended_at: AwareDatetime
    status: Literal["intended", "bound", "refused", "abandoned"] = "intended"
    job_id: str = ""
    cancel_asked: bool = False
    archived: bool = False
    cpu_s: float | None = None
    gpu_s: float | None = None

    def job_of(self, index: int) -> str:
        """Name one element's job as the scheduler does: ``123`` or ``123_4``; ``-`` before it has an id."""
        if not self.job_id:
            return "-"
        return self.job_id if len(self.elements) == 1 else f"{self.job_id}_{index}"


class Post(Value):
    """Something said on an order, or to be said; ``wanted`` is kept until it was."""

    order: str
    wanted: ev.PostWanted | None = None
    comment: str = ""
    note: str = ""


class Change(Value):
    """A proposed change; ``wanted`` is kept until the forge has it."""

    wanted: ev.ChangeWanted | None = None
    change: str = ""
    branch: str
    commit: str = ""
    where: str = ""
    status: Literal["wanted", "open", "merged", "closed", "gone"] = "wanted"
    merged_as: str = ""


class Parked(Value):
    """What a person is asked."""

    question: str
    reason: str
    since: AwareDatetime
    tries: tuple[ev.Element, ...] = ()


class Ended(Value):
    """The verdict."""

    ending: str
    reason: str
    result: dict[str, Any] = Field(default_factory=dict)
    at: AwareDatetime


class RunState(Value):
    """The fold up to ``seq``. Values inside are replaced, never changed in place."""

    run: str
    seq: int = 0
    started_at: AwareDatetime | None = None
    changed_at: AwareDatetime | None = None
    steps: dict[str, Step] = Field(default_factory=dict)
    submissions: dict[str, Submission] = Field(default_factory=dict)
    parked: Parked | None = None
    ended: Ended | None = None
    closed: bool = False
    person: tuple[ev.PersonDecided, ...] = ()
    posts: dict[str, Post] = Field(default_factory=dict)
    changes: dict[str, Change] = Field(default_factory=dict)
    conclusions: dict[str, dict[str, Any]] = Field(default_factory=dict)

    def open_tries(self) -> Iterator[tuple[Step, Try, Submission]]:
        """Every try that has not ended, with its step and submission."""
        for step in self.steps.values():
            current = step.open_try
            if current is not None:
                yield step, current, self.submissions[current.submission]

    @property
    def resumed(self) -> int:
        """How often a person told the run to go on."""
        return sum(1 for decided in self.person if decided.action == "resume")

    @property
    def granted(self) -> int:
        """How often a person granted what the run asked for. To let go on what was only stopped grants nothing."""
        count, stopped = 0, False
        for decided in self.person:
            count += decided.action == "resume" and not stopped
            stopped = decided.action == "park"
        return count

    @property
    def forced(self) -> ev.PersonDecided | None:
        """The decision of the person who ended the run by force, if one did."""
        return next((one for one in reversed(self.person) if one.action == "end" and one.force), None)

    @property
    def phase(self) -> Literal["new", "running", "parked", "ended", "closed"]:
        """One word for lists."""
        if self.closed:
            return "closed"
        if self.ended is not None:
            return "ended"
        if self.parked is not None:
            return "parked"
        return "running" if self.started_at is not None else "new"


class Snapshot(Document):
    """``snapshot.json``: a state, and the version that folded it. Another one may fold otherwise, so it begins anew."""

    name: ClassVar[str] = "snapshot"

    folded_by: str
    state: RunState

    def encoded(self) -> bytes:
        """Return the file's bytes without what is default: nobody but the version that wrote them believes them."""
        return self.model_dump_json(by_alias=True, exclude_defaults=True).encode() + b"\n"
