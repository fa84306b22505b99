"""Measure one cell of a sweep again, here and now, outside of the run; and compare that with what was recorded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from outerloop_hpc.engine.body import Context, Result, Stop, carried_out
from outerloop_hpc.engine.layout import Layout
from outerloop_hpc.engine.records import ManifestElement
from outerloop_hpc.engine.spec import RunSpec
from outerloop_hpc.engine.state import RunState, Step
from outerloop_hpc.errors import ConfigError, Fault, TryLater, UsageError
from outerloop_hpc.evolve.bodies.cell import cell
from outerloop_hpc.evolve.cells import JOB
from outerloop_hpc.evolve.findings import ArmFound, CellFound
from outerloop_hpc.evolve.given import INTEGRITY
from outerloop_hpc.evolve.overlays.overlay import IntegrityFault

_NAMED = 5


def step_of(state: RunState, text: str) -> Step:
    """Find a cell's step by the cell's id or an unambiguous beginning of it.

    Raises:
        UsageError: none, or several.
    """
    cells = {str(step.spec.parameters.get("cell", "")): step for step in state.steps.values() if step.spec.job == JOB}
    found = [name for name in cells if text and name.startswith(text)]
    if len(found) != 1:
        named = ", ".join(found[:_NAMED])
        several = f"; it may be {named}{' or another' if len(found) > _NAMED else ''}" if found else ""
        raise UsageError(
            f"no single cell of {state.run} is named {text!a}{several}; ids are in its report and its gate documents"
        )
    return cells[found[0]]


def recorded(step: Step) -> CellFound | None:
    """Return what a cell came to in the run; ``None`` when it has no result.

    Raises:
        Fault: its result cannot be understood.
    """
    last = step.last
    if last is None or last.record_outcome != "completed":
        return None
    try:
        return CellFound.model_validate(step.payload)
    except ValidationError as error:
        raise Fault(f"{step.spec.key}: its record is not one of this version's; upgrade to compare with it") from error


def replay(
    spec: RunSpec, step: Step, *, layout: Layout, scratch: Path, log: Path, stop: Stop, environ: Mapping[str, str]
) -> CellFound:
    """Carry out a cell again; nothing of the run is written.

    Args:
        spec: of the run.
        step: the cell's.
        layout: the state folder with the mirror and the frozen overlays.
        scratch: an empty folder to work in.
        log: where the commands' output goes.
        stop: asks for the end.
        environ: variables of this process.

    Raises:
        IntegrityFault: something is not what was frozen.
        ConfigError: it cannot be carried out anywhere.
        TryLater: it cannot be carried out here and now; the text says why.
    """
    element = ManifestElement(step=step.spec, try_number=(step.last.number if step.last else 0) + 1)
    limit_s = 60.0 * step.spec.resources.minutes
    return _found(carried_out(cell, Context(spec, element, layout, scratch, log, stop, limit_s, environ)))


def _found(result: Result) -> CellFound:
    if result.outcome == "completed":
        return CellFound.model_validate(result.payload)
    if result.outcome == "refused":
        raise (IntegrityFault if INTEGRITY in result.payload else ConfigError)(result.reason)
    raise TryLater(f"the cell says nothing here and now ({result.outcome}): {result.reason}")


@dataclass(frozen=True, slots=True)
class Compared:
    """One value of one arm, as recorded and as found now; ``None``: there is none. ``weighs``: it must be the same."""

    arm: str
    value: str
    recorded: str | bool | float | None
    now: str | bool | float | None
    weighs: bool = False

    @property
    def same(self) -> bool:
        """Whether both are equal; bit for bit, where they are numbers."""
        return self.recorded == self.now


def compared(before: CellFound | None, now: CellFound) -> tuple[Compared, ...]:
    """Lay what was recorded beside what was found now, arm by arm; how long it took is not compared."""
    known = {arm.arm: arm for arm in before.arms} if before else {}
    return tuple(line for arm in now.arms for line in _lines(known.get(arm.arm), arm))


def _lines(before: ArmFound | None, now: ArmFound) -> Iterator[Compared]:
    yield Compared(now.arm, "word", before.word if before else None, now.word, weighs=True)
    if now.success is not None or (before is not None and before.success is not None):
        yield Compared(now.arm, "success", before.success if before else None, now.success, weighs=True)
    metrics = before.metrics if before else {}
    for name in sorted({*metrics, *now.metrics}):
        yield Compared(now.arm, name, metrics.get(name), now.metrics.get(name))
