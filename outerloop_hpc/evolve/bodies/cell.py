"""The body of a cell: one arm of a pair, or both on this node, each on a checkout that nothing else has touched."""

from __future__ import annotations

from outerloop_hpc.engine.body import Context, Result
from outerloop_hpc.engine.measuring import OtherTree
from outerloop_hpc.errors import ConfigError
from outerloop_hpc.evolve.bodies.arm import Station, run_arm
from outerloop_hpc.evolve.bodies.celllog import CellLog
from outerloop_hpc.evolve.enclosed import enclosed
from outerloop_hpc.evolve.findings import ArmFound, CellFound
from outerloop_hpc.evolve.given import INTEGRITY, CellGiven
from outerloop_hpc.evolve.overlays.candidates import candidates
from outerloop_hpc.evolve.overlays.frozen import load
from outerloop_hpc.evolve.overlays.overlay import IntegrityFault, Overlay
from outerloop_hpc.evolve.work import EvolveWork, Task, work_of
from outerloop_hpc.measure.node import this_node


def cell(context: Context) -> Result:
    """Measure what the step is given (``CellGiven``).

    Returns:
        ``completed`` with a ``CellFound`` when every arm has its own word; ``refused`` with the payload
        ``{"integrity": …}`` when something is not what was frozen; else why this try says nothing.

    Raises:
        NodeUnfit: this node lacks what is needed.
        ConfigError: what was asked for cannot be.
        TryLater: a disk or the mirror does not answer.
    """
    work, given = work_of(context.spec), CellGiven.model_validate(context.element.step.parameters)
    log = CellLog(context.log)
    try:
        return _measured(context, work, given, log)
    except (IntegrityFault, OtherTree) as fault:
        return Result("refused", str(fault), {INTEGRITY: str(fault)})
    finally:
        log.close()


def _measured(context: Context, work: EvolveWork, given: CellGiven, log: CellLog) -> Result:
    task = _task(work, given.task)
    # Read before anything runs: what an arm of this cell does can then no longer change it.
    overlay = load(candidates(context) / given.overlay) if given.overlay else Overlay({})
    where = enclosed(context, work.containment)
    station = Station(context, work, task, given, where, log)
    found: list[ArmFound] = []
    for position, arm in enumerate(given.in_order()):
        came = run_arm(station, arm, overlay if arm == "candidate" else Overlay({}), position)
        if isinstance(came, Result):
            return came
        found.append(came)
    node = this_node()
    whole = CellFound(
        cell=given.cell,
        task=given.task,
        seed=given.seed,
        arms=tuple(found),
        node=node.name,
        cpu_model=node.cpu_model,
        image_sha256=where.image_sha256 or "",
    )
    reason = "; ".join(f"{one.arm}: {one.reason}" for one in found if one.reason)
    return Result("completed", reason, whole.model_dump(mode="json", exclude_none=True))


def _task(work: EvolveWork, name: str) -> Task:
    try:
        return work.task(name)
    except KeyError:
        raise ConfigError(f"the sweep has no task {name!r}; the step is not one of its own") from None
