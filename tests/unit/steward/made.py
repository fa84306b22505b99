"""Small values of the steward kind: a run's specification, findings, and a view of its settled steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from outerloop_hpc.engine import kind as kinds
from outerloop_hpc.engine.kind import Decision, Outcome, View
from outerloop_hpc.engine.ruler import Ruler
from outerloop_hpc.engine.spec import ResourceAsk, RunSpec, StepSpec
from outerloop_hpc.engine.state import Change
from outerloop_hpc.forge.port import Order
from outerloop_hpc.steward.findings import SessionFound, ValidationFound
from outerloop_hpc.steward.plan import StewardKind
from outerloop_hpc.steward.steps import MEASURE, VALIDATE, session_step, trial_steps
from outerloop_hpc.steward.work import AgentWork, OrderText, StepAsk, StewardWork, Territories, claim_id, dump
from tests.unit.engine.made import T0

RUN = "steward-iris-20261129T120000Z-0123abcd"
CANDIDATE, TREE = "c" * 40, "d" * 40
KIND = StewardKind()


def ruler(name: str = "score") -> Ruler:
    return Ruler(benchmark=name, command="python3 evaluate.py", metric=name, direction="max", eval_minutes=1)


def work(**more: Any) -> StewardWork:
    ask = StepAsk(resources=ResourceAsk(minutes=10))
    given: dict[str, Any] = {
        "order": OrderText(order_id="7", title="It can be gamed", body="benchmark: score", author="ada"),
        "claim": claim_id("iris", RUN),
        "attempt": 1,
        "identity": "outerloop",
        "onto": "main",
        "tree": "e" * 40,
        "contract": "benchmarks: []",
        "contract_digest": "f" * 64,
        "ruler": ruler(),
        "siblings": (ruler("other"),),
        "seeds": (11, 12),
        "territories": Territories(allowed=("evaluate.py",), forbidden=("solver.py",)),
        "agent": AgentWork(command=("agent",), turns=10, minutes=10),
        "session": ask,
        "validate": ask,
        "measure": ask,
    }
    return StewardWork(**{**given, **more})


def spec(**more: Any) -> RunSpec:
    return RunSpec(
        run=RUN,
        kind="steward",
        target="iris",
        commit="b" * 40,
        cause="order 7",
        made_at=T0,
        made_by="ann",
        work=dump(work(**more)),
    )


def found(word: str = "changed", **more: Any) -> SessionFound:
    change = {"candidate": CANDIDATE, "tree": TREE, "changed": ("evaluate.py",)} if word == "changed" else {}
    return SessionFound.model_validate({"word": word, "reason": "because", **change, **more})


def done(payload: Mapping[str, Any], record: str = "completed") -> Outcome:
    return Outcome("record", record, payload, "because")


def said(session: SessionFound) -> Outcome:
    return done(session.model_dump(mode="json", exclude_none=True))


PASSED = done(ValidationFound(passed=True).model_dump(mode="json"))
VALUE = done({"value": 4.0})


@dataclass
class Story:
    """A run as its plan sees it: how its session ended, then its trial, then its change."""

    spec: RunSpec = field(default_factory=spec)
    session: Outcome | None = None
    validation: Outcome | None = None
    measures: tuple[Outcome | None, ...] = ()
    said: frozenset[str] = frozenset({"claimed"})
    unheard: frozenset[str] = frozenset()
    change: Change | None = None
    begun: bool = True

    def plan(self) -> tuple[Decision, ...]:
        steps, outcomes = self._steps()
        changes = {} if self.change is None else {"change": self.change}
        return KIND.plan(View(lambda: self.spec, steps, outcomes, 0, T0, self.said, changes, self.unheard))

    def one(self) -> Decision:
        (only,) = self.plan()
        return only

    def end(self) -> tuple[str, str]:
        """Return the ending and its reason."""
        decision = self.one()
        assert isinstance(decision, kinds.End), decision
        return decision.ending, decision.reason

    def _steps(self) -> tuple[dict[str, StepSpec], dict[str, Outcome]]:
        steps: dict[str, StepSpec] = {}
        outcomes: dict[str, Outcome] = {}
        given = StewardWork.model_validate(self.spec.work)
        if not self.begun:
            return steps, outcomes
        self._add(steps, outcomes, session_step(self.spec, given), self.session)
        if self.validation is not None or self.measures:
            measures = iter(self.measures)
            for step in trial_steps(self.spec, given, found()):
                outcome = self.validation if step.job == VALIDATE else next(measures, None)
                assert step.job in {VALIDATE, MEASURE}
                self._add(steps, outcomes, step, outcome)
        return steps, outcomes

    @staticmethod
    def _add(steps: dict[str, StepSpec], outcomes: dict[str, Outcome], step: StepSpec, outcome: Outcome | None) -> None:
        steps[step.key] = step
        if outcome is not None:
            outcomes[step.key] = outcome


def order(body: str = "benchmark: score", **more: Any) -> Order:
    given: dict[str, Any] = {
        "order_id": "7",
        "title": "It can be gamed",
        "body": body,
        "author": "ada",
        "trusted": True,
        "labels": ("outerloop:steward",),
        "opened_at": T0,
        "touched_at": T0,
    }
    return Order(**{**given, **more})


def minutes(count: float) -> timedelta:
    return timedelta(minutes=count)
