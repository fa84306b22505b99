"""What a kind of work adds to the engine: one pure ``plan`` from outcomes to decisions, and words.

A kind's own state is a function of its spec and its steps' outcomes, so it is computed and never stored:
a replay cannot disagree with it and a snapshot cannot be too old for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from outerloop_hpc.engine.spec import ResourceAsk, RunSpec, StepSpec
from outerloop_hpc.engine.spend import Spend, spend_of
from outerloop_hpc.engine.state import Change, RunState, StepWord
from outerloop_hpc.engine.submissions import resources_of


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one settled step, without any Slurm word.

    Attributes:
        word: one of the closed set.
        record_outcome: the record's own outcome (``completed``, ``failed``, ``refused``) when the word is ``record``.
        payload: the record's content for the kind.
        reason: why, for people.
        begun: whether any try of the step began what no repetition gives back (``records.Begun``).
        submission, index: where its last try's files are.
        part: what one of its tries was lost with, the newest that says so (``body.Result``); empty where none does.
    """

    word: StepWord
    record_outcome: str = ""
    payload: Mapping[str, Any] = field(default_factory=dict)
    reason: str = ""
    node: str = ""
    begun: bool = False
    submission: str = ""
    index: int = 0
    part: str = ""


@dataclass(frozen=True, slots=True)
class View:
    """All that a kind's plan may look at.

    Attributes:
        outcomes: by step key, of the steps that are settled; the others are under way or will be tried again.
        read_spec: gives the specification; ``spec`` asks it. A run that only has to wait needs none, so look at the
            outcomes first: a pass over thousands of quiet runs then reads thousands of files less.
        resumed: how often a person told the run to go on.
        said: keys of posts that are on their order, or can never be.
        unheard: keys of those that can never be: their order is not there any more.
        changes: proposed changes by their key; one that the forge has not got yet has the status ``wanted``.
        conclusions: documents that the kind concluded earlier, by their key.
        lost_in_a_row: executions lost to the machines since the last one that left a record, by the part of the body
            that they were lost with (empty where nobody knows). What ran out of memory is not among them, since that
            may be its own doing.
        read_spend: adds up what the run has used; ``spend`` asks it.
        waiting: steps that get a try, their first or another one, as soon as they may: by key, with what it asks for.
    """

    read_spec: Callable[[], RunSpec]
    steps: Mapping[str, StepSpec]
    outcomes: Mapping[str, Outcome]
    resumed: int
    now: datetime
    said: frozenset[str] = frozenset()
    changes: Mapping[str, Change] = field(default_factory=dict)
    unheard: frozenset[str] = frozenset()
    conclusions: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    lost_in_a_row: Mapping[str, int] = field(default_factory=dict)
    read_spend: Callable[[], Spend] = Spend
    waiting: Mapping[str, ResourceAsk] = field(default_factory=dict)

    @property
    def spend(self) -> Spend:
        """What the run has used so far, and may still use."""
        return self.read_spend()

    @property
    def spec(self) -> RunSpec:
        """The specification; never changes."""
        return self.read_spec()

    @property
    def under_way(self) -> bool:
        """Whether any step is not settled."""
        return len(self.outcomes) < len(self.steps)


@dataclass(frozen=True, slots=True)
class Submit:
    """Carry out these steps. Steps that the run has already are found again by their key."""

    steps: tuple[StepSpec, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class Ask:
    """Park the run until a person resumes or ends it."""

    question: str
    reason: str


@dataclass(frozen=True, slots=True)
class Cancel:
    """End what is under way of these steps, with the whole submissions that hold it, and want no further try."""

    steps: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class Hold:
    """Submit no try of these steps in this pass; the next one asks anew."""

    steps: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class Conclude:
    """Keep this conclusion, computed once: what follows rests on it. The kind is asked anew at once."""

    key: str
    document: Mapping[str, Any]
    reason: str


@dataclass(frozen=True, slots=True)
class Post:
    """Say this on an order, once. ``text`` is complete and harmless: nothing of it is changed on its way."""

    key: str
    order: str
    text: str
    reason: str


@dataclass(frozen=True, slots=True)
class Propose:
    """Propose a measured candidate as a change, with files of the tool's own in a commit on top of it.

    Attributes:
        key: names it within the run; one change for each.
        branch: a branch of this run alone.
        onto: branch that it is to be merged into.
        candidate: commit of the mirror. tree: its tree, which is what was measured.
        files: contents by path. message: of the commit that brings them.
    """

    key: str
    order: str
    branch: str
    onto: str
    candidate: str
    tree: str
    files: Mapping[str, str]
    message: str
    title: str
    body: str
    reason: str


@dataclass(frozen=True, slots=True)
class End:
    """The run's verdict."""

    ending: str
    reason: str
    result: Mapping[str, Any]


Decision = Submit | Ask | Cancel | Hold | Conclude | Post | Propose | End


class Kind(Protocol):
    """One kind of work. All its functions are pure."""

    @property
    def name(self) -> str:
        """Its word: steward, benchmark, evolve or feature."""
        ...

    def plan(self, view: View) -> tuple[Decision, ...]:
        """Say what the run needs now; nothing when it only has to wait."""
        ...

    def farewell(self, spec: RunSpec, state: RunState) -> tuple[Post, ...]:
        """Say what is still to be posted once the run has ended, whoever ended it; it is closed after that."""
        ...

    def report(self, spec: RunSpec, state: RunState) -> str:
        """Return the kind's part of ``report.md``, Markdown."""
        ...

    def pages(self, spec: RunSpec, state: RunState) -> Mapping[str, str]:
        """Return what stands beside ``report.md``, by file name; made anew whenever that is. Deterministic."""
        ...

    def documents(self, spec: RunSpec, state: RunState) -> Mapping[str, bytes]:
        """Return what an ended run publishes, by path relative to the state folder. Deterministic."""
        ...


def view_of(read_spec: Callable[[], RunSpec], state: RunState, now: datetime) -> View:
    """Build the kind's view of a run from the fold."""
    outcomes: dict[str, Outcome] = {}
    for key, step in state.steps.items():
        word, last = step.settled(), step.last
        if word is not None and last is None:
            outcomes[key] = Outcome(word, reason=step.withdrawn)
        elif word is not None and last is not None:
            outcomes[key] = Outcome(
                word,
                last.record_outcome,
                step.payload,
                last.reason,
                last.node,
                any(t.begun for t in step.tries),
                last.submission,
                last.index,
                next((t.part for t in reversed(step.tries) if t.part), ""),
            )
    return View(
        read_spec,
        {key: step.spec for key, step in state.steps.items()},
        outcomes,
        state.resumed,
        now,
        frozenset(key for key, post in state.posts.items() if post.wanted is None),
        state.changes,
        frozenset(key for key, post in state.posts.items() if post.wanted is None and not post.comment),
        state.conclusions,
        _lost_in_a_row(state),
        lambda: spend_of(state),
        {key: resources_of(step) for key, step in state.steps.items() if step.waits},
    )


def _lost_in_a_row(state: RunState) -> dict[str, int]:
    tries = [one for step in state.steps.values() for one in step.tries if one.ended_at is not None]
    lost = [one for one in tries if one.outcome == "lost" and not one.forgiven]
    if not lost:
        return {}
    done = max((one.ended_at for one in tries if one.outcome == "done" and one.ended_at), default=None)
    return dict(Counter(t.part for t in lost if done is None or (t.ended_at is not None and t.ended_at > done)))
