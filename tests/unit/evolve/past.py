"""A sweep that has a past: proposals, cells and conclusions as its plan leaves them, as a fold and as a view."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from outerloop_hpc.documents import Document
from outerloop_hpc.engine import events as ev
from outerloop_hpc.engine.kind import View, view_of
from outerloop_hpc.engine.spec import ResourceAsk, RunSpec, step_spec
from outerloop_hpc.engine.state import RunState
from outerloop_hpc.evolve.cells import Stage, StageName, cells_of, laid_out, measured, steps_of
from outerloop_hpc.evolve.course import PROPOSE, confirming_key, screening_key
from outerloop_hpc.evolve.findings import ArmFound, Candidate, CellFound, ProposalFound
from outerloop_hpc.evolve.gate.decide import decide
from outerloop_hpc.evolve.gate.decision import GateDecision
from outerloop_hpc.evolve.gate.policy import GatePolicy, Metric, Repeats
from outerloop_hpc.evolve.gate.screening import Screened, screen
from outerloop_hpc.evolve.given import CellGiven, ProposeGiven
from outerloop_hpc.evolve.work import Dirs, EvolveWork, OverlayRules, Proposer, Task, dump
from tests.unit.engine.made import T0, fold, intended

A, B = "a" * 64, "b" * 64
RUN = "evolve-t-20261129T120000Z-0123abcd"
ASK = ResourceAsk(minutes=6)
POLICY = GatePolicy(
    primary=Metric(name="cost", direction="min"), generations=2, repeats=Repeats(screen=2, confirm=6, most=6)
)

#: Says what an arm of a cell came to; ``None`` is a cell that machines lost.
Found = Callable[[CellGiven, str], ArmFound | None]


def work(*, unit: str = "pair", proposer: Proposer | None = None, **more: Any) -> EvolveWork:
    given: dict[str, Any] = {
        "name": "rates",
        "document": "d" * 64,
        "overlay": OverlayRules(allow=("solver",)),
        "proposer": proposer or Dirs(digests=(A, B)),
        "candidates": 2,
        "tasks": tuple(
            Task(id=name, kind="small", commit="c" * 40, tree="t", command=("true",), timeout_s=1, resources=ASK)
            for name in ("one", "two")
        ),
        "unit": unit,
        "gate": POLICY,
        "base": {"solver": "0" * 64},
        "proposing": ASK,
    }
    return EvolveWork(**{**given, **more})


def arm(name: str, cost: float | None, **more: Any) -> ArmFound:
    """One arm's execution; without a cost it failed."""
    if cost is None:
        return ArmFound(arm=name, word="failed", **{"reason": "exit 1", "seconds": 2.0, "cpu_s": 1.0, **more})
    return ArmFound(arm=name, word="measured", metrics={"cost": cost}, **{"seconds": 2.0, "cpu_s": cost, **more})


def costs(**by_overlay: float | None) -> Found:
    """Say what the incumbent (``base``) and candidates (``a``, ``b``) cost; a little more with each repeat."""

    def found(cell: CellGiven, name: str) -> ArmFound | None:
        cost = by_overlay["base" if name == "incumbent" else cell.overlay[:1]]
        # Repeats differ alike in both arms, and a little otherwise.
        wobble = 1 + cell.repeat / 50 + (0.001 * (cell.seed % 7) if name == "candidate" else 0)
        overlay = "" if name == "incumbent" else cell.overlay
        return arm(name, None if cost is None else cost * wobble, overlay=overlay)

    return found


class Past:
    """A run's state, made step by step as the plan and its jobs would."""

    def __init__(self, given: EvolveWork | None = None) -> None:
        self.work = given or work()
        self.spec = RunSpec(
            run=RUN,
            kind="evolve",
            target="t",
            commit="c" * 40,
            cause="sweep",
            made_at=T0,
            made_by="ann",
            work=dump(self.work),
        )
        self.state = fold(RunState(run=RUN), ev.RunStarted(spec_digest="x"))
        self._submitted = 0

    @property
    def view(self) -> View:
        return view_of(lambda: self.spec, self.state, T0)

    def proposal(self, generation: int, found: ProposalFound | None, reason: str = "") -> None:
        """A proposal that came to this; ``None`` is one that timed out."""
        step = step_spec(
            self.spec,
            job=PROPOSE,
            cause=f"generation {generation}",
            body="outerloop_hpc.evolve.bodies.propose:propose",
            resources=ASK,
            parameters=ProposeGiven(generation=generation).model_dump(mode="json", exclude_none=True),
            max_tries=1,
            round_=generation,
        )
        name = self._submit([step], "propose")
        payload = {} if found is None else found.model_dump(mode="json", exclude_none=True)
        outcome: ev.TryOutcome = "timed_out" if found is None else "done"
        self._ended(step.key, outcome, payload, reason, record_outcome="" if found is None else "completed")
        self.accounted(name, 60.0)

    def candidates(self, generation: int, *digests: str, **more: Any) -> None:
        """A proposal that brought these."""
        self.proposal(generation, ProposalFound(candidates=tuple(map(candidate, digests)), **more))

    def measure(
        self, generation: int, stage: StageName, candidates: Iterable[str], repeats: int, found: Found
    ) -> tuple[Stage, str]:
        """The cells of a stage and what they came to. Returns the stage and the submission."""
        planned = Stage(generation, stage, tuple(candidates), {task.id: repeats for task in self.work.tasks})
        steps, cells = steps_of(self.spec, self.work, planned), cells_of(self.work, planned)
        name = self._submit(steps, stage)
        for step, cell in zip(steps, cells, strict=True):
            arms = [found(cell, one) for one in cell.arms]
            if None in arms:
                self._ended(step.key, "cancelled", {}, "the node was lost", node="n2")
                continue
            said = CellFound(cell=cell.cell, task=cell.task, seed=cell.seed, arms=tuple(filter(None, arms)), node="n1")
            self._ended(step.key, "done", said.model_dump(mode="json"), "", record_outcome="completed")
        return planned, name

    def screen(self, generation: int, digests: Iterable[str], found: Found) -> Screened:
        """Screening, and its conclusion."""
        stage, name = self.measure(generation, "screen", digests, self.work.gate.repeats.screen, found)
        self.accounted(name, 7200.0)
        said = screen(self.work.gate, self._pairs(stage), tasks=self._tasks(), generation=generation, salt="s")
        self.conclude(screening_key(generation), said)
        return said

    def confirm(self, generation: int, digest: str, found: Found) -> GateDecision:
        """Confirmation, and its conclusion."""
        stage, _ = self.measure(generation, "confirm", [digest], self.work.gate.repeats.confirm, found)
        pairs = self._pairs(stage)[digest]
        said = decide(self.work.gate, pairs, tasks=self._tasks(), generation=generation, look=1, salt="s")
        self.conclude(confirming_key(generation, 1), said)
        return said

    def conclude(self, key: str, document: Document) -> None:
        self._fold(
            ev.ConclusionReached(
                key=key, document=document.model_dump(mode="json", by_alias=True), reason="as it was found"
            )
        )

    def accounted(self, name: str, cpu_s: float | None) -> None:
        """Accounting of a submission was archived; ``None``: it never said anything."""
        self._fold(ev.AccountingArchived(submission=name, rows=1, cpu_s=cpu_s, gpu_s=None if cpu_s is None else 0.0))

    def end(self, ending: str, reason: str = "because", **result: Any) -> None:
        self._fold(ev.RunEnded(ending=ending, reason=reason, result=result))

    def _tasks(self) -> list[str]:
        return [task.id for task in self.work.tasks]

    def _pairs(self, stage: Stage) -> Mapping[str, Any]:
        known = measured(self.work, stage, laid_out(self.spec, self.work, stage), self.view)
        assert known is not None
        return known.pairs

    def _submit(self, steps: Iterable[Any], what: str) -> str:
        made = tuple(steps)
        name = f"ol.t.{what}.{self._submitted:02d}"
        self._submitted += 1
        self._fold(
            ev.StepsWanted(steps=made, reason=what),
            intended(name, *((step.key, 1) for step in made), resources=ASK),
            ev.SubmissionBound(name=name, job_id=str(self._submitted)),
        )
        return name

    def _ended(self, key: str, outcome: ev.TryOutcome, payload: dict[str, Any], reason: str, **more: Any) -> None:
        ended = ev.TryEnded(step=key, try_number=1, outcome=outcome, rule="r", reason=reason, payload=payload, **more)
        self._fold(ended)

    def _fold(self, *events: ev.Event) -> None:
        self.state = fold(self.state, *events)


def candidate(digest: str, **more: Any) -> Candidate:
    return Candidate(**{"digest": digest, "files": ("solver",), "bytes": 4, "origin": f"dirs[{digest[:1]}]", **more})
