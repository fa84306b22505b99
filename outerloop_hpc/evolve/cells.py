"""The cells of a stage: which steps measure it, and what their outcomes say as pairs of readings. Pure."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import ValidationError

from outerloop_hpc.engine.kind import Outcome, View
from outerloop_hpc.engine.spec import RunSpec, StepSpec, digest_of, step_spec
from outerloop_hpc.evolve.findings import ArmFound, CellFound
from outerloop_hpc.evolve.gate.pairs import Arm, Pair, Reading
from outerloop_hpc.evolve.given import CELL_BODY, CellGiven
from outerloop_hpc.evolve.work import EvolveWork, Task

JOB = "cell"
#: Walltime of the one more try of a cell that reached its walltime.
_LONGER = 1.5

StageName = Literal["screen", "confirm", "pilot"]


@dataclass(frozen=True, slots=True)
class Stage:
    """What is measured together: candidates against the incumbent, each task with seeds of this stage alone.

    Attributes:
        candidates: digests of overlays; the empty one is the incumbent against itself.
        repeats: how many pairs each task has, refills included; seeds follow from their numbers.
    """

    generation: int
    name: StageName
    candidates: tuple[str, ...]
    repeats: Mapping[str, int]

    def wanted(self) -> Iterator[tuple[str, int]]:
        """Yield task and number of every pair, the first pairs of all tasks before the second ones."""
        for repeat in range(max(self.repeats.values(), default=0)):
            for task, count in self.repeats.items():
                if repeat < count:
                    yield task, repeat


def seed_of(work: EvolveWork, stage: Stage, task: str, repeat: int) -> int:
    """Return the seed of a pair: 31 bits that follow from the sweep, the stage and the pair alone."""
    parts = (work.document, str(stage.generation), stage.name, task, str(repeat))
    return int.from_bytes(hashlib.sha256("\0".join(parts).encode()).digest()[:4], "big") & 0x7FFFFFFF


def cells_of(work: EvolveWork, stage: Stage) -> list[CellGiven]:
    """Return the cells of a stage. The incumbent is measured once for all candidates, unless a cell is a whole pair."""
    # Without defaults: what a later version adds to a task must not make other cells of those that are finished.
    told = {task.id: digest_of(task.model_dump(mode="json", exclude_defaults=True)) for task in work.tasks}
    found: list[CellGiven] = []

    def add(task: str, repeat: int, overlay: str, *arms: Arm) -> None:
        seed = seed_of(work, stage, task, repeat)
        what = (work.document, stage.generation, stage.name, told[task], overlay, arms, repeat, seed)
        cell = digest_of(*what)[:16]
        given = CellGiven(cell=cell, task=task, seed=seed, repeat=repeat, stage=stage.name, overlay=overlay, arms=arms)
        found.append(given)

    for task, repeat in stage.wanted():
        if work.unit == "cell":
            add(task, repeat, "", "incumbent")
        for digest in stage.candidates:
            add(task, repeat, digest, *(("incumbent", "candidate") if work.unit == "pair" else ("candidate",)))
    return found


def laid_out(spec: RunSpec, work: EvolveWork, stage: Stage) -> list[tuple[StepSpec, CellGiven]]:
    """Return the steps of a stage, each with its cell; those that the run has already have the same keys."""
    tasks = {task.id: task for task in work.tasks}
    return [(_step(spec, work, tasks[cell.task], stage, cell), cell) for cell in cells_of(work, stage)]


def steps_of(spec: RunSpec, work: EvolveWork, stage: Stage) -> tuple[StepSpec, ...]:
    """Return the steps of a stage."""
    return tuple(step for step, _ in laid_out(spec, work, stage))


def _step(spec: RunSpec, work: EvolveWork, task: Task, stage: Stage, cell: CellGiven) -> StepSpec:
    return step_spec(
        spec,
        job=JOB,
        cause=f"{stage.name} of generation {stage.generation}",
        body=CELL_BODY,
        resources=task.resources,
        parameters=cell.model_dump(mode="json", exclude_defaults=True),
        max_tries=work.max_tries,
        round_=stage.generation,
        longer=_LONGER,
        # It is the candidate's failure, or held against it: whoever resumes a sweep gives it no other chance.
        memory_final="candidate" in cell.arms,
    )


@dataclass(frozen=True, slots=True)
class Measured:
    """What is known of a stage whose cells are all settled.

    Attributes:
        pairs: by candidate, missing readings included.
        broken: what an integrity fault or a refusal said; nothing is decided then.
    """

    pairs: Mapping[str, tuple[Pair, ...]]
    broken: tuple[str, ...] = ()

    def missing(self) -> dict[str, int]:
        """Return for each task how many of its pairs lack a reading, by the candidate that lacks most."""
        found: dict[str, int] = defaultdict(int)
        for pairs in self.pairs.values():
            lacking: dict[str, int] = defaultdict(int)
            for pair in pairs:
                lacking[pair.task] += "missing" in (pair.incumbent.word, pair.candidate.word)
            for task, count in lacking.items():
                found[task] = max(found[task], count)
        return {task: count for task, count in found.items() if count}


def measured(work: EvolveWork, stage: Stage, laid: Sequence[tuple[StepSpec, CellGiven]], view: View) -> Measured | None:
    """Return what the cells of a stage, as they were ``laid_out``, say; ``None`` while one of them is not settled."""
    if any(step.key not in view.outcomes for step, _ in laid):
        return None
    readings: dict[tuple[str, int, str, Arm], Reading] = {}
    broken: list[str] = []
    for step, cell in laid:
        found = _readings(cell, view.outcomes[step.key])
        if isinstance(found, str):
            broken.append(f"cell {cell.cell} ({cell.task}): {found}")
            found = _missing(cell, found)
        for arm, reading in found.items():
            readings[cell.task, cell.repeat, cell.overlay, arm] = reading

    def pair(task: str, repeat: int, digest: str) -> Pair:
        beside = digest if work.unit == "pair" else ""
        return Pair(
            task=task,
            repeat=repeat,
            seed=seed_of(work, stage, task, repeat),
            incumbent=readings[task, repeat, beside, "incumbent"],
            candidate=readings[task, repeat, digest, "candidate"],
        )

    pairs = {
        digest: tuple(pair(task, repeat, digest) for task, repeat in stage.wanted()) for digest in stage.candidates
    }
    return Measured(pairs, tuple(broken))


def _readings(cell: CellGiven, outcome: Outcome) -> dict[Arm, Reading] | str:
    """Return a reading for each arm of a settled cell, or why its record is not to be believed.

    What no record tells is missing, and never made up.
    """
    if outcome.word == "record" and outcome.record_outcome == "refused":
        return outcome.reason or "it was refused"
    if outcome.word == "record" and outcome.record_outcome == "completed":
        try:
            found = CellFound.model_validate(outcome.payload)
        except ValidationError as error:
            return f"its record cannot be read: {error.errors()[0]['msg']}"
        return _foreign(cell, found) or {arm.arm: _reading(cell, found, arm) for arm in found.arms}
    reason = f"{outcome.word}: {outcome.reason}" if outcome.reason else outcome.word
    if outcome.word == "out of memory" and cell.arms == ("candidate",):
        # It was tried again with twice the memory; where that did not suffice for the incumbent either, the pair lacks
        # the incumbent's reading all the same.
        return {"candidate": Reading(word="failed", reason=reason, cell=cell.cell)}
    # Nobody knows which arm of a pair had too little memory. The incumbent is known to work, so what may be the
    # candidate's doing is not taken for chance.
    part = "candidate" if outcome.word == "out of memory" else outcome.part
    return _missing(cell, reason, outcome.node, part)


def _missing(cell: CellGiven, reason: str, node: str = "", part: str = "") -> dict[Arm, Reading]:
    """Return that no arm has a reading. ``part``: the one that the cell was lost with, where that is known.

    Both arms of a pair are lost then, but they are not equally to blame: an arm that asks to be tried later wherever
    it does badly would choose its own seeds.
    """
    return {
        arm: Reading(word="missing", reason=reason, node=node, cell=cell.cell, beside=part in cell.arms and part != arm)
        for arm in cell.arms
    }


def _foreign(cell: CellGiven, found: CellFound) -> str:
    """Say what in a record is of another cell than the one that was asked for; empty when nothing is."""
    if (found.cell, found.task, found.seed) != (cell.cell, cell.task, cell.seed):
        return f"its record is of cell {found.cell} ({found.task}, seed {found.seed})"
    if sorted(one.arm for one in found.arms) != sorted(cell.arms):
        return f"its record has the arms {', '.join(one.arm for one in found.arms)}, not {', '.join(cell.arms)}"
    wrong = [one.overlay for one in found.arms if one.overlay not in {"", cell.overlay}]
    return f"its record is of overlay {wrong[0][:12]}, not {cell.overlay[:12]}" if wrong else ""


def _reading(cell: CellGiven, found: CellFound, arm: ArmFound) -> Reading:
    if arm.word != "measured":
        reason = f"{arm.word}: {arm.reason}"
        return Reading(word="failed", success=arm.success, reason=reason, node=found.node, cell=cell.cell)
    return Reading(
        word="measured",
        metrics=arm.metrics,
        success=arm.success,
        reason=arm.reason,
        node=found.node,
        cell=cell.cell,
    )
