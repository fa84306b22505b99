"""Make a sweep of a sweep file: checked, estimated, its prepared overlays frozen, then visible to passes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from outerloop_hpc.cli.session import Session
from outerloop_hpc.clock import SystemClock
from outerloop_hpc.documents import kept, load
from outerloop_hpc.engine import runs
from outerloop_hpc.engine.layout import RunFolder
from outerloop_hpc.engine.spec import RunSpec
from outerloop_hpc.engine.watch import LiveRun
from outerloop_hpc.errors import Fault, UsageError
from outerloop_hpc.evolve import pilot as pilots
from outerloop_hpc.evolve.course import with_refills
from outerloop_hpc.evolve.gate import levels
from outerloop_hpc.evolve.gate.libraries import require
from outerloop_hpc.evolve.overlays.candidates import folder_of
from outerloop_hpc.evolve.overlays.frozen import freeze
from outerloop_hpc.evolve.overlays.overlay import Overlay
from outerloop_hpc.evolve.pilot import Pilot
from outerloop_hpc.evolve.promotion import binding
from outerloop_hpc.evolve.sweepfile.document import load as load_sweep
from outerloop_hpc.evolve.work import KIND, Agent, AskTell, Dirs, EvolveWork, Grid, dump


@dataclass(frozen=True, slots=True)
class Asked:
    """A sweep that could be begun: its specification, prepared overlays, and what a person should know."""

    spec: RunSpec
    work: EvolveWork
    overlays: tuple[Overlay, ...]
    notices: tuple[str, ...]


def made(here: Session, file: Path, *, expensive: bool, dry_run: bool, pilot: int = 0) -> Asked:
    """Read and resolve a sweep file; nothing is written but the target's mirror.

    Raises:
        UsageError: the file, or something that it names, cannot be meant; with every problem.
        ConfigError: the ``stats`` extra, Optuna where it is asked for, the image or a job definition is lacking.
    """
    from outerloop_hpc.evolve.proposers import asktell  # noqa: PLC0415 - heavy
    from outerloop_hpc.evolve.sweepfile.resolve import resolve  # noqa: PLC0415 - as above

    require()
    try:
        data = file.read_bytes()
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {error.strerror}") from error
    sweep = load_sweep(data, name=str(file))
    with here.targets(dry_run=dry_run) as targets:
        found = resolve(targets, sweep, file.absolute().parent, expensive=expensive)
        work = found.work.model_copy(update={"pilot": pilot})
        if isinstance(work.proposer, AskTell) and not pilot:
            asktell.check(work.proposer)
        _in_time(work, SystemClock().now())
        cause = f"pilot of {work.name}" if pilot else f"sweep {work.name}"
        spec = targets.run_spec(KIND, found.seen, cause=cause, work=dump(work)).model_copy(update={"wake": True})
    return Asked(spec, work, found.overlays, found.notices)


def estimate(here: Session, asked: Asked) -> Iterator[str]:
    """Say what the sweep may cost at most, and whether its plan can see the gain that it asks for."""
    yield from asked.notices
    work, gate = asked.work, asked.work.gate
    arms = 1 if work.unit == "pair" else 2
    tasks, repeats = len(work.tasks), gate.repeats
    if work.pilot:
        each = with_refills(work.pilot) * arms
        what = f"{work.pilot} pairs of {tasks} tasks"
    else:
        screened = with_refills(repeats.screen) * (work.candidates if work.unit == "pair" else 1 + work.candidates)
        last = repeats.most if levels.looks(gate) > 1 else repeats.confirm
        each = gate.generations * (screened + with_refills(last) * arms)
        what = (
            f"up to {gate.generations} generations of {work.candidates} candidates, {tasks} tasks, "
            f"{repeats.screen} pairs to screen and {repeats.confirm} to {last} to confirm"
        )
    cpu = sum(each * task.resources.minutes * task.resources.cpus for task in work.tasks) / 60
    gpu = sum(each * task.resources.minutes * task.resources.gpus for task in work.tasks) / 60
    yield (
        f"{what}: at most {each * tasks} cells, those in the place of lost ones included, by their walltimes "
        f"{cpu:.4g} CPU and {gpu:.4g} GPU hours; a cell that is lost and tried again takes more"
    )
    if not work.pilot:
        yield from _left_over(work)
    yield from _too_few(work, arms)
    yield from _unpriced(work)
    if not work.pilot:
        yield _sight(here, asked)


def _in_time(work: EvolveWork, now: datetime) -> None:
    """Refuse a sweep that could only end at its first pass."""
    if late := work.budget.late(now):
        raise UsageError(f"{work.name}: budget.deadline: {late}, so nothing would be measured")


def _too_few(work: EvolveWork, arms: int) -> Iterator[str]:
    """Say that the cells do not last for the first decision about one candidate."""
    pairs = work.pilot or work.gate.repeats.screen + work.gate.repeats.confirm
    least = pairs * arms * len(work.tasks)
    if work.budget.cells is not None and work.budget.cells < least:
        what = "this pilot" if work.pilot else "screening and confirming one candidate"
        yield f"warning: budget.cells ({work.budget.cells}) cannot last: {what} takes {least} cells"


def _unpriced(work: EvolveWork) -> Iterator[str]:
    """Say that a budget of money limits nothing, or only what says its price."""
    if work.budget.money is None or work.pilot:
        return
    if isinstance(work.proposer, Agent):
        yield "budget.money goes by the `cost_usd` that each session says at its end: one that says none counts nothing"
    else:
        yield f"warning: budget.money limits nothing: only an agent says what it costs, no {work.proposer.kind}"


def _left_over(work: EvolveWork) -> Iterator[str]:
    """Say that some of what was prepared will never be looked at."""
    match work.proposer:
        case Dirs(digests=digests):
            there = len(digests)
        case Grid(values=values):
            there = math.prod(map(len, values.values()))
        case _:
            return
    most = work.gate.generations * work.candidates
    if there > most:
        yield (
            f"warning: only the first {most} of {there} candidates will be measured: proposer.candidates "
            f"({work.candidates}) times budget.generations ({work.gate.generations})"
        )


def _sight(here: Session, asked: Asked) -> str:
    """Say whether the plan can see what it asks for, by the newest pilot of the same tasks."""
    found = _pilots(here, asked)
    if not found:
        return "what the plan can see is not known, for want of a pilot: `outerloop-hpc evolve power` measures one"
    newest = max(found, key=lambda one: one.run)
    try:
        seen = newest.sight(asked.work.gate)
    except UsageError as useless:
        # It was measured for another metric, say; advice that is not to be had keeps no sweep from being submitted.
        return f"warning: pilot {newest.run} says nothing about this plan: {useless}"
    blind = "" if seen.sees and seen.sd else "warning: "
    return f"{blind}by pilot {newest.run}: {newest.text(asked.work.gate)}"


def _pilots(here: Session, asked: Asked) -> list[Pilot]:
    wanted = binding(asked.spec, asked.work, "")
    found = []
    for path in sorted((here.layout.results / "evolve" / asked.spec.target).glob(f"*/{pilots.KEY}.json")):
        try:
            one: Pilot = load(Pilot, path)
        except (Fault, FileNotFoundError):
            continue  # it is somebody's; what it would have said is only advice
        if one.holds_for(wanted):
            found.append(one)
    return found


def read_pilot(asked: Asked, run: LiveRun) -> str:
    """Say what the plan can see by one pilot.

    Raises:
        UsageError: that run is no pilot that has ended, or one of other tasks.
    """
    document = run.state.conclusions.get(pilots.KEY)
    if document is None:
        raise UsageError(f"{run.run_id} is no pilot, or has not ended; `outerloop-hpc evolve power SWEEP` measures one")
    found: Pilot = kept(Pilot, document, f"{run.run_id}, {pilots.KEY}")
    if not found.holds_for(binding(asked.spec, asked.work, "")):
        raise UsageError(f"{run.run_id} measured other tasks, another base or another image; measure a new pilot")
    return found.text(asked.work.gate)


def begin(here: Session, asked: Asked) -> RunFolder:
    """Make the run, with its prepared overlays frozen before any pass can see it."""

    def prepare(folder: RunFolder) -> None:
        for overlay in asked.overlays:
            freeze(overlay, folder_of(folder))

    return runs.ensure(here.layout, asked.spec, prepare=prepare)
