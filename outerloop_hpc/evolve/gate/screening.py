"""Which of several candidates is worth confirming, by a few pairs each. Pure.

Screening decides nothing about promotion: its pairs never enter the test, so choosing the best of several is free.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from outerloop_hpc.documents import Document, Value
from outerloop_hpc.evolve.gate import levels, medians
from outerloop_hpc.evolve.gate.assessment import Assessment, assess
from outerloop_hpc.evolve.gate.differences import gain, shown
from outerloop_hpc.evolve.gate.evidence import Evidence, Row, digits, gather
from outerloop_hpc.evolve.gate.libraries import require
from outerloop_hpc.evolve.gate.paired import harness, lopsided, reaches
from outerloop_hpc.evolve.gate.pairs import Pair
from outerloop_hpc.evolve.gate.policy import GatePolicy


class CandidateScreened(Value):
    """One candidate. ``passed``: it might be confirmed; ``reason`` says why, or why not. ``gain`` as in a decision."""

    digest: str
    passed: bool
    reason: str
    p: float | None = None
    gain: float | None = None
    rows: tuple[Row, ...] = ()


class Screened(Document):
    """``gate-screening/1``. ``chosen``: the digest to confirm, empty where there is none, as ``reason`` says."""

    name = "gate-screening"

    policy: GatePolicy
    tasks: tuple[str, ...]
    generation: int
    salt: str
    decision: Literal["confirm", "none", "harness_broken"]
    chosen: str = ""
    reason: str
    candidates: tuple[CandidateScreened, ...] = ()


#: How good a candidate is, greatest best: pairs won by success where that counts, then the estimated difference.
_Rank = tuple[int, float]


def screen(
    policy: GatePolicy, pairs: Mapping[str, Iterable[Pair]], *, tasks: Iterable[str], generation: int, salt: str
) -> Screened:
    """Choose at most one candidate to confirm.

    Args:
        policy: what the sweep goes by.
        pairs: of each candidate, by its digest; also pairs with missing readings.
        tasks: every task of the sweep.
        generation: from 0.
        salt: text that random draws follow from.

    Raises:
        Fault: as ``decide``.
        UsageError: the generation was not planned.
        ConfigError: the ``stats`` extra is lacking.
    """
    levels.check(policy, generation, 1)
    require()
    names = tuple(sorted(set(tasks)))
    evidence = {digest: gather(policy, pairs[digest], names, None) for digest in sorted(pairs)}
    judged = {digest: _judge(policy, one, f"{salt}|{generation}|screen|{digest}") for digest, one in evidence.items()}
    candidates = tuple(found.model_copy(update={"digest": digest}) for digest, (found, _) in judged.items())
    ranks = {digest: rank for digest, (found, rank) in judged.items() if found.passed}
    broken = [harness(one) for one in evidence.values()]
    # Digests are sorted, so a tie goes to the first of them.
    chosen = max(ranks, key=lambda digest: ranks[digest], default="")
    if broken and all(broken):
        word, chosen, reason = "harness_broken", "", broken[0]
    elif chosen:
        word, reason = "confirm", f"{chosen[:12]} is the best of {len(ranks)} that passed, of {len(candidates)}"
    else:
        # Where there is but one, why it did not is all that anybody wants to know.
        why = f": {candidates[0].reason}" if len(candidates) == 1 else ""
        word, reason = "none", f"none of {len(candidates)} candidates passed{why}"
    return Screened(
        policy=policy,
        tasks=names,
        generation=generation,
        salt=salt,
        decision=word,
        chosen=chosen,
        reason=reason,
        candidates=candidates,
    )


def recompute(document: Screened) -> Screened:
    """Screen again from a document's own pairs; its bytes are equal unless the document was changed."""
    return screen(
        document.policy,
        {one.digest: [row.pair for row in one.rows] for one in document.candidates},
        tasks=document.tasks,
        generation=document.generation,
        salt=document.salt,
    )


def _judge(policy: GatePolicy, evidence: Evidence, salt: str) -> tuple[CandidateScreened, _Rank]:
    if policy.kind == "medians-v5":
        return _by_medians(policy, evidence)
    if out := _unfit(policy, evidence):
        return CandidateScreened(digest="", passed=False, reason=out, rows=evidence.rows), (0, 0.0)
    found = assess(policy, evidence, policy.screen_level, salt)
    passed, reason, rank = _ranked(policy, found)
    overall = found.overall
    scale = policy.primary.scale
    judged = CandidateScreened(
        digest="",
        passed=passed,
        reason=reason,
        p=None if found.p is None else digits(found.p),
        gain=None if overall is None else digits(gain(scale, overall.mean)),
        rows=evidence.rows,
    )
    return judged, rank


def _unfit(policy: GatePolicy, evidence: Evidence) -> str:
    """Say why a candidate is out whatever its numbers are; empty when it is not."""
    if broken := harness(evidence):
        return broken
    if unsound := [*evidence.problems, *lopsided(evidence)]:
        return "; ".join(unsound)
    solved = sum(task.incumbent_solved for task in evidence.tasks)
    lost = sum(one.solved == (True, False) for task in evidence.tasks for one in task.judged)
    if lost and (policy.success is None or policy.success.deterministic):
        return f"it failed {lost} of {solved} pairs that the incumbent solved; none may fail"
    lacking = [task.task for task in evidence.tasks if len(task.judged) < levels.LEAST_A_TASK]
    if lacking:
        return f"fewer than {levels.LEAST_A_TASK} whole pairs of {', '.join(lacking)}"
    return ""


def _ranked(policy: GatePolicy, found: Assessment) -> tuple[bool, str, _Rank]:
    """Return whether a candidate passes, why, and its rank."""
    lead = found.success.won - found.success.lost
    overall, p = found.overall, found.p
    mean = 0.0 if overall is None else overall.mean
    if lead > 0 and found.success.p <= policy.screen_level:
        return True, f"it solved {lead} pairs more, p = {found.success.p:.4g}", (lead, mean)
    if overall is None or p is None:
        return False, found.thin, (0, mean)
    seen = shown(policy.primary.scale, gain(policy.primary.scale, mean))
    if not reaches(policy, overall):
        effect = shown(policy.primary.scale, policy.primary.min_effect)
        return False, f"a gain of {seen} is below {effect}, which is asked for", (0, mean)
    if p > policy.screen_level:
        return False, f"a gain of {seen} may be chance: p = {p:.4g} is above {policy.screen_level:g}", (0, mean)
    return True, f"a gain of {seen}, p = {p:.4g}", (0, mean)


def _by_medians(policy: GatePolicy, evidence: Evidence) -> tuple[CandidateScreened, _Rank]:
    tasks = medians.medians(policy, evidence)
    word, reasons = medians.rule(policy, evidence, tasks)
    gained = medians.improvement(tasks)
    judged = CandidateScreened(
        digest="",
        passed=word == "promote",
        reason="; ".join(reasons),
        gain=None if gained is None else digits(gained / 100),
        rows=evidence.rows,
    )
    return judged, (sum(task.resolved[1] - task.resolved[0] for task in tasks), gained or 0.0)
