"""What a cell of a sweep takes beside its benchmark's own seconds, next to other ways to run the same command.

A cell is one process of an array: timed from its start to its end, less the seconds of each arm's command as its record
has them. Where it runs in an array decides nothing of that, so no scheduler is asked; a pair counts for both its arms.
The peers do less: no checkout, no overlay, no enclosure, no record.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import submitit
from submitit.local.local import LocalJob

from outerloop_hpc.engine.layout import element_file
from outerloop_hpc.engine.records import RECORD, Manifest
from outerloop_hpc.engine.spec import Image, file_digest
from tests.bench.figure import Figure, Peer, figure
from tests.bench.places import disk, scratch
from tests.bench.processes import environment, python
from tests.bench.samples import Samples, ratio_of_pairs
from tests.local.evolve.sweep import FILES, RUN, Sweep, cell_given, new_sweep

_ROUNDS = 7
_COMMAND = """\
import json, time
time.sleep(0.05)
print(json.dumps({"score": 1.0, "ok": True}))
"""
_GOAL = "< 0.15 s"
_GOAL_APPTAINER = "< 0.5 s"
_ARMS = {"cell": ("incumbent",), "pair": ("incumbent", "candidate")}
_ARRAY = "submitit map_array, local executor"
_SCRIPT = "one job script per evaluation, without its queue and its polling"


@dataclass(frozen=True, slots=True)
class Took:
    """Seconds of one cell: beside its commands by the clock, and the processor's for all it did."""

    beside: float
    cpu: float


def measure() -> list[Figure]:
    """Run cells and the peers in turn; the first round warms caches and is dropped."""
    with scratch(disk()) as folder:
        sweep = make_sweep(folder / "sweep")
        runners: dict[str, Callable[[], Took]] = {unit: partial(cell, sweep, unit) for unit in _ARMS}
        runners |= {_ARRAY: partial(mapped, folder), _SCRIPT: partial(scripted, folder)}
        taken: dict[str, list[Took]] = {name: [] for name in runners}
        for number in range(_ROUNDS + 1):
            for name, run in runners.items():
                took = run()
                if number:
                    taken[name].append(took)
    return figures(taken)


def figures(taken: dict[str, list[Took]]) -> list[Figure]:
    """Say what was taken: both units, and each beside every peer."""
    beside = {name: tuple(one.beside for one in values) for name, values in taken.items()}
    found = []
    for unit in _ARMS:
        whole = Samples(beside[unit])
        found.append(figure(f"cell_overhead_{unit}", "s", whole, goal=goal()))
        found.append(figure(f"cell_overhead_{unit}_cpu", "s", Samples(tuple(one.cpu for one in taken[unit]))))
    for name, peer in (("map_array", _ARRAY), ("script", _SCRIPT)):
        stands = Peer(peer, Samples(beside[peer]).median, ratio_of_pairs(beside["cell"], beside[peer]))
        ours = Samples(beside["cell"])
        found.append(Figure(f"cell_overhead_vs_{name}", ours.median, "s", stands, "", ours.low, ours.high))
    return found


def goal() -> str:
    """Return what is aimed at, with the reason why the figure with Apptainer is not there."""
    why = "it is not measured yet" if shutil.which("apptainer") else "there is none on this machine"
    return f"{_GOAL}; left out: Apptainer ({_GOAL_APPTAINER}): {why}"


def make_sweep(folder: Path) -> Sweep:
    """Make a target whose task is the command, without an oracle, and the sweep's immutable specification."""
    folder.mkdir()
    sweep = new_sweep(folder, {**FILES, "bench.py": _COMMAND})
    sweep.task(oracle=None)
    spec = sweep.layout.run(RUN).spec
    spec.parent.mkdir(parents=True)
    # A folder of its own: every job looks for what dead ones left, and /tmp of a machine with many tests is no node's.
    own = folder / "node"
    own.mkdir()
    made = sweep.context(cell_given()).spec.model_copy(update={"scratch": str(own)})
    spec.write_bytes(made.encoded())
    return sweep


def cell(sweep: Sweep, unit: str) -> Took:
    """Run one cell in a process of its own, as each element of an array is run."""
    folder = submission(sweep, unit)
    child = python("-m", "outerloop_hpc.slurm.element", "outerloop_hpc.engine.job:run_element", str(folder / "e0000"))
    return Took(child.wall - arms_seconds(folder / element_file(0, RECORD)), child.cpu)


def submission(sweep: Sweep, unit: str) -> Path:
    """Write a submission's folder with its manifest, and return it."""
    overlay = sweep.freeze(solver="FACTOR = 2\n") if unit == "pair" else ""
    context = sweep.context(cell_given(arms=list(_ARMS[unit]), overlay=overlay))
    manifest = Manifest(
        run=RUN,
        kind="evolve",
        target="toy",
        submission=context.log.parent.name,
        spec_digest=file_digest(sweep.layout.run(RUN).spec.read_bytes()),
        image=Image(),
        state_root=str(sweep.layout.root),
        elements=(context.element,),
    )
    (context.log.parent / "manifest.json").write_bytes(manifest.encoded())
    return context.log.parent


def arms_seconds(record: Path) -> float:
    """Return the seconds of all commands of a cell.

    Raises:
        ValueError: the cell was not measured, so it says nothing about overhead.
    """
    said = json.loads(record.read_bytes())
    arms = said["payload"].get("arms", [])
    if said["outcome"] != "completed" or not arms or any(arm["word"] != "measured" for arm in arms):
        raise ValueError(f"{record}: {said['outcome']}: {said.get('reason', '')}; it was to be measured")
    return sum(float(arm["seconds"]) for arm in arms)


def mapped(folder: Path) -> Took:
    """Run the command under ``map_array`` alone; over when the job's process is gone."""
    executor = submitit.LocalExecutor(folder=folder / "bare")
    executor.update_parameters(timeout_min=2)
    begun = time.perf_counter()
    (job,) = executor.map_array(run_command, [str(folder / "sweep" / "source")])
    assert isinstance(job, LocalJob)
    assert job._process is not None
    job._process.wait()
    return Took(time.perf_counter() - begun - float(job.result()), 0.0)


def scripted(folder: Path) -> Took:
    """Run the command by a job script that is written for this evaluation."""
    script = folder / "evaluation.sh"
    begun = time.perf_counter()
    script.write_text(f"#!/bin/sh\nset -e\ndate +%s.%N\n{sys.executable} bench.py\ndate +%s.%N\n", encoding="utf-8")
    done = subprocess.run(
        ["/bin/sh", str(script)],
        cwd=folder / "sweep" / "source",
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    wall, lines = time.perf_counter() - begun, done.stdout.split("\n")
    return Took(wall - (float(lines[-2]) - float(lines[0])), 0.0)


def run_command(folder: str) -> float:
    """Run the command and return its seconds; submitit pickles this by its name."""
    begun = time.perf_counter()
    subprocess.run([sys.executable, "bench.py"], cwd=folder, env=environment(), capture_output=True, check=True)
    return time.perf_counter() - begun
