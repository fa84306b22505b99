"""The fold of a journal: what is known of a run. Pure: ``apply(state, transaction) -> state``."""

from __future__ import annotations

from collections.abc import Iterator
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
    record_outcome: str = ""
    ended_at: AwareDatetime | None = None
    forgiven: bool = False


class Step(Value):
    """A step with its tries; ``payload`` is its valid record's, once there is one."""

    spec: StepSpec
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

    def counted(self) -> int:
        """How many tries were used up (a person's resume forgives earlier ones)."""
        return sum(1 for t in self.tries if t.outcome in COUNTED and not t.forgiven)

    def refusals(self) -> int:
        """How many submissions in a row never became a job, refused or without a trace; drives the back-off."""
        count = 0
        for one in reversed(self.tries):
            if one.outcome not in NEVER_STARTED or one.forgiven:
                break
            count += 1
        return count

    def out_of_memory(self) -> int:
        """How many tries ran out of memory; one is repeated with more, where the ask says how much it was."""
        return sum(1 for t in self.tries if t.outcome == "out_of_memory" and not t.forgiven)

    def settled(self) -> StepWord | None:
        """The word that the kind sees; ``None`` while the step is under way or will be tried again."""
        last = self.last
        if last is None or last.outcome is None or last.forgiven:
            return None
        fixed: dict[str, StepWord] = {
            "done": "record",
            "timed_out": "timed out",
            "cancelled": "cancelled by a person",
            "withdrawn": "withdrawn",
        }
        if last.outcome in fixed:
            return fixed[last.outcome]
        if last.outcome == "out_of_memory" and self.out_of_memory() > (self.spec.resources.memory_mb is not None):
            return "out of memory"
        return "tries exhausted" if self.counted() >= self.spec.max_tries else None


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

    def job_of(self, index: int) -> str:
        """Name one element's job as the scheduler does: ``123`` or ``123_4``; ``-`` before it has an id."""
        if not self.job_id:
            return "-"
        return self.job_id if len(self.elements) == 1 else f"{self.job_id}_{index}"


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


class _Fold:
    """Applies one transaction to copies of the containers; the old state stays as it was."""

    def __init__(self, state: RunState, transaction: ev.Transaction) -> None:
        self.at = transaction.at
        self.steps = dict(state.steps)
        self.submissions = dict(state.submissions)
        self.rest: dict[str, Any] = {
            "started_at": state.started_at,
            "parked": state.parked,
            "ended": state.ended,
            "closed": state.closed,
            "person": state.person,
        }

    def take(self, event: ev.Event) -> None:
        getattr(self, "_" + event.type.replace(".", "_"))(event)

    def _run_started(self, _: ev.RunStarted) -> None:
        self.rest["started_at"] = self.at

    def _steps_wanted(self, event: ev.StepsWanted) -> None:
        for spec in event.steps:
            self.steps.setdefault(spec.key, Step(spec=spec))

    def _submission_intended(self, event: ev.SubmissionIntended) -> None:
        self.submissions[event.name] = Submission(
            name=event.name,
            compute=event.compute,
            user=event.user,
            host=event.host,
            cluster=event.cluster,
            elements=event.elements,
            resources=event.resources,
            intended_at=self.at,
        )
        for index, element in enumerate(event.elements):
            step = self.steps[element.step]
            new = Try(number=element.try_number, submission=event.name, index=index)
            self.steps[element.step] = step.model_copy(update={"tries": (*step.tries, new)})

    def _submission_bound(self, event: ev.SubmissionBound) -> None:
        # An answer without a cluster (a job found by its name) keeps the one that it was sent to.
        cluster = event.cluster or self.submissions[event.name].cluster
        self._submission(event.name, status="bound", job_id=event.job_id, cluster=cluster)

    def _submission_refused(self, event: ev.SubmissionRefused) -> None:
        self._submission(event.name, status="refused", archived=True)
        self._end_all(event.name, "refused", "submit.refused", event.complaint)

    def _submission_abandoned(self, event: ev.SubmissionAbandoned) -> None:
        self._submission(event.name, status="abandoned", archived=True)
        self._end_all(event.name, "abandoned", "submit.abandoned", event.reason)

    def _sighted(self, event: ev.Sighted) -> None:
        for seen in event.sightings:
            element = self.submissions[seen.submission].elements[seen.index]
            update = (
                {"absent_since": self.at, "absent_host": event.host, "absent_word": seen.word}
                if seen.absent
                else {"absent_since": None, "absent_host": "", "absent_word": ""}
            )
            self._try(element.step, element.try_number, update)

    def _try_ended(self, event: ev.TryEnded) -> None:
        self._try(
            event.step,
            event.try_number,
            {
                "outcome": event.outcome,
                "rule": event.rule,
                "reason": event.reason,
                "word": event.word,
                "node": event.node,
                "node_unfit": event.node_unfit,
                "record_outcome": event.record_outcome,
                "ended_at": self.at,
                "forgiven": event.rule == ev.GAVE_UP,
            },
        )
        if event.outcome == "done":
            self.steps[event.step] = self.steps[event.step].model_copy(update={"payload": event.payload})

    def _run_parked(self, event: ev.RunParked) -> None:
        self.rest["parked"] = Parked(question=event.question, reason=event.reason, since=self.at, tries=event.tries)

    def _person_decided(self, event: ev.PersonDecided) -> None:
        self.rest["person"] = (*self.rest["person"], event)
        if event.action == "resume":
            self.rest["parked"] = None
            for key, step in self.steps.items():
                if step.settled() not in {None, "record"} or step.refusals():
                    forgiven = tuple(t.model_copy(update={"forgiven": t.outcome is not None}) for t in step.tries)
                    self.steps[key] = step.model_copy(update={"tries": forgiven})

    def _cancel_asked(self, event: ev.CancelAsked) -> None:
        for name in event.submissions:
            self._submission(name, cancel_asked=True)

    def _accounting_archived(self, event: ev.AccountingArchived) -> None:
        self._submission(event.submission, archived=True)

    def _run_ended(self, event: ev.RunEnded) -> None:
        self.rest["ended"] = Ended(ending=event.ending, reason=event.reason, result=event.result, at=self.at)
        self.rest["parked"] = None

    def _run_closed(self, _: ev.RunClosed) -> None:
        self.rest["closed"] = True

    def _submission(self, name: str, **update: Any) -> None:
        self.submissions[name] = self.submissions[name].model_copy(update=update)

    def _try(self, key: str, number: int, update: dict[str, Any]) -> None:
        step = self.steps[key]
        tries = tuple(t.model_copy(update=update) if t.number == number else t for t in step.tries)
        self.steps[key] = step.model_copy(update={"tries": tries})

    def _end_all(self, name: str, outcome: ev.TryOutcome, rule: str, reason: str) -> None:
        update = {"outcome": outcome, "rule": rule, "reason": reason, "ended_at": self.at}
        for element in self.submissions[name].elements:
            self._try(element.step, element.try_number, update)


def apply(state: RunState, transaction: ev.Transaction) -> RunState:
    """Fold one transaction into the state; the transaction must be the next one."""
    fold = _Fold(state, transaction)
    for event in transaction.events:
        fold.take(event)
    return state.model_copy(
        update={
            **fold.rest,
            "seq": transaction.seq,
            "changed_at": transaction.at,
            "steps": fold.steps,
            "submissions": fold.submissions,
        }
    )
