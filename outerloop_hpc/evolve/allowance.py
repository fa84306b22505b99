"""Whether a sweep may submit more: its budgets against what accounting says that it has used. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from outerloop_hpc.engine.kind import View
from outerloop_hpc.engine.spec import ResourceAsk, StepSpec
from outerloop_hpc.evolve.cells import JOB
from outerloop_hpc.evolve.findings import proposal_found
from outerloop_hpc.evolve.work import Budget


@dataclass(frozen=True, slots=True)
class Allowance:
    """``go``; ``wait`` for accounting that would say more; or ``over``, and which budget is."""

    word: Literal["go", "wait", "over"]
    reason: str = ""


def allowance(budget: Budget, view: View, more: Sequence[StepSpec]) -> Allowance:
    """Say whether these steps may be submitted, too.

    What is archived counts as measured, what is open by its walltime. New cells count by the share of their walltimes
    that those took which were measured, and by their whole walltimes before any was.
    """
    new = [step for step in more if step.key not in view.steps]
    if not new:
        return Allowance("go")
    return _allowed(budget, view, new, _cells(budget, view, new))


def again(budget: Budget, view: View, waiting: Mapping[str, ResourceAsk]) -> Allowance:
    """Say whether steps that the run has already may get another try, or their first one later than was thought.

    A try of an earlier step is no further cell. It takes as long as any other, though, and may be after the deadline.
    """
    if not waiting:
        return Allowance("go")
    steps = [view.steps[key].model_copy(update={"resources": ask}) for key, ask in waiting.items()]
    return _allowed(budget, view, steps)


def _allowed(budget: Budget, view: View, new: Sequence[StepSpec], over: str = "") -> Allowance:
    if over := _late(budget, view) or over or _money(budget, view, new):
        return Allowance("over", over)
    judged = [_within(*one, settling=view.spend.settling) for one in _hours(budget, view, new)]
    return next((one for word in ("over", "wait") for one in judged if one.word == word), Allowance("go"))


def _within(unit: str, most: float, held: _Held, *, settling: bool) -> Allowance:
    used, asked, (likely, at_most) = held
    if used + likely > most:
        return Allowance("over", f"{used:.2f} {unit} hours are used and {likely:.2f} more wanted, it may use {most:g}")
    if used + asked + at_most <= most:
        return Allowance("go")
    if settling:
        return Allowance("wait", "accounting will say what the last cells have used")
    said = f"{used:.2f} {unit} hours are used, up to {asked:.2f} more are under way or were never measured"
    return Allowance("over", f"{said}, {at_most:.2f} more are wanted, it may use {most:g}")


def _late(budget: Budget, view: View) -> str:
    return f"its deadline {late}" if (late := budget.late(view.now)) else ""


def _cells(budget: Budget, view: View, new: Sequence[StepSpec]) -> str:
    cells = sum(1 for step in view.steps.values() if step.job == JOB)
    more = sum(1 for step in new if step.job == JOB)
    if budget.cells is None or cells + more <= budget.cells:
        return ""
    return f"{cells} cells were measured and {more} more are wanted, it may have {budget.cells}"


def money(view: View) -> float:
    """Return what proposals said that they cost."""
    found = [o.payload for key, o in view.outcomes.items() if view.steps[key].job == "propose" and o.word == "record"]
    return sum(proposal_found(payload).money for payload in found)


def _money(budget: Budget, view: View, new: Sequence[StepSpec]) -> str:
    # Cells cost no money: what was proposed and paid for is measured.
    if budget.money is None or all(step.job == JOB for step in new) or (spent := money(view)) < budget.money:
        return ""
    return f"proposals cost {spent:.2f}, it may spend {budget.money:g}"


#: Hours used, the most that is still open, and what new steps will use: likely, and at most.
_Held = tuple[float, float, tuple[float, float]]


def _hours(budget: Budget, view: View, new: Sequence[StepSpec]) -> list[tuple[str, float, _Held]]:
    spend = view.spend
    settled = [view.steps[key].resources for key in view.outcomes if view.steps[key].job == JOB]
    wanted = [step.resources for step in new]
    # What proposals took says nothing about how long a cell takes.
    others = [held for job, held in spend.by_job.items() if job != JOB]
    aside = (sum(cpu for cpu, _ in others), sum(gpu for _, gpu in others))
    found: list[tuple[str, float, _Held]] = []
    if budget.cpu_hours is not None:
        used, asked = spend.cpu_hours, spend.asked_cpu_hours
        expected = _expected(used - aside[0], asked, _asked(settled, "cpus"), _asked(wanted, "cpus"))
        found.append(("CPU", budget.cpu_hours, (used, asked, expected)))
    if budget.gpu_hours is not None:
        used, asked = spend.gpu_hours, spend.asked_gpu_hours
        expected = _expected(used - aside[1], asked, _asked(settled, "gpus"), _asked(wanted, "gpus"))
        found.append(("GPU", budget.gpu_hours, (used, asked, expected)))
    return found


def _asked(asks: Iterable[ResourceAsk], what: Literal["cpus", "gpus"]) -> float:
    """Hours by walltime."""
    return sum(ask.minutes * (ask.cpus if what == "cpus" else ask.gpus) for ask in asks) / 60


def _expected(used: float, asked: float, settled: float, most: float) -> tuple[float, float]:
    """Hours that new steps will use: by the share of its walltime that a settled cell took; never over the ask.

    By the share and not by the mean, since tasks differ: a few large cells are no few small ones.

    Args:
        used: hours of settled cells, as far as they are measured.
        asked: hours that may be used and are not measured.
        settled: hours of settled cells by their walltimes.
        most: the new steps by their walltimes.

    Returns:
        The likely hours, and those with all that is not measured yet. While accounting of settled cells is awaited the
        first is too low; only the second may let anything go.
    """
    if used <= 0 or settled <= 0:
        return most, most
    share = most / settled
    return min(most, used * share), min(most, (used + asked) * share)
