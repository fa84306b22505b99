"""Which gain a number of pairs can show, and how many pairs a gain needs. Pure.

Source: the usual normal approximation, N = ((z(1 - level) + z(power)) s_d / D)^2, for pairs spread evenly over tasks,
and z(1 - level)^2 / 2 more, since the spread is estimated from these very pairs (Guenther, The American Statistician,
1981).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from statistics import NormalDist

from outerloop_hpc.documents import Value
from outerloop_hpc.errors import UsageError
from outerloop_hpc.evolve.gate import levels
from outerloop_hpc.evolve.gate.differences import asked, gain, shown
from outerloop_hpc.evolve.gate.estimate import spread
from outerloop_hpc.evolve.gate.evidence import digits, gather
from outerloop_hpc.evolve.gate.pairs import Pair
from outerloop_hpc.evolve.gate.policy import GatePolicy

CHANCE = 0.8
#: More pairs than that are no plan, and beyond what a whole number holds well.
_MOST = 10**9


class Power(Value):
    """What a plan can see. Gains as in ``GateDecision``.

    Attributes:
        sd: s_d of the differences of one pair. level: of one look. chance: of promoting a candidate with the gain.
        pairs: in all, over ``tasks`` tasks.
        detectable: the smallest gain that so many pairs show. effect: the gain that is asked for.
        needed, needed_each: pairs in all and for each task that ``effect`` needs; None where no number would do.
        text: all that in a line.
    """

    sd: float
    level: float
    chance: float = CHANCE
    tasks: int
    pairs: int
    detectable: float
    effect: float
    needed: int | None
    needed_each: int | None
    sees: bool
    text: str


def plan(policy: GatePolicy, pilot: Iterable[Pair], *, tasks: int | None = None, effect: float | None = None) -> Power:
    """Say what the policy's confirming pairs can see, from the spread of a pilot's.

    Args:
        policy: its ``repeats.most`` is the plan.
        pilot: pairs of any two arms, best of the incumbent beside itself; a difference between them does not matter.
        tasks: how many the sweep has; those of the pilot if not given.
        effect: the gain to see; the policy's ``min_effect`` if not given.

    Raises:
        UsageError: no task of the pilot has two pairs that can be compared.
    """
    given = list(pilot)
    found = gather(policy, given, {pair.task for pair in given}, None)
    samples = [task.differences(policy.primary.name) for task in found.tasks]
    usable = [task for task in samples if len(task) >= levels.LEAST_A_TASK]
    if not usable:
        raise UsageError(
            "the pilot has no task with two pairs that both arms solved and that have "
            f"{policy.primary.name}: measure at least {levels.LEAST_A_TASK} pairs of a task"
        )
    count = tasks or len(samples)
    return of(policy, spread(usable), count, count * policy.repeats.most, effect)


def of(policy: GatePolicy, sd: float, tasks: int, pairs: int, effect: float | None = None) -> Power:
    """Say what so many pairs over so many tasks can see where differences spread by ``sd``."""
    scale = policy.primary.scale
    wanted = policy.primary.min_effect if effect is None else effect
    level = levels.level(policy)
    seen = gain(scale, detectable(level, sd, pairs))
    needed = needed_pairs(level, sd, asked(scale, wanted))
    if needed is not None:
        needed = max(needed, levels.least(level, tasks))
    each = None if needed is None else -(-needed // tasks)
    sees = needed is not None and needed <= pairs
    return Power(
        sd=digits(sd),
        level=digits(level),
        tasks=tasks,
        pairs=pairs,
        detectable=digits(seen),
        effect=wanted,
        needed=needed,
        needed_each=each,
        sees=sees,
        text=_text(tasks, pairs, shown(scale, seen), shown(scale, wanted), each, sees=sees),
    )


def detectable(level: float, sd: float, pairs: int) -> float:
    """Return the smallest D that so many pairs show with a chance of 0.8."""
    return _z(level) * sd / math.sqrt(max(pairs - _for_the_spread(level), 1.0))


def needed_pairs(level: float, sd: float, d: float | None) -> int | None:
    """Return how many pairs show a difference of ``d`` with a chance of 0.8; None where no number would do."""
    if d is None or d <= 0:
        return None
    root = _z(level) * sd / d
    return math.ceil(root * root + _for_the_spread(level)) if root * root <= _MOST else None


def _for_the_spread(level: float) -> float:
    """Pairs that knowing the spread would save: one or two at the usual level, more where it is divided up."""
    return NormalDist().inv_cdf(1 - level) ** 2 / 2


def _z(level: float) -> float:
    return NormalDist().inv_cdf(1 - level) + NormalDist().inv_cdf(CHANCE)


def _text(tasks: int, pairs: int, seen: str, wanted: str, each: int | None, *, sees: bool) -> str:
    line = f"{pairs} pairs over {tasks} tasks show a gain of {seen} or more with a chance of {100 * CHANCE:g} %"
    if sees:
        return f"{line}; {wanted} is asked for, which the estimate has to reach, too"
    if each is None:
        return f"{line}; {wanted} is asked for, which no number of pairs could show"
    return f"{line}; {wanted} is asked for, which needs {each} pairs a task"
