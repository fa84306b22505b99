"""Small values of the engine for tests: a run with steps, evidence in words, a kind that does what it is told."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from outerloop_hpc.engine import events as ev
from outerloop_hpc.engine.evidence import Evidence, Files, Look
from outerloop_hpc.engine.fold import apply
from outerloop_hpc.engine.kind import Decision, Post, Submit, View
from outerloop_hpc.engine.plan import Here, Input, Plan, Unbound
from outerloop_hpc.engine.reconcile import plan
from outerloop_hpc.engine.records import Claim, Holder, Interrupted, Record, RecordOutcome
from outerloop_hpc.engine.rules import Policy
from outerloop_hpc.engine.spec import ResourceAsk, RunSpec, StepSpec
from outerloop_hpc.engine.state import RunState, Submission, Try
from outerloop_hpc.slurm.port import AccountingRow, Availability, QueueRow

T0 = datetime(2026, 11, 29, 12, tzinfo=UTC)
RUN = "benchmark-iris-20261129T120000Z-0123abcd"
POLICY = Policy()
ME = ev.Author(host="tick1", pid=7, user="ann", version="1")
SPEC = RunSpec(
    run=RUN, kind="benchmark", target="iris", commit="c0ffee00", cause="head moved", made_at=T0, made_by="ann"
)


def after(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def step(key: str = "measure-1", **more: Any) -> StepSpec:
    """``memory_mb``, ``minutes``, ``cpus`` and ``gpus`` go into the ask, all else into the step."""
    ask = {name: more.pop(name) for name in ("memory_mb", "minutes", "cpus", "gpus") if name in more}
    given = {"job": "measure", "cause": "tree", "body": "outerloop_hpc.x:y", "parameters": {"key": key}, **more}
    return StepSpec(key=key, resources=ResourceAsk(**{"minutes": 10, **ask}), **given)


def transaction(state: RunState, *events: ev.Event, at: datetime = T0, nonce: str = "n") -> ev.Transaction:
    return ev.Transaction(run=state.run, seq=state.seq + 1, nonce=nonce, at=at, by=ME, events=events)


def fold(state: RunState, *events: ev.Event, at: datetime = T0) -> RunState:
    return apply(state, transaction(state, *events, at=at)) if events else state


def intended(name: str, *elements: tuple[str, int], **more: Any) -> ev.SubmissionIntended:
    given = {"compute": "slurm", "user": "ann", "host": "tick1", "resources": ResourceAsk(minutes=10), **more}
    made = tuple(ev.Element(step=key, try_number=number) for key, number in elements)
    return ev.SubmissionIntended(name=name, elements=made, reason="to carry out", **given)


def submission(**more: Any) -> Submission:
    given = {
        "name": "ol.iris.measure.0011",
        "compute": "slurm",
        "user": "ann",
        "host": "tick1",
        "elements": (ev.Element(step="measure-1", try_number=1),),
        "resources": ResourceAsk(minutes=10),
        "intended_at": T0,
        "status": "bound",
        "job_id": "7",
    }
    return Submission(**{**given, **more})


def one_try(**more: Any) -> Try:
    return Try(**{"number": 1, "submission": "ol.iris.measure.0011", "index": 0, **more})


# --- evidence -------------------------------------------------------------------------------------------------------

ABSENT = "no row"
DOWN = "unavailable"
OFF = "disabled"


def look(queue: str = ABSENT, accounting: str = ABSENT, *, end: bool = True, **more: Any) -> Look:
    """``queue`` and ``accounting`` are a state word, or one of ABSENT, DOWN, OFF."""
    row = None
    if accounting not in {ABSENT, DOWN, OFF}:
        row = accounting_row(accounting, end=end, **{k: more.pop(k) for k in ("node", "uid") if k in more})
    return Look(
        queue=_available(queue),
        accounting=_available(accounting),
        queue_row=None if queue in {ABSENT, DOWN, OFF} else queue_row(queue),
        accounting_row=row,
        **more,
    )


def _available(said: str) -> Availability:
    return {DOWN: Availability.UNAVAILABLE, OFF: Availability.DISABLED}.get(said, Availability.ANSWERED)


def queue_row(state: str, *, reason: str = "None") -> QueueRow:
    return QueueRow("7", None, "ol.iris.measure.0011", "ann", state, reason)


def accounting_row(state: str, *, end: bool = True, node: str = "", uid: int | None = None) -> AccountingRow:
    submitted = int(T0.timestamp())
    return AccountingRow(
        job_id="7",
        task=None,
        step="",
        name="ol.iris.measure.0011",
        user="ann",
        cluster="c",
        state=state,
        cancelled_by=uid,
        submit=submitted,
        start=submitted + 1,
        end=submitted + 60 if end else None,
        exit_code=(0, 0),
        columns={"NodeList": node} if node else {},
    )


HOLDER = Holder(host="node7", pid=99, job_id="7")


def record(outcome: RecordOutcome = "completed", **more: Any) -> Record:
    given = {
        "run": RUN,
        "submission": "ol.iris.measure.0011",
        "index": 0,
        "step": "measure-1",
        "try_number": 1,
        "nonce": "abc",
        "started_at": T0,
        "ended_at": after(60),
        "holder": HOLDER,
    }
    return Record(outcome=outcome, **{**given, **more})


def claim(*, abandoned: bool = False) -> Claim:
    return Claim(nonce="abc", at=T0, holder=HOLDER, abandoned=abandoned)


def interrupted(signal: str = "SIGTERM") -> Interrupted:
    return Interrupted(nonce="abc", at=T0, signal=signal, holder=HOLDER)


def evidence(seen: Look, **files: Any) -> Evidence:
    return Evidence(Files(**files), seen)


# --- planning -------------------------------------------------------------------------------------------------------


@dataclass
class Told:
    """A kind that wants ``steps`` once, then does what ``then`` says."""

    steps: tuple[StepSpec, ...] = ()
    then: Callable[[View], tuple[Decision, ...]] = lambda _view: ()
    name: str = "benchmark"
    last_words: tuple[Post, ...] = ()

    def plan(self, view: View) -> tuple[Decision, ...]:
        if any(one.key not in view.steps for one in self.steps):
            return (Submit(self.steps, "as told"),)
        return self.then(view)

    def farewell(self, spec: RunSpec, state: RunState) -> tuple[Post, ...]:
        return self.last_words

    def report(self, spec: RunSpec, state: RunState) -> str:
        return ""

    def pages(self, spec: RunSpec, state: RunState) -> Mapping[str, str]:
        return {}

    def documents(self, spec: RunSpec, state: RunState) -> Mapping[str, bytes]:
        return {}


@dataclass
class Table:
    """One run on the table: plans, folds what was planned, and lets time pass."""

    kind: Told
    state: RunState = field(default_factory=lambda: RunState(run=RUN))
    now: datetime = T0
    policies: Mapping[str, Policy] = field(default_factory=lambda: {"slurm": POLICY})
    launches: int = 20
    largest: int = 1000
    host: str = "tick1"
    cluster: str = ""
    spec: RunSpec = SPEC

    def wait(self, seconds: float) -> Table:
        self.now += timedelta(seconds=seconds)
        return self

    def plan(
        self,
        seen: Evidence | Mapping[tuple[str, int], Evidence] | None = None,
        *,
        unbound: Mapping[str, Unbound] | None = None,
        inbox: Sequence[ev.PersonDecided] = (),
        archivable: Mapping[str, str] | None = None,
    ) -> Plan:
        """Plan and keep the state; one ``Evidence`` stands for every open try of a bound submission."""
        made = plan(
            Input(
                read_spec=lambda: self.spec,
                state=self.state,
                kind=self.kind,
                policies=self.policies,
                here=Here(self.host, "ann", "slurm", self.cluster, self.launches, self.largest),
                now=self.now,
                evidence=self.about_all(seen) if isinstance(seen, Evidence) else seen or {},
                unbound=unbound or {},
                inbox=inbox,
                archivable=archivable or {},
            )
        )
        folded = fold(self.state, *made.events, at=self.now)
        assert made.after == folded.model_copy(update={"changed_at": made.after.changed_at})
        self.state = folded
        return made

    def about_all(self, seen: Evidence) -> dict[tuple[str, int], Evidence]:
        return {(s.name, t.index): seen for _, t, s in self.state.open_tries() if s.status == "bound"}

    def say(self, *events: ev.Event) -> None:
        self.state = fold(self.state, *events, at=self.now)

    def bind(self, job_id: str = "7") -> list[str]:
        """Bind everything that is intended; returns the names."""
        names = [s.name for s in self.state.submissions.values() if s.status == "intended"]
        for name in names:
            self.say(ev.SubmissionBound(name=name, job_id=job_id))
        return names

    def start(self) -> list[str]:
        """Plan from nothing and bind what was submitted."""
        self.plan()
        return self.bind()

    def settled(self, key: str = "measure-1") -> str | None:
        return self.state.steps[key].settled()

    def phase(self) -> str:
        return self.state.phase

    def outcomes(self, key: str = "measure-1") -> list[str | None]:
        return [one.outcome for one in self.state.steps[key].tries]


def types(made: Plan) -> list[str]:
    return [event.type for event in made.events]


def rules_of(made: Plan) -> list[str]:
    return [line.rule for line in made.lines]


def decided(action: ev.PersonAction, file: str = "a.json") -> ev.PersonDecided:
    return ev.PersonDecided(file=file, action=action, who="bob", reason="because")
