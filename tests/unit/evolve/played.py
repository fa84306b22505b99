"""A sweep that is played to its end with made-up outcomes: the engine's own plan and fold, no cluster."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from outerloop_hpc.engine import events as ev
from outerloop_hpc.engine.kind import Outcome, View, view_of
from outerloop_hpc.engine.spec import ResourceAsk, RunSpec, StepSpec
from outerloop_hpc.engine.state import RunState
from outerloop_hpc.evolve.cells import JOB
from outerloop_hpc.evolve.findings import ArmFound, Candidate, CellFound, ProposalFound, Refused
from outerloop_hpc.evolve.gate.policy import GatePolicy, Metric, Repeats
from outerloop_hpc.evolve.given import CellGiven
from outerloop_hpc.evolve.plan import EvolveKind
from outerloop_hpc.evolve.work import Budget, Dirs, EvolveWork, OverlayRules, Task, dump
from tests.unit.engine.made import T0, Table, decided, types

A, B, C = ("a" * 64, "b" * 64, "c" * 64)
RUN = "evolve-t-20261129T120000Z-0123abcd"
ASK = ResourceAsk(minutes=60)

#: How a try ends: fields of ``TryEnded``. ``None``: it is still under way.
Ending = dict[str, Any] | None
Answer = Callable[[StepSpec], Ending]
Gain = Callable[[CellGiven], float]


def policy(**more: Any) -> GatePolicy:
    given = {"primary": Metric(name="cost", direction="min"), "repeats": Repeats(screen=2, confirm=4, most=8), **more}
    return GatePolicy(**given)


def work(**more: Any) -> EvolveWork:
    """``tasks`` is their number, ``gate`` a policy."""
    names = [f"t{number}" for number in range(more.pop("tasks", 2))]
    given = {
        "name": "rates",
        "document": "d",
        "overlay": OverlayRules(allow=("solver",)),
        "proposer": Dirs(digests=(A, B)),
        "tasks": tuple(
            Task(id=name, commit="c", tree="t", command=("true",), timeout_s=1, resources=ASK) for name in names
        ),
        "unit": "cell",
        "gate": policy(),
        "base": {"solver": "0"},
        "proposing": ResourceAsk(minutes=5),
        "budget": Budget(),
        "max_tries": 2,
        **more,
    }
    return EvolveWork(**given)


def spec_of(made: EvolveWork) -> RunSpec:
    return RunSpec(
        run=RUN, kind="evolve", target="t", commit="c", cause="sweep", made_at=T0, made_by="ann", work=dump(made)
    )


# --- answers --------------------------------------------------------------------------------------------------------


def done(payload: Any, outcome: str = "completed", reason: str = "") -> dict[str, Any]:
    dumped = payload if isinstance(payload, dict) else payload.model_dump(mode="json", exclude_none=True)
    return {"outcome": "done", "record_outcome": outcome, "payload": dumped, "reason": reason}


def lost(reason: str = "NODE_FAIL", part: str = "") -> dict[str, Any]:
    return {"outcome": "lost", "reason": reason, "part": part}


def refused(reason: str) -> dict[str, Any]:
    return done({"integrity": reason}, "refused", reason)


def proposal(*digests: str, exhausted: bool = False, money: float = 0.0, because: str = "") -> dict[str, Any]:
    made = tuple(Candidate(digest=one, files=("solver",), bytes=1, origin=one[:4]) for one in digests)
    no = (Refused(reason=because, kind="invalid-overlay"),) if because else ()
    return done(ProposalFound(candidates=made, refused=no, exhausted=exhausted, money=money))


def noise(cell: CellGiven, arm: str) -> float:
    """A factor within 1 % of one that follows from seed and arm."""
    drawn = hashlib.sha256(f"{cell.seed}{arm}{cell.overlay}".encode()).digest()[0]
    return math.exp((drawn - 127.5) / 25500)


def measured(step: StepSpec, gain: Gain = lambda _: 0.0, *, failed: frozenset[str] = frozenset()) -> dict[str, Any]:
    """A cell's record: ``gain`` is what its candidate saves; arms that ``failed`` have no numbers."""
    cell = CellGiven.model_validate(step.parameters)
    return done(CellFound(cell=cell.cell, task=cell.task, seed=cell.seed, arms=tuple(_arms(cell, gain, failed))))


def _arms(cell: CellGiven, gain: Gain, failed: frozenset[str]) -> list[ArmFound]:
    made = []
    for arm in cell.in_order():
        overlay = cell.overlay if arm == "candidate" else ""
        if arm in failed:
            made.append(ArmFound(arm=arm, overlay=overlay, word="failed", reason="exit 1"))
            continue
        cost = 100 * noise(cell, arm) * (1 - gain(cell) if arm == "candidate" else 1)
        made.append(ArmFound(arm=arm, overlay=overlay, word="measured", metrics={"cost": cost}))
    return made


def answers(
    proposals: dict[int, Ending] | None = None,
    gain: Gain = lambda _: 0.0,
    cells: Callable[[StepSpec, CellGiven], Ending] | None = None,
) -> Answer:
    """Proposals by generation (A unless told), and cells by ``gain`` unless ``cells`` has its own."""
    told = {0: proposal(A), **(proposals or {})}

    def answer(step: StepSpec) -> Ending:
        if step.job != JOB:
            return told.get(step.round, proposal(exhausted=True))
        cell = CellGiven.model_validate(step.parameters)
        own = cells(step, cell) if cells else None
        return own or measured(step, gain)

    return answer


def of(stage: str, gain: float) -> Gain:
    """A candidate that saves ``gain`` in one stage, and nothing in the others."""
    return lambda cell: gain if cell.stage == stage else 0.0


# --- the play -------------------------------------------------------------------------------------------------------


@dataclass
class Play:
    """One sweep, and what was decided in it."""

    work: EvolveWork
    table: Table = field(init=False)
    said: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        spec = spec_of(self.work)
        kind: Any = EvolveKind()
        self.table = Table(kind, RunState(run=RUN), spec=spec)

    @property
    def state(self) -> RunState:
        return self.table.state

    def look(self, *inbox: ev.PersonDecided) -> list[str]:
        """One pass; what it submits is bound at once."""
        made = types(self.table.plan(inbox=inbox))
        self.table.bind()
        self.said += made
        return made

    def end(self, answer: Answer, *, reverse: bool = False, most: int | None = None) -> int:
        """End every open try as ``answer`` says, at most so many; returns how many ended."""
        open_ = [(step.spec, one) for step, one, _ in self.state.open_tries()]
        events: list[ev.TryEnded] = []
        for spec, one in reversed(open_) if reverse else open_:
            told = answer(spec)
            if told is not None and (most is None or len(events) < most):
                given = {"rule": "made", "reason": "so it was made up", **told}
                events.append(ev.TryEnded(step=spec.key, try_number=one.number, **given))
        self.table.say(*events)
        self.table.wait(4000)
        return len(events)

    def play(self, answer: Answer, *, reverse: bool = False, rounds: int = 60) -> Play:
        """Go on until the sweep has ended, waits for a person, or nothing moves any more."""
        for _ in range(rounds):
            self.look()
            if self.state.ended or self.state.parked or not self.end(answer, reverse=reverse):
                break
        return self

    def resume(self, name: str = "r.json") -> Play:
        self.look(decided("resume", name))
        return self

    def archive(self, hours: float, *names: str) -> None:
        """Accounting says that each of these submissions used so much, of all when none is named."""
        for name in names or self.state.submissions:
            said = ev.AccountingArchived(submission=name, rows=1, cpu_s=3600 * hours, gpu_s=0.0)
            self.table.say(said)

    def ending(self) -> tuple[str, str]:
        """The verdict's word and reason."""
        assert self.state.ended is not None, self.state.parked
        return self.state.ended.ending, self.state.ended.reason

    def question(self) -> str:
        assert self.state.parked is not None, self.state.ended
        return self.state.parked.question

    def cells(self, **wanted: Any) -> list[CellGiven]:
        """The cells that were wanted, by their fields."""
        found = [CellGiven.model_validate(s.spec.parameters) for s in self.state.steps.values() if s.spec.job == JOB]
        return [one for one in found if all(getattr(one, key) == value for key, value in wanted.items())]

    def view(self) -> View:
        return view_of(lambda: self.table.spec, self.state, self.table.now)

    def outcomes(self) -> dict[str, Outcome]:
        return dict(self.view().outcomes)
