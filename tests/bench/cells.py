"""``python -m tests.bench.cells FOLDER [IMAGE]``: cells and their peers in turn, in this very place; prints JSON.

A cell is one process of an array: timed from its start to its end, less the seconds that its commands say they took
themselves; a pair counts for both its arms. The start of a command's own interpreter and of its container counts as
overhead, on every side. The peers do less: no checkout, no overlay, no enclosure, no record.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import submitit
from submitit.local.local import LocalJob

from outerloop_hpc.engine.enclose import Containment
from outerloop_hpc.engine.layout import element_file
from outerloop_hpc.engine.records import RECORD, Manifest
from outerloop_hpc.engine.spec import Image, file_digest
from tests.bench.processes import environment, python
from tests.local.evolve.sweep import FILES, RUN, UNCONTAINED, Sweep, cell_given, new_sweep

_ROUNDS = 7
#: Its only number is how long it took by its own clock.
COMMAND = """\
import json, time
begun = time.perf_counter()
time.sleep(0.05)
print(json.dumps({"score": time.perf_counter() - begun, "ok": True}))
"""
_ARMS = {"cell": ("incumbent",), "pair": ("incumbent", "candidate")}
ARRAY, SCRIPT = "map_array", "script"


@dataclass(frozen=True, slots=True)
class Took:
    """Seconds of one cell: beside its commands by the clock, and the processor's for all it did."""

    beside: float
    cpu: float


def rounds(folder: Path, image: str) -> dict[str, list[Took]]:
    """Run cells and the peers in turn; the first round warms caches and is dropped.

    Returns:
        ``cell`` and ``pair``, with an image also ``cell_apptainer`` and ``pair_apptainer``, ``map_array``, ``script``.
    """
    runners: dict[str, Callable[[], Took]] = {}
    for name, path in {"": "", **({"_apptainer": image} if image else {})}.items():
        of = Image(path=path, sha256=file_digest(Path(path).read_bytes())) if path else Image()
        sweep = make_sweep(folder / f"sweep{name}", of)
        runners |= {f"{unit}{name}": partial(cell, sweep, unit, of) for unit in _ARMS}
    runners |= {ARRAY: partial(mapped, folder), SCRIPT: partial(scripted, folder)}
    taken: dict[str, list[Took]] = {name: [] for name in runners}
    for number in range(_ROUNDS + 1):
        for name, run in runners.items():
            took = run()
            if number:
                taken[name].append(took)
    return taken


def make_sweep(folder: Path, image: Image) -> Sweep:
    """Make a target whose task is the command, without an oracle, and the sweep's immutable specification."""
    folder.mkdir()
    sweep = new_sweep(folder, {**FILES, "bench.py": COMMAND})
    sweep.task(oracle=None, command=("python3", "bench.py"))
    sweep.change(containment=Containment(runtime="apptainer") if image.path else UNCONTAINED)
    spec = sweep.layout.run(RUN).spec
    spec.parent.mkdir(parents=True)
    # A folder of its own: every job looks for what dead ones left, and /tmp of a machine with many tests is no node's.
    own = folder / "node"
    own.mkdir()
    made = sweep.context(cell_given()).spec.model_copy(update={"scratch": str(own), "image": image})
    spec.write_bytes(made.encoded())
    return sweep


def cell(sweep: Sweep, unit: str, image: Image) -> Took:
    """Run one cell in a process of its own, as each element of an array is run."""
    folder = submission(sweep, unit, image)
    child = python("-m", "outerloop_hpc.slurm.element", "outerloop_hpc.engine.job:run_element", str(folder / "e0000"))
    return Took(child.wall - arms_seconds(folder / element_file(0, RECORD)), child.cpu)


def submission(sweep: Sweep, unit: str, image: Image) -> Path:
    """Write a submission's folder with its manifest, and return it."""
    overlay = sweep.freeze(solver="FACTOR = 2\n") if unit == "pair" else ""
    context = sweep.context(cell_given(arms=list(_ARMS[unit]), overlay=overlay))
    manifest = Manifest(
        run=RUN,
        kind="evolve",
        target="toy",
        submission=context.log.parent.name,
        spec_digest=file_digest(sweep.layout.run(RUN).spec.read_bytes()),
        image=image,
        state_root=str(sweep.layout.root),
        elements=(context.element,),
    )
    (context.log.parent / "manifest.json").write_bytes(manifest.encoded())
    return context.log.parent


def arms_seconds(record: Path) -> float:
    """Return the seconds that all commands of a cell took by their own clock.

    Raises:
        ValueError: the cell was not measured, so it says nothing about overhead.
    """
    said = json.loads(record.read_bytes())
    arms = said["payload"].get("arms", [])
    if said["outcome"] != "completed" or not arms or any(arm["word"] != "measured" for arm in arms):
        raise ValueError(f"{record}: {said['outcome']}: {said.get('reason', '')}; it was to be measured")
    return sum(float(arm["metrics"]["score"]) for arm in arms)


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
    script.write_text("#!/bin/sh\nexec python3 bench.py\n", encoding="utf-8")
    done = run_here(["/bin/sh", str(script)], folder / "sweep" / "source")
    return Took(time.perf_counter() - begun - own_seconds(done), 0.0)


def run_command(folder: str) -> float:
    """Run the command and return its own seconds; submitit pickles this by its name."""
    return own_seconds(run_here(["python3", "bench.py"], Path(folder)))


def run_here(argv: Sequence[str], folder: Path) -> str:
    """Run it and return what it printed."""
    return subprocess.run(argv, cwd=folder, env=environment(), capture_output=True, text=True, check=True).stdout


def own_seconds(output: str) -> float:
    """Return what the command said last."""
    return float(json.loads(output.splitlines()[-1])["score"])


def said(text: str) -> Mapping[str, list[Took]]:
    """Read what this module printed."""
    return {name: [Took(**one) for one in values] for name, values in json.loads(text).items()}


if __name__ == "__main__":
    found = rounds(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "")
    print(json.dumps({name: [asdict(one) for one in values] for name, values in found.items()}))
