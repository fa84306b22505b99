"""What a plan rests on and what it is: frozen values, so that a dry run prints just what a pass would do. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from outerloop_hpc.engine import events as ev
from outerloop_hpc.engine.basis import Basis
from outerloop_hpc.engine.evidence import Evidence
from outerloop_hpc.engine.kind import Kind
from outerloop_hpc.engine.rules import Policy
from outerloop_hpc.engine.spec import RunSpec
from outerloop_hpc.engine.state import RunState
from outerloop_hpc.forge.port import Change


@dataclass(frozen=True, slots=True)
class Unbound:
    """What is known of a submission whose answer was lost.

    Attributes:
        found: job id that the scheduler has under its name, or that a started element wrote into its claim.
        answered: whether queue and accounting (where there is one) both answered, so that absence means something.
    """

    found: str | None
    answered: bool


@dataclass(frozen=True, slots=True)
class Here:
    """Who plans, and what may be launched.

    Attributes:
        launches: how many submissions this plan may add; 0 under PAUSE, HOLD, a full disk.
        largest: elements per array.
    """

    host: str
    user: str
    compute: str
    cluster: str
    launches: int
    largest: int


@dataclass(frozen=True, slots=True)
class Input:
    """Everything one plan rests on. Tries without evidence (submitted after the look) are left alone.

    ``silent`` says when each compute's accounting was last seen silent; ``changes`` is what the forge answered about
    the run's proposed changes, by their key, with ``None`` for one that is not there any more. ``speechless``: nothing
    can be said there now.
    """

    read_spec: Callable[[], RunSpec]
    state: RunState
    kind: Kind
    policies: Mapping[str, Policy]
    here: Here
    now: datetime
    evidence: Mapping[tuple[str, int], Evidence] = field(default_factory=dict)
    unbound: Mapping[str, Unbound] = field(default_factory=dict)
    inbox: Sequence[ev.PersonDecided] = ()
    archivable: Mapping[str, str] = field(default_factory=dict)
    silent: Mapping[str, datetime] = field(default_factory=dict)
    changes: Mapping[str, Change | None] = field(default_factory=dict)
    speechless: bool = False

    @property
    def spec(self) -> RunSpec:
        """The run's specification, read when first needed."""
        return self.read_spec()


@dataclass(frozen=True, slots=True)
class Line:
    """One ruling or decision for people: dry runs, ``explain`` and logs print these. ``basis``: what it rests on."""

    subject: str
    rule: str
    verdict: str
    reason: str
    needs: str = ""
    basis: Basis | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """What to commit, then what to do.

    Attributes:
        events: the transaction; empty when nothing changed.
        after: the state after it.
        taken: inbox files that need no more attention.
        abandon: unbound submissions to give up, once their claims are taken.
        archive: submissions whose accounting rows are to be archived, with a note on what is missing.
        let_go: those of them that a person ended by force: their jobs may still come or live.
        post: keys of posts to be made. propose: keys of changes to be opened.
        close: whether everything is in place and the run leaves the live index.
    """

    events: tuple[ev.Event, ...]
    after: RunState
    lines: tuple[Line, ...]
    taken: tuple[str, ...] = ()
    abandon: tuple[str, ...] = ()
    archive: tuple[tuple[str, str], ...] = ()
    let_go: tuple[str, ...] = ()
    post: tuple[str, ...] = ()
    propose: tuple[str, ...] = ()
    close: bool = False

    @property
    def idle(self) -> bool:
        """Whether there is nothing to commit and nothing to do."""
        to_do = (self.events, self.taken, self.abandon, self.archive, self.post, self.propose)
        return not (any(to_do) or self.close)
