"""Sweeps that never ran: readings are drawn, everything else is decided by the product's own gate.

A reading is log-normal around the task's usual time, and all readings are independent: two arms that share a seed, and
so some of their luck, are told apart more easily than these.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

from outerloop_hpc.evolve.gate import power
from outerloop_hpc.evolve.gate.decide import decide
from outerloop_hpc.evolve.gate.decision import GateDecision
from outerloop_hpc.evolve.gate.pairs import Pair, Reading
from outerloop_hpc.evolve.gate.policy import GatePolicy, Metric, Repeats
from outerloop_hpc.evolve.gate.screening import screen

TASKS = ("small", "middle", "large")
#: The reference makes three runs of each arm and task, and decides on them.
_REFERENCE_RUNS = 3
_PILOT_PAIRS = 20
METRIC = Metric(name="seconds", direction="min", min_effect=0.05)
GOOD = "candidate-0"


@dataclass(frozen=True, slots=True)
class World:
    """What is true: run-to-run variation, and the gain of one candidate in each generation; the others are equal.

    ``gain`` is a share of the incumbent's seconds.
    """

    cv: float
    gain: float
    generations: int
    candidates: int = 4


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a sweep ended. ``covered``: for each first look, whether its interval holds what is true."""

    promoted: str = ""
    covered: tuple[bool, ...] = ()


def policy(world: World, repeats: Repeats | None = None) -> GatePolicy:
    """Return the defaults, for so many generations."""
    return GatePolicy(primary=METRIC, generations=world.generations, repeats=repeats or Repeats())


def asked_for(world: World, effect: float, source: random.Random) -> Repeats:
    """Return the pairs that ``power`` asks for to see ``effect``, after a pilot of the incumbent beside itself."""
    pilot = _pairs(0.0, world.cv, range(_PILOT_PAIRS), source)
    each = power.plan(policy(world), pilot, effect=effect).needed_each
    most = max(each or 0, Repeats().confirm)
    return Repeats(confirm=-(-most // 2), most=most)


def paired(world: World, rules: GatePolicy, source: random.Random) -> Outcome:
    """Run one sweep: screen the candidates of each generation, confirm the best one with fresh pairs."""
    covered: list[bool] = []
    for generation in range(world.generations):
        salt = f"{source.getrandbits(64):x}"
        gains = _gains(world)
        chosen = screen(
            rules, _few(world, rules.repeats.screen, source), tasks=TASKS, generation=generation, salt=salt
        ).chosen
        if not chosen:
            continue
        looks = _confirmed(rules, gains[chosen], world, generation, salt, source)
        covered.append(_covers(looks[0], gains[chosen]))
        if looks[-1].decision == "promote":
            return Outcome(chosen, tuple(covered))
    return Outcome("", tuple(covered))


def reference(world: World, source: random.Random) -> Outcome:
    """Run one sweep as the reference does: the best candidate that passes its fixed bars is promoted at once."""
    rules = policy(world).model_copy(update={"kind": "medians-v5"})
    for generation in range(world.generations):
        few = _few(world, _REFERENCE_RUNS, source)
        if chosen := screen(rules, few, tasks=TASKS, generation=generation, salt="").chosen:
            return Outcome(chosen)
    return Outcome()


def _gains(world: World) -> dict[str, float]:
    return {f"candidate-{number}": 0.0 if number else world.gain for number in range(world.candidates)}


def _few(world: World, repeats: int, source: random.Random) -> dict[str, list[Pair]]:
    return {digest: _pairs(gain, world.cv, range(repeats), source) for digest, gain in _gains(world).items()}


def _confirmed(
    rules: GatePolicy, gain: float, world: World, generation: int, salt: str, source: random.Random
) -> list[GateDecision]:
    """Return the one or two looks at a candidate's confirming pairs."""
    pairs = _pairs(gain, world.cv, range(rules.repeats.confirm), source)
    found = [decide(rules, pairs, tasks=TASKS, generation=generation, look=1, salt=salt)]
    if found[0].decision == "extend":
        pairs += _pairs(gain, world.cv, range(rules.repeats.confirm, rules.repeats.most), source)
        found.append(decide(rules, pairs, tasks=TASKS, generation=generation, look=2, salt=salt))
    return found


def _covers(decision: GateDecision, gain: float) -> bool:
    low, high = decision.gain_low, decision.gain_high
    return low is not None and high is not None and low <= gain <= high


def _pairs(gain: float, cv: float, repeats: Sequence[int], source: random.Random) -> list[Pair]:
    return [
        Pair(
            task=task,
            repeat=repeat,
            seed=repeat,
            incumbent=_reading(100.0, cv, source),
            candidate=_reading(100.0 * (1 - gain), cv, source),
        )
        for task in TASKS
        for repeat in repeats
    ]


def _reading(usual: float, cv: float, source: random.Random) -> Reading:
    seconds = usual * math.exp(source.gauss(0.0, math.sqrt(math.log1p(cv * cv))))
    return Reading(word="measured", metrics={"seconds": seconds})
