"""Small gate policies and pairs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from outerloop_hpc.evolve.gate.decide import decide
from outerloop_hpc.evolve.gate.decision import GateDecision
from outerloop_hpc.evolve.gate.pairs import Pair, Reading
from outerloop_hpc.evolve.gate.policy import GatePolicy, Metric, Repeats

TASKS = ("a", "b", "c")
SALT = "0" * 64
#: What a candidate's seconds are beside the incumbent's 100, pair by pair: clearly better, equal, clearly worse.
BETTER = (80.0, 82.0, 78.0, 81.0, 79.0, 80.5, 79.5, 83.0, 77.0, 80.0)
EQUAL = (101.0, 99.0, 103.0, 97.0, 100.5, 99.5, 102.0, 98.0, 104.0, 96.0)
WORSE = (130.0, 128.0, 132.0, 131.0, 129.0, 130.5, 129.5, 133.0, 127.0, 130.0)

FAILED = Reading(word="failed", reason="exit 1")
MISSING = Reading(word="missing", reason="node lost")


def policy(**more: Any) -> GatePolicy:
    """Seconds, less is better; ten pairs a task and no second look."""
    given: dict[str, Any] = {
        "primary": Metric(name="seconds", direction="min"),
        "repeats": Repeats(screen=3, confirm=10, most=10),
    }
    return GatePolicy(**{**given, **more})


TWO_LOOKS = Repeats(screen=3, confirm=10, most=20)


def measured(seconds: float | None = None, *, success: bool | None = None, **metrics: float) -> Reading:
    numbers = metrics if seconds is None else {"seconds": seconds, **metrics}
    return Reading(word="measured", metrics=numbers, success=success)


def pair(task: str, repeat: int, incumbent: Reading, candidate: Reading) -> Pair:
    return Pair(task=task, repeat=repeat, seed=1000 + repeat, incumbent=incumbent, candidate=candidate)


def pairs(candidate: Mapping[str, Sequence[float]], incumbent: float = 100.0) -> list[Pair]:
    """Make each task's pairs from the candidate's seconds."""
    return [
        pair(task, repeat, measured(incumbent), measured(seconds))
        for task, values in candidate.items()
        for repeat, seconds in enumerate(values)
    ]


def everywhere(values: Sequence[float]) -> list[Pair]:
    """Make the same pairs for each of three tasks."""
    return pairs(dict.fromkeys(TASKS, values))


def answers(
    task: str, incumbent: Sequence[bool], candidate: Sequence[bool], seconds: tuple[float, float] = (100.0, 100.0)
) -> list[Pair]:
    """Make pairs of a task with a success flag, all with the same seconds."""
    return [
        pair(task, repeat, measured(seconds[0], success=old), measured(seconds[1], success=new))
        for repeat, (old, new) in enumerate(zip(incumbent, candidate, strict=True))
    ]


def with_reading(given: Iterable[Pair], task: str, repeats: Iterable[int], **readings: Reading) -> list[Pair]:
    """Put other readings into some pairs of a task."""
    chosen = set(repeats)
    return [one.model_copy(update=readings) if one.task == task and one.repeat in chosen else one for one in given]


def decided(
    given: Iterable[Pair],
    rules: GatePolicy | None = None,
    *,
    tasks: Iterable[str] = TASKS,
    look: int = 1,
    generation: int = 0,
) -> GateDecision:
    return decide(rules or policy(), given, tasks=tasks, generation=generation, look=look, salt=SALT)


def why(decision: GateDecision) -> str:
    return "; ".join(decision.reasons)
