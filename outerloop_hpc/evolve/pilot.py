"""A pilot: the incumbent beside itself, so that a plan knows how much readings vary and what it can see. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from outerloop_hpc.documents import Document, kept
from outerloop_hpc.engine.spec import RunSpec
from outerloop_hpc.evolve.cells import Measured, Stage
from outerloop_hpc.evolve.gate import power
from outerloop_hpc.evolve.gate.pairs import Pair
from outerloop_hpc.evolve.gate.policy import GatePolicy
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

    def sight(self, policy: GatePolicy) -> Power:
        """Return what a plan for the same tasks can see, whatever it asks for."""
        return power.plan(policy, self.pairs, tasks=len(self.binding.tasks))

    def text(self, policy: GatePolicy) -> str:
        """Say it in a line; a spread of nothing is a deterministic benchmark and no sight at all."""
        seen = self.sight(policy)
        if seen.sd:
            return seen.text
        return (
            f"{policy.primary.name} of the incumbent follows from the seed alone, so a pilot cannot tell how much a "
            "candidate's varies; the report of a sweep that got to confirming says what it could see"
        )

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


def told(document: Mapping[str, Any], policy: GatePolicy) -> str:
    """Return what a concluded pilot says of a plan; raises Fault for one that this version cannot read."""
    found: Pilot = kept(Pilot, document, KEY)
    return found.text(policy)
