"""How the level of a sweep is spent over generations and looks, and how many pairs a look needs. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator

from outerloop_hpc.errors import UsageError
from outerloop_hpc.evolve.gate.flips import smallest_p
from outerloop_hpc.evolve.gate.policy import GatePolicy

#: Without two a task, nothing is known about its spread.
LEAST_A_TASK = 2


def looks(policy: GatePolicy) -> int:
    """Return how often the confirming pairs are looked at: twice where there may be more of them, else once."""
    return 2 if policy.kind == "paired-v1" and policy.repeats.most > policy.repeats.confirm else 1


def planned(policy: GatePolicy, look: int) -> int:
    """Return the pairs of each task that a look decides on."""
    return policy.repeats.confirm if look == 1 else policy.repeats.most


def level(policy: GatePolicy) -> float:
    """Return the chance that one look may promote an equal candidate with: equal parts over generations and looks."""
    return policy.level / policy.generations / looks(policy)


def least(level_used: float, tasks: int) -> int:
    """Return how many pairs in all can reach a level at all, and are at least two for each task."""
    return max(math.ceil(-math.log2(level_used)), LEAST_A_TASK * tasks)


def hopeless(policy: GatePolicy, tasks: int) -> Iterator[str]:
    """Yield why a plan can promote nothing, however good a candidate is: too few pairs to reach a level at all."""
    if policy.kind != "paired-v1" or tasks < 1:
        return
    screened, confirmed = policy.repeats.screen * tasks, planned(policy, looks(policy)) * tasks
    if smallest_p(screened) > policy.screen_level:
        yield _few("repeats.screen", screened, "screen level", policy.screen_level, tasks)
    if smallest_p(confirmed) > level(policy):
        yield _few("repeats.most", confirmed, "level of one look", level(policy), tasks)


def _few(key: str, pairs: int, what: str, wanted: float, tasks: int) -> str:
    needed = least(wanted, tasks)
    said = f"{key}: {pairs} pairs over {tasks} tasks can never reach the {what} {wanted:.4g}"
    if pairs >= needed:
        return f"{said}; plan fewer generations"
    return f"{said}; at least {-(-needed // tasks)} a task are needed"


def check(policy: GatePolicy, generation: int, look: int) -> None:
    """Raise UsageError for a generation or look that the level was not spread over."""
    if not 0 <= generation < policy.generations:
        raise UsageError(
            f"generation {generation} is not one of the {policy.generations} that the level {policy.level} is spread "
            "over (they count from 0): a further one would promote by chance more often than was said"
        )
    if not 1 <= look <= looks(policy):
        raise UsageError(f"look {look} is not one of the {looks(policy)} that were planned (they count from 1)")
