"""Pairs put in order: which are whole, which arm solved what, and the differences that may be formed. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from outerloop_hpc.documents import Value
from outerloop_hpc.errors import Fault
from outerloop_hpc.evolve.gate.differences import difference
from outerloop_hpc.evolve.gate.pairs import Pair, Reading
from outerloop_hpc.evolve.gate.policy import GatePolicy, Guardrail, Metric

#: ``compared``: both arms solved it, so it has a difference. ``counted``: an arm failed; only the success tests see it.
#: ``unusable``: the incumbent's numbers cannot be compared. ``missing``: an arm has no reading. ``surplus``: beyond the
#: pairs that were planned for this look.
Use = Literal["compared", "counted", "unusable", "missing", "surplus"]
_SHOWN = 3


class Row(Value):
    """A pair as it was used, with its difference of the primary metric (twelve digits, for people)."""

    pair: Pair
    use: Use
    d: float | None = None


@dataclass(frozen=True, slots=True)
class Judged:
    """One whole pair. ``solved``: of incumbent and candidate. ``d``: by metric, only where both solved it."""

    solved: tuple[bool, bool]
    d: Mapping[str, float] = field(default_factory=dict)
    problem: str = ""


@dataclass(frozen=True, slots=True)
class TaskEvidence:
    """What is known of one task: its whole pairs in the order of their repeats, as many as were planned or fewer."""

    task: str
    judged: tuple[Judged, ...]

    def differences(self, metric: str) -> tuple[float, ...]:
        """Return the differences of a metric, of the pairs that have one."""
        return tuple(one.d[metric] for one in self.judged if metric in one.d)

    @property
    def incumbent_solved(self) -> int:
        """How many pairs the incumbent solved."""
        return sum(one.solved[0] for one in self.judged)

    @property
    def candidate_solved(self) -> int:
        """How many pairs the candidate solved."""
        return sum(one.solved[1] for one in self.judged)


@dataclass(frozen=True, slots=True)
class Evidence:
    """All pairs. ``problems``: as sentences.

    ``missing``: readings without an answer, of incumbent and candidate; not those that only the other arm took along.
    """

    rows: tuple[Row, ...]
    tasks: tuple[TaskEvidence, ...]
    missing: tuple[int, int]
    problems: tuple[str, ...]


def gather(policy: GatePolicy, pairs: Iterable[Pair], tasks: Iterable[str], planned: int | None) -> Evidence:
    """Put pairs in order; the answer does not depend on the order in which they are given.

    Args:
        policy: which metrics are needed.
        pairs: of one candidate and one stage; equal ones count once.
        tasks: every task that the sweep has, also those of which no pair is there.
        planned: whole pairs of each task to use, the first by repeat; ``None`` uses all.

    Raises:
        Fault: two different pairs for one task and repeat, or a pair of a task that the sweep does not have.
    """
    ordered = _ordered(pairs, tasks)
    rows: list[Row] = []
    found: list[TaskEvidence] = []
    for task, mine in ordered.items():
        judged: list[Judged] = []
        for pair in mine:
            if "missing" in (pair.incumbent.word, pair.candidate.word):
                rows.append(Row(pair=pair, use="missing"))
            elif planned is not None and len(judged) >= planned:
                rows.append(Row(pair=pair, use="surplus"))
            else:
                judged.append(_judge(policy, pair))
                rows.append(_row(policy, pair, judged[-1]))
        found.append(TaskEvidence(task, tuple(judged)))
    missing = (sum(_lost(row.pair.incumbent) for row in rows), sum(_lost(row.pair.candidate) for row in rows))
    problems = [one.problem for task in found for one in task.judged if one.problem]
    return Evidence(tuple(rows), tuple(found), missing, _few(problems))


def _ordered(pairs: Iterable[Pair], tasks: Iterable[str]) -> dict[str, list[Pair]]:
    """Return each task's pairs by repeat."""
    unique: dict[str, dict[int, Pair]] = {task: {} for task in sorted(set(tasks))}
    for pair in pairs:
        if pair.task not in unique:
            raise Fault(f"there is a pair of task {pair.task!r}, which the sweep does not have: nothing is decided")
        if unique[pair.task].setdefault(pair.repeat, pair) != pair:
            raise Fault(
                f"task {pair.task!r} has two different pairs for repeat {pair.repeat}: nothing is decided; find out "
                "which cell wrote them before the sweep goes on"
            )
    return {task: [mine[repeat] for repeat in sorted(mine)] for task, mine in unique.items()}


def _judge(policy: GatePolicy, pair: Pair) -> Judged:
    """Say who solved a whole pair and form its differences."""
    metrics: Sequence[Metric | Guardrail] = (policy.primary, *policy.guardrails)
    incumbent, candidate = _solved(pair.incumbent), _solved(pair.candidate)
    where = f"task {pair.task}, repeat {pair.repeat}"
    if incumbent and (lacking := _lacking(pair.incumbent, metrics)):
        return Judged((True, candidate), problem=f"{where}: the incumbent printed no finite number for {lacking}")
    # Numbers that only the candidate fails to give are its own failure, like a bad exit.
    candidate = candidate and not _lacking(pair.candidate, metrics)
    if not (incumbent and candidate):
        return Judged((incumbent, candidate))
    formed: dict[str, float] = {}
    for metric in metrics:
        old, new = pair.incumbent.metrics[metric.name], pair.candidate.metrics[metric.name]
        d = difference(metric, old, new)
        if d is None:
            return Judged((True, True), problem=f"{where}: {_incomparable(metric, old, new)}")
        formed[metric.name] = d
    return Judged((True, True), formed)


def _lost(reading: Reading) -> bool:
    return reading.word == "missing" and not reading.beside


def _solved(reading: Reading) -> bool:
    return reading.word == "measured" and reading.success is not False


def _lacking(reading: Reading, metrics: Sequence[Metric | Guardrail]) -> str:
    return ", ".join(one.name for one in metrics if not math.isfinite(reading.metrics.get(one.name, math.nan)))


def _incomparable(metric: Metric | Guardrail, old: float, new: float) -> str:
    if metric.scale == "ratio":
        return (
            f"{metric.name} is {old:g} (incumbent) and {new:g} (candidate), and a ratio needs numbers above 0: "
            "give the metric `scale: linear`"
        )
    return f"{metric.name} is {old:g} (incumbent) and {new:g} (candidate), too far apart to compute with"


def _row(policy: GatePolicy, pair: Pair, judged: Judged) -> Row:
    if judged.problem:
        return Row(pair=pair, use="unusable")
    d = judged.d.get(policy.primary.name)
    return Row(pair=pair, use="counted") if d is None else Row(pair=pair, use="compared", d=digits(d))


def digits(value: float) -> float:
    """Return twelve significant digits: for documents, which another machine's last bit must not change."""
    return float(f"{value:.12g}")


def _few(problems: Sequence[str]) -> tuple[str, ...]:
    more = len(problems) - _SHOWN
    return (*problems[:_SHOWN], *([f"{more} more pairs are like that"] if more > 0 else []))
