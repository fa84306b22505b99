"""``promotion/1``: what was promoted, on which evidence, and for how long that may be applied. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, ClassVar

from pydantic import AwareDatetime

from outerloop_hpc.documents import Document, Value, kept
from outerloop_hpc.engine.kind import view_of
from outerloop_hpc.engine.spec import Image, RunSpec, digest_of
from outerloop_hpc.engine.state import RunState
from outerloop_hpc.errors import Exit, Fault, OuterloopError
from outerloop_hpc.evolve.course import filled, stage_of
from outerloop_hpc.evolve.gate.decide import recompute
from outerloop_hpc.evolve.gate.decision import GateDecision
from outerloop_hpc.evolve.gate.pairs import Pair
from outerloop_hpc.evolve.work import Copy, EvolveWork, work_of

PROMOTED = "promoted"
#: A clock this far ahead of the evidence's is no evidence of its age.
_CLOCKS = timedelta(hours=1)


class NotApplicable(OuterloopError):  # noqa: N818 - states what happened
    """There is nothing that may be applied. Text: why, and what to do."""

    exit_status = Exit.NOT_APPLIED


class Unfounded(Fault):
    """A decision does not follow from the pairs that it names."""

    exit_status = Exit.HALTED


class Binding(Value):
    """Digests of all that a decision holds for; with another of any of these it says nothing.

    Attributes:
        document: of the sweep file's meaning. overlay: of the candidate.
        tasks: of each task with its pinned commit. oracles: of each task's hidden checks.
        base: of each incumbent file, by path.
    """

    document: str
    overlay: str
    target: str
    commit: str
    tasks: dict[str, str]
    oracles: dict[str, str]
    base: dict[str, str]
    image: Image
    policy: str


class Promotion(Document):
    """A promotion. ``decision`` is the whole gate decision, so that anybody can decide again from its pairs."""

    name: ClassVar[str] = "promotion"

    run: str
    generation: int
    decided_at: AwareDatetime
    expires_at: AwareDatetime
    binding: Binding
    copies: tuple[Copy, ...] = ()
    decision: GateDecision


def binding(spec: RunSpec, work: EvolveWork, overlay: str) -> Binding:
    """Return what a decision about this overlay is bound to."""
    return Binding(
        document=work.document,
        overlay=overlay,
        target=spec.target,
        commit=spec.commit,
        tasks={task.id: digest_of(task.model_dump(mode="json")) for task in work.tasks},
        oracles={task.id: digest_of(task.oracle.model_dump(mode="json")) for task in work.tasks if task.oracle},
        base=work.base,
        image=spec.image,
        policy=digest_of(work.gate.model_dump(mode="json")),
    )


def promotion(spec: RunSpec, state: RunState) -> Promotion | None:
    """Return a sweep's promotion; ``None`` when it promoted nothing, or has not ended."""
    ended = state.ended
    if ended is None or ended.ending != PROMOTED:
        return None
    work = work_of(spec)
    return Promotion(
        run=spec.run,
        generation=ended.result["generation"],
        decided_at=ended.at,
        expires_at=ended.at + timedelta(days=work.expires_days),
        binding=binding(spec, work, ended.result["overlay"]),
        copies=work.copies,
        decision=_decision(spec, state, str(ended.result["conclusion"])),
    )


def _decision(spec: RunSpec, state: RunState, key: str) -> GateDecision:
    if key not in state.conclusions:
        raise Unfounded(f"{spec.run}: its decision {key!a} is not in the journal any more; find out who changed that")
    found: GateDecision = kept(GateDecision, state.conclusions[key], f"{spec.run}, {key}")
    return found


def applicable(spec: RunSpec, state: RunState, now: datetime) -> Promotion:
    """Return a promotion that may be applied: it is there, it is young enough, and its pairs still decide the same.

    Raises:
        NotApplicable: nothing was promoted, or the evidence has expired.
        Unfounded: the decision does not follow from its own pairs, was made on other terms than the sweep's, or its
            pairs are not what the overlay's cells found; it was changed.
    """
    found = promotion(spec, state)
    if found is None:
        said = f"it ended as {state.ended.ending!r}: {state.ended.reason}" if state.ended else "it has not ended yet"
        raise NotApplicable(f"{spec.run} promoted nothing: {said}")
    if now > found.expires_at:
        raise NotApplicable(
            f"{spec.run}: its evidence expired on {found.expires_at:%Y-%m-%d}; submit the sweep again, under another "
            "name so that its seeds are fresh ones"
        )
    if now < found.decided_at - _CLOCKS:
        raise NotApplicable(f"{spec.run} was decided in the future by this host's clock; set the clock, then apply")
    _same_terms(spec, work_of(spec), found)
    again = recompute(found.decision)
    if again.encoded() != found.decision.encoded() or again.decision != "promote":
        raise Unfounded(
            f"{spec.run}: the decision does not follow from its pairs (again: {again.decision}); nothing is applied. "
            "Somebody changed the journal, or numbers are computed otherwise here; "
            f"`outerloop-hpc evolve gate {spec.run} --recompute` shows both"
        )
    _same_pairs(spec, state, found)
    return found


def _same_pairs(spec: RunSpec, state: RunState, found: Promotion) -> None:
    """Raise Unfounded unless the decision's pairs are those that cells of this very overlay found.

    A decision names no overlay: only its cells say which one it is about.
    """
    work, made = work_of(spec), found.decision
    stage = stage_of(work, found.generation, "confirm", [found.binding.overlay], made.look)
    known = filled(spec, work, stage, view_of(lambda: spec, state, found.decided_at)).found
    measured = [] if known is None or known.broken else list(map(_weighs, known.pairs[found.binding.overlay]))
    decided = [_weighs(row.pair) for row in made.rows]
    if sorted(measured, key=repr) != sorted(decided, key=repr):
        raise Unfounded(
            f"{spec.run}: the decision's pairs are not what the cells of overlay {found.binding.overlay[:12]} found; "
            "nothing is applied. Somebody changed the journal"
        )


def _weighs(pair: Pair) -> tuple[object, ...]:
    """Return what of a pair a decision rests on; wording of reasons may differ between versions."""
    arms = [(one.word, sorted(one.metrics.items()), one.success, one.cell) for one in (pair.incumbent, pair.candidate)]
    return (pair.task, pair.repeat, pair.seed, *arms)


def _same_terms(spec: RunSpec, work: EvolveWork, found: Promotion) -> None:
    """Raise Unfounded when a decision goes by another policy, other tasks or another sweep than this one."""
    made = found.decision
    terms = (made.policy, made.tasks, made.generation, made.salt)
    if terms != (work.gate, tuple(sorted(task.id for task in work.tasks)), found.generation, work.document):
        raise Unfounded(
            f"{spec.run}: the decision was not made on this sweep's terms (its policy, tasks, generation or document "
            "differ); nothing is applied. Somebody changed the journal"
        )


def documents(spec: RunSpec, state: RunState) -> Mapping[str, bytes]:
    """Return what an ended sweep publishes, by path below the state folder: its conclusions, and its promotion."""
    folder = f"results/evolve/{spec.target}/{spec.run}"
    found: dict[str, bytes] = {f"{folder}/{key}.json": _encoded(said) for key, said in state.conclusions.items()}
    if (promoted := promotion(spec, state)) is not None:
        found[f"{folder}/promotion.json"] = promoted.encoded()
    return found


def _encoded(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"
