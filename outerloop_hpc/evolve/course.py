"""How far a sweep has come: its generations, as its steps and conclusions tell them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from pydantic import ValidationError

from outerloop_hpc.engine.kind import Outcome, View
from outerloop_hpc.engine.spec import RunSpec, StepSpec
from outerloop_hpc.evolve.cells import Measured, Stage, StageName, laid_out, measured
from outerloop_hpc.evolve.findings import Candidate, ProposalFound
from outerloop_hpc.evolve.gate.evidence import gather
from outerloop_hpc.evolve.gate.levels import LEAST_A_TASK, planned
from outerloop_hpc.evolve.gate.paired import lopsided
from outerloop_hpc.evolve.gate.screening import Screened
from outerloop_hpc.evolve.work import EvolveWork

PROPOSE = "propose"


def screening_key(generation: int) -> str:
    """Name the conclusion of a generation's screening."""
    return f"screen-g{generation}"


def confirming_key(generation: int, look: int) -> str:
    """Name the conclusion of one look at a generation's confirming pairs."""
    return f"confirm-g{generation}-look{look}"


@dataclass(frozen=True, slots=True)
class Proposal:
    """What came of one proposal; ``failed`` says why it brought nothing, ``exhausted`` that there is no more."""

    candidates: tuple[Candidate, ...] = ()
    failed: str = ""
    exhausted: bool = False


def proposed(outcome: Outcome, known: frozenset[str]) -> Proposal:
    """Read a settled proposal; overlays that were measured before are not measured again."""
    if outcome.word != "record":
        return Proposal(failed=f"{outcome.word}: {outcome.reason}")
    if outcome.record_outcome != "completed":
        return Proposal(failed=outcome.reason or outcome.record_outcome)
    try:
        found = ProposalFound.model_validate(outcome.payload)
    except ValidationError as error:
        return Proposal(failed=f"its record cannot be read: {error.errors()[0]['msg']}")
    new = tuple(one for one in found.candidates if one.digest not in known)
    if new or found.exhausted:
        return Proposal(new, exhausted=found.exhausted)
    old = [f"{one.origin}: was measured before" for one in found.candidates]
    return Proposal(failed="; ".join([*(one.reason for one in found.refused), *old]) or "it proposed nothing")


def lacking(screened: Screened) -> bool:
    """Say whether a candidate was not judged for want of whole pairs: what machines lose is no verdict."""
    for one in screened.candidates:
        evidence = gather(screened.policy, [row.pair for row in one.rows], screened.tasks, None)
        if any(lopsided(evidence)) or any(len(task.judged) < LEAST_A_TASK for task in evidence.tasks):
            return True
    return False


def proposals(view: View) -> dict[int, StepSpec]:
    """Return the proposals that were asked for, by generation."""
    return {step.round: step for step in view.steps.values() if step.job == PROPOSE}


def outdated(view: View, keys: Iterable[str]) -> tuple[str, ...]:
    """Return those of these steps that a sweep has gone on without: what they would bring changes nothing any more."""
    # Once for all of them: a sweep may have thousands that wait, of thousands.
    newest = max((step.round for step in view.steps.values()), default=0)
    return tuple(key for key in keys if _outdated(view, view.steps[key], newest))


def _outdated(view: View, step: StepSpec, newest: int) -> bool:
    if step.round < newest:
        return True
    if step.parameters.get("stage") == "screen" and screening_key(step.round) in view.conclusions:
        return True
    return any(_confirmed(view, step.round, look) for look in (1, 2))


def _confirmed(view: View, generation: int, look: int) -> bool:
    known = view.conclusions.get(confirming_key(generation, look))
    return known is not None and known.get("decision") != "extend"


def stage_of(work: EvolveWork, generation: int, name: StageName, candidates: Sequence[str], look: int = 1) -> Stage:
    """Return a stage as it was planned, without refills."""
    count = work.gate.repeats.screen if name == "screen" else planned(work.gate, look)
    return Stage(generation, name, tuple(candidates), {task.id: count for task in work.tasks})


#: So many refills for each planned pair of a task: a cluster that loses more is not measured on.
_REFILLS = 0.5


def with_refills(planned: int) -> int:
    """Return how many pairs of a task a stage may have at most, those in the place of lost ones included."""
    return planned + max(1, int(planned * _REFILLS))


@dataclass(frozen=True, slots=True)
class Filled:
    """A stage with the refills that it wants. ``found``: what is known once all its cells are settled."""

    stage: Stage
    found: Measured | None = None
    steps: tuple[StepSpec, ...] = field(default=())


def filled(spec: RunSpec, work: EvolveWork, stage: Stage, view: View) -> Filled:
    """Put a fresh pair in the place of each one that lacks a reading, as far as that is allowed.

    A pair that is lost says nothing; one that replaces it has another seed. The numbers of pairs only grow, so every
    pass finds the same ones.
    """
    first = dict(stage.repeats)
    while True:
        laid = laid_out(spec, work, stage)
        steps, found = tuple(step for step, _ in laid), measured(work, stage, laid, view)
        if found is None:
            return Filled(stage, None, steps)
        more = {
            task: min(first[task] + missing, with_refills(first[task])) for task, missing in found.missing().items()
        }
        if found.broken or all(stage.repeats[task] >= count for task, count in more.items()):
            return Filled(stage, found, steps)
        grown = {task: max(count, more.get(task, 0)) for task, count in stage.repeats.items()}
        stage = replace(stage, repeats=grown)
