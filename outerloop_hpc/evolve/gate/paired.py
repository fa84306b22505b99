"""``paired-v1``: the rules that turn the numbers of one look into a decision. Pure.

In this order: a broken harness; evidence that cannot be trusted; harm that is shown; too few pairs; no gain; doubts
that stand between a gain and its promotion; promotion. Nothing here compares a rounded number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from outerloop_hpc.evolve.gate import levels
from outerloop_hpc.evolve.gate.assessment import Assessment, TaskAssessed, assess
from outerloop_hpc.evolve.gate.decision import Word
from outerloop_hpc.evolve.gate.differences import allowed, asked, gain, shown
from outerloop_hpc.evolve.gate.estimate import Estimate
from outerloop_hpc.evolve.gate.evidence import Evidence
from outerloop_hpc.evolve.gate.policy import GatePolicy

#: What rounding of a double may take from a gain that is exactly the one asked for.
TIE = 1e-12
#: So many more readings that only the candidate lacks are hardly the machines' doing.
_LOPSIDED = 2
#: Characters of what a failed reading says; the end says most.
_REASON = 200


@dataclass(frozen=True, slots=True)
class Ruling:
    """A decision with its reasons; ``assessment`` where the numbers were looked at."""

    word: Word
    reasons: tuple[str, ...]
    assessment: Assessment | None = None


def rule(policy: GatePolicy, evidence: Evidence, *, look: int, salt: str) -> Ruling:
    """Decide one look on ordered evidence."""
    if broken := harness(evidence):
        return Ruling("harness_broken", (broken,))
    if unsound := [*evidence.problems, *lopsided(evidence)]:
        return Ruling("insufficient_evidence", tuple(unsound))
    found = assess(policy, evidence, levels.level(policy), salt)
    if vetoes := list(_vetoes(policy, found)):
        return Ruling("keep_incumbent", tuple(vetoes), found)
    if lacking := list(_lacking(policy, evidence, found, look)):
        return Ruling("insufficient_evidence", tuple(lacking), found)
    return _weighed(policy, found, last=look == levels.looks(policy))


def harness(evidence: Evidence) -> str:
    """Say that the incumbent, which is known to work, solved nothing; empty when it solved something."""
    whole = sum(len(task.judged) for task in evidence.tasks)
    if not whole or any(task.incumbent_solved for task in evidence.tasks):
        return ""
    return (
        f"the incumbent solved none of {whole} pairs in {len(evidence.tasks)} tasks{_mostly(evidence)}: the tasks, "
        "their commands or the image are broken; run one cell again by hand"
    )


def _mostly(evidence: Evidence) -> str:
    """Say what most of the incumbent's readings failed with; rows are in order, so a tie goes to the first."""
    failed = (row.pair.incumbent for row in evidence.rows if row.use == "counted")
    reasons = Counter(one.reason for one in failed if one.word == "failed" and one.reason)
    if not reasons:
        return ""
    (reason, times), *_ = reasons.most_common(1)
    return f" ({times} times: {reason[-_REASON:]})"


def lopsided(evidence: Evidence) -> Iterator[str]:
    """Yield that the candidate lacks clearly more readings than the incumbent."""
    incumbent, candidate = evidence.missing
    if candidate - incumbent >= _LOPSIDED:
        yield (
            f"{candidate} readings of the candidate are missing and {incumbent} of the incumbent: the candidate may "
            "cause the faults"
        )


def _vetoes(policy: GatePolicy, found: Assessment) -> Iterator[str]:
    """Yield harm that is shown."""
    success = policy.success
    if (success is None or success.deterministic) and found.success.lost:
        solved = found.success.incumbent_solved
        yield f"the candidate failed {found.success.lost} of {solved} pairs that the incumbent solved; none may fail"
    for task in found.gated:
        if success is not None and task.p_fails is not None and task.p_fails <= success.harm_level:
            yield (
                f"task {task.evidence.task}: the candidate solved {task.evidence.candidate_solved} and the incumbent "
                f"{task.evidence.incumbent_solved} of {len(task.evidence.judged)}, p = {task.p_fails:.4g} after Holm"
            )
        if task.beyond and task.p_harm is not None and task.p_harm <= policy.harm_level:
            yield f"{_worse(policy, task)}, p = {task.p_harm:.4g} after Holm"
    for guardrail in found.guardrails:
        if guardrail.sure:
            metric = guardrail.policy
            seen = shown(metric.scale, gain(metric.scale, guardrail.overall.mean))
            yield f"{metric.name} got worse than it may, surely: a gain of {seen}"


def _worse(policy: GatePolicy, task: TaskAssessed) -> str:
    scale = policy.primary.scale
    seen = gain(scale, 0.0 if task.own is None else task.own.mean)
    cap = gain(scale, allowed(scale, policy.max_task_regression))
    return f"task {task.evidence.task}: a gain of {shown(scale, seen)} is worse than the cap of {shown(scale, cap)}"


def _lacking(policy: GatePolicy, evidence: Evidence, found: Assessment, look: int) -> Iterator[str]:
    """Yield what is too little to decide on: pairs, or tasks that take part.

    A look decides on as many pairs as were planned for it. Otherwise losing a pair that speaks against the candidate
    could promote it.
    """
    planned = levels.planned(policy, look)
    for task in evidence.tasks:
        if len(task.judged) < planned:
            yield f"task {task.task} has {len(task.judged)} whole pairs of the {planned} that were planned"
    if not evidence.tasks:
        yield "the sweep has no tasks"
    elif 2 * len(found.gated) < len(found.tasks):
        yield f"{len(found.gated)} of {len(found.tasks)} tasks were solved by any arm, and half of them are needed"


def _weighed(policy: GatePolicy, found: Assessment, *, last: bool) -> Ruling:
    """Decide where the evidence is whole and shows no harm."""
    wins = list(_wins(policy, found))
    if not wins:
        against = tuple(_against(policy, found))
        if not last and _hope(policy, found):
            return Ruling("extend", against, found)
        undecided = found.thin and not _pointless(found)
        return Ruling("insufficient_evidence" if undecided else "keep_incumbent", against, found)
    if doubts := list(_doubts(policy, found)):
        return Ruling("insufficient_evidence" if last else "extend", (*wins, *doubts), found)
    return Ruling("promote", tuple(wins), found)


def _wins(policy: GatePolicy, found: Assessment) -> Iterator[str]:
    success = found.success
    if success.level and success.p <= success.level:
        yield (
            f"the candidate solved {success.candidate_solved} and the incumbent {success.incumbent_solved} of "
            f"{success.pairs} pairs, p = {success.p:.4g}, at most {success.level:.4g}"
        )
    if found.overall is None or found.p is None:
        return
    if found.p <= found.metric_level and reaches(policy, found.overall):
        seen = shown(policy.primary.scale, gain(policy.primary.scale, found.overall.mean))
        yield f"{policy.primary.name}: a gain of {seen}, p = {found.p:.4g}, at most {found.metric_level:.4g}"


def reaches(policy: GatePolicy, overall: Estimate) -> bool:
    """Whether the estimated gain is at least the one that is asked for."""
    effect = policy.primary.min_effect
    return gain(policy.primary.scale, overall.mean) >= effect - TIE * max(1.0, effect)


def _against(policy: GatePolicy, found: Assessment) -> Iterator[str]:
    """Yield why nothing was won."""
    if found.thin:
        yield found.thin
    if found.overall is None or found.p is None:
        return
    scale, name = policy.primary.scale, policy.primary.name
    seen = shown(scale, gain(scale, found.overall.mean))
    if found.p > found.metric_level:
        yield f"{name}: a gain of {seen} is not shown, p = {found.p:.4g} is above {found.metric_level:.4g}"
    if not reaches(policy, found.overall):
        yield f"{name}: a gain of {seen} is below {shown(scale, policy.primary.min_effect)}, which is asked for"


def _hope(policy: GatePolicy, found: Assessment) -> bool:
    """Whether more pairs may still promote: there is some gain, and the interval reaches what is asked for.

    Stopping early without a promotion can only make false ones rarer.
    """
    if found.success.won > found.success.lost or (found.thin and not _pointless(found)):
        return True
    effect = asked(policy.primary.scale, policy.primary.min_effect)
    overall = found.overall
    return overall is not None and effect is not None and overall.mean > 0 and overall.upper(policy.level / 2) >= effect


def _pointless(found: Assessment) -> bool:
    """Whether the candidate solves less than the incumbent, so that the metric hardly matters."""
    return found.success.lost > found.success.won


def _doubts(policy: GatePolicy, found: Assessment) -> Sequence[str]:
    """Return what is neither excluded nor shown, and would have to be excluded."""
    doubts = [f"{_worse(policy, task)}, which may be chance" for task in found.gated if task.beyond]
    for one in found.guardrails:
        if one.bound <= one.limit:
            scale = one.policy.scale
            bound, limit = shown(scale, gain(scale, one.bound)), shown(scale, gain(scale, one.limit))
            doubts.append(f"{one.policy.name} may have got worse: its bound {bound} is not above {limit}")
    if found.thin and policy.guardrails:
        doubts.append(f"the guardrails cannot be looked at: {found.thin}")
    success = found.success
    if policy.success is not None and success.bound is not None and success.bound < -policy.success.margin:
        doubts.append(
            f"the candidate may succeed less often: the bound of the difference is {success.bound:.4g}, and "
            f"{-policy.success.margin:g} is allowed"
        )
    return doubts
