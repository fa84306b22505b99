"""Decide on confirming pairs, and decide again from a document. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from outerloop_hpc.evolve.gate import levels, medians, paired, power
from outerloop_hpc.evolve.gate.assessment import Assessment, TaskAssessed
from outerloop_hpc.evolve.gate.decision import GateDecision, GuardrailFound, TaskFound
from outerloop_hpc.evolve.gate.differences import gain
from outerloop_hpc.evolve.gate.estimate import mean, spread, variance
from outerloop_hpc.evolve.gate.evidence import Evidence, digits, gather
from outerloop_hpc.evolve.gate.libraries import require
from outerloop_hpc.evolve.gate.pairs import Pair
from outerloop_hpc.evolve.gate.policy import GatePolicy


def decide(
    policy: GatePolicy, pairs: Iterable[Pair], *, tasks: Iterable[str], generation: int, look: int, salt: str
) -> GateDecision:
    """Decide on the confirming pairs of one candidate.

    Args:
        policy: what the sweep goes by.
        pairs: all of the candidate's confirming pairs so far, refills and missing ones included, in any order.
        tasks: every task of the sweep; one without pairs is too little evidence, not one less to pass.
        generation: from 0.
        look: 1 after ``repeats.confirm`` pairs a task, 2 after ``repeats.most``.
        salt: text that random draws follow from, such as the sweep's digest.

    Returns:
        The decision with all that it rests on; ``recompute`` finds it again from that.

    Raises:
        Fault: two different pairs for one task and repeat, or one of a task that the sweep does not have.
        UsageError: a generation or look that was not planned.
        ConfigError: the ``stats`` extra is lacking.
    """
    levels.check(policy, generation, look)
    names = tuple(sorted(set(tasks)))
    given: dict[str, Any] = {
        "policy": policy,
        "tasks": names,
        "generation": generation,
        "look": look,
        "looks": levels.looks(policy),
        "salt": salt,
    }
    if policy.kind == "medians-v5":
        return medians.decide(policy, gather(policy, pairs, names, None), given)
    require()
    evidence = gather(policy, pairs, names, levels.planned(policy, look))
    ruling = paired.rule(policy, evidence, look=look, salt=f"{salt}|{generation}|{look}")
    given |= {"decision": ruling.word, "reasons": ruling.reasons, "notes": _notes(evidence, ruling.assessment)}
    numbers = {} if ruling.assessment is None else _numbers(policy, ruling.assessment)
    return GateDecision(**given, **numbers, rows=evidence.rows)


def recompute(document: GateDecision) -> GateDecision:
    """Decide again from a document's own pairs; its bytes are equal unless the document was changed."""
    return decide(
        document.policy,
        [row.pair for row in document.rows],
        tasks=document.tasks,
        generation=document.generation,
        look=document.look,
        salt=document.salt,
    )


def _notes(evidence: Evidence, found: Assessment | None) -> tuple[str, ...]:
    notes = []
    surplus = sum(row.use == "surplus" for row in evidence.rows)
    if any(evidence.missing):
        notes.append(
            f"readings are missing: {evidence.missing[0]} of the incumbent, {evidence.missing[1]} of the candidate"
        )
    if surplus:
        notes.append(f"{surplus} whole pairs beyond the plan were left out")
    if found is not None:
        ungated = [task.evidence.task for task in found.tasks if not task.gated and task.evidence.judged]
        if ungated:
            notes.append(f"neither arm ever solved {', '.join(ungated)}: not counted")
    return tuple(notes)


def _numbers(policy: GatePolicy, found: Assessment) -> dict[str, Any]:
    """Return an assessment's part of the document."""
    numbers: dict[str, Any] = {
        "level": digits(found.level),
        "metric_level": digits(found.metric_level),
        "found": tuple(_task(policy, task) for task in found.tasks),
        "success": found.success.model_copy(update=_rounded(found)),
        "guardrails": _guardrails(found),
    }
    overall = found.overall
    if overall is None or found.p is None:
        return numbers
    scale = policy.primary.scale
    samples = [task.differences for task in found.gated]
    return numbers | {
        "p": digits(found.p),
        "mean": digits(overall.mean),
        "error": digits(overall.error),
        "freedom": digits(overall.freedom),
        "bound": digits(overall.lower(found.level)),
        "gain": digits(gain(scale, overall.mean)),
        "gain_low": digits(gain(scale, overall.lower(policy.level / 2))),
        "gain_high": digits(gain(scale, overall.upper(policy.level / 2))),
        "power": power.of(policy, spread(samples), len(samples), overall.pairs),
    }


def _rounded(found: Assessment) -> dict[str, float | None]:
    success = found.success
    return {
        "p": digits(success.p),
        "level": digits(success.level),
        "bound": None if success.bound is None else digits(success.bound),
    }


def _task(policy: GatePolicy, task: TaskAssessed) -> TaskFound:
    scale, own = policy.primary.scale, task.own
    shown = task.p_harm is not None and task.p_harm <= policy.harm_level
    numbers: dict[str, float] = {}
    if task.differences:
        middle = mean(task.differences)
        numbers = {"mean": digits(middle), "gain": digits(gain(scale, middle))}
    if own is not None and task.p_harm is not None:
        numbers |= {
            "sd": digits(variance(task.differences) ** 0.5),
            "gain_low": digits(gain(scale, own.lower(policy.level / 2))),
            "gain_high": digits(gain(scale, own.upper(policy.level / 2))),
            "p_harm": digits(task.p_harm),
        }
    if task.p_fails is not None:
        numbers["p_fails"] = digits(task.p_fails)
    return TaskFound(
        task=task.evidence.task,
        gated=task.gated,
        pairs=len(task.evidence.judged),
        compared=len(task.differences),
        incumbent_solved=task.evidence.incumbent_solved,
        candidate_solved=task.evidence.candidate_solved,
        harm=("shown" if shown else "suspected") if task.beyond else "none",
        **numbers,
    )


def _guardrails(found: Assessment) -> tuple[GuardrailFound, ...]:
    return tuple(
        GuardrailFound(
            name=one.policy.name,
            mean=digits(one.overall.mean),
            bound=digits(one.bound),
            limit=digits(one.limit),
            word="broken" if one.sure else "holds" if one.bound > one.limit else "not-shown",
        )
        for one in found.guardrails
    )
