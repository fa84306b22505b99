"""A pilot: the incumbent beside itself, so that a plan knows how much readings vary and what it can see. Pure."""

from __future__ import annotations

from typing import ClassVar

from outerloop_hpc.documents import Document
from outerloop_hpc.engine.spec import RunSpec
from outerloop_hpc.evolve.cells import Measured, Stage
from outerloop_hpc.evolve.gate import power
from outerloop_hpc.evolve.gate.pairs import Pair
from outerloop_hpc.evolve.gate.power import Power
from outerloop_hpc.evolve.promotion import Binding, binding
from outerloop_hpc.evolve.work import EvolveWork

KEY = "pilot"
ENDING = "piloted"


class Pilot(Document):
    """``pilot/1``: pairs of the incumbent beside itself, what they are bound to, and what the plan can see."""

    name: ClassVar[str] = "pilot"

    run: str
    binding: Binding
    pairs: tuple[Pair, ...]
    power: Power

    def holds_for(self, other: Binding) -> bool:
        """Whether it measured the same tasks on the same base and image; what is asked of them may differ."""
        mine = self.binding
        return (mine.tasks, mine.base, mine.image, mine.oracles) == (
            other.tasks,
            other.base,
            other.image,
            other.oracles,
        )


def stage(work: EvolveWork) -> Stage:
    """Return the pilot's cells."""
    return Stage(0, "pilot", ("",), {task.id: work.pilot for task in work.tasks})


def conclude(spec: RunSpec, work: EvolveWork, found: Measured) -> Pilot:
    """Say what the plan can see.

    Raises:
        UsageError: no task has two pairs that can be compared.
    """
    pairs = found.pairs[""]
    seen = power.plan(work.gate, pairs, tasks=len(work.tasks))
    return Pilot(run=spec.run, binding=binding(spec, work, ""), pairs=pairs, power=seen)
