"""A target with a task, an oracle and a mirror of it, and the context of one step of a sweep over it; no engine."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from outerloop_hpc.engine.body import Body, Context, Result, Stop, carried_out
from outerloop_hpc.engine.enclose import Containment
from outerloop_hpc.engine.layout import Layout
from outerloop_hpc.engine.records import ManifestElement
from outerloop_hpc.engine.spec import ResourceAsk, RunSpec, step_spec
from outerloop_hpc.evolve.gate.policy import GatePolicy, Metric
from outerloop_hpc.evolve.overlays.candidates import folder_of
from outerloop_hpc.evolve.overlays.frozen import freeze
from outerloop_hpc.evolve.overlays.overlay import Overlay, content_digest
from outerloop_hpc.evolve.work import EvolveWork, Grid, Oracle, OverlayRules, Proposer, Task, dump
from outerloop_hpc.target.mirror import Mirror
from tests.local.scratch import commit, new_source

RUN = "evolve-toy-20261130T000000Z-0000000a"
AT = datetime(2026, 11, 30, tzinfo=UTC)
SOLVER = "FACTOR = 1\n"
BENCH = """\
import json, os, solver
print(json.dumps({"score": solver.FACTOR * 10 + int(os.environ["OL_SEED"]), "ok": True}))
"""
ORACLE = """\
import os, sys
sys.path.insert(0, os.getcwd())
import solver
print("the answer is 42")
sys.exit(getattr(solver, "VERDICT", 0))
"""
FILES = {"solver.py": SOLVER, "bench.py": BENCH, "checks/hidden.py": ORACLE, "README": "a toy\n"}
UNCONTAINED = Containment(runtime="none", uncontained=True)


@dataclass
class Sweep:
    """A sweep's files, and what its steps are made of."""

    root: Path
    work: EvolveWork
    commit: str
    environ: dict[str, str]

    @property
    def layout(self) -> Layout:
        return Layout(self.root / "state")

    @property
    def candidates(self) -> Path:
        return folder_of(self.layout.run(RUN))

    def freeze(self, **files: str) -> str:
        """Freeze an overlay; ``solver`` stands for ``solver.py``. Returns its digest."""
        named = {f"{name}.py": text.encode() for name, text in files.items()}
        return freeze(Overlay(named), self.candidates).name

    def change(self, **more: Any) -> None:
        self.work = self.work.model_copy(update=more)

    def task(self, **more: Any) -> None:
        self.change(tasks=tuple(task.model_copy(update=more) for task in self.work.tasks))

    def context(self, parameters: dict[str, Any], *, ask: ResourceAsk | None = None) -> Context:
        number = sum(1 for path in self.root.iterdir() if path.name.startswith("scratch"))
        scratch, tries = self.root / f"scratch-{number}", self.root / f"tries-{number}"
        scratch.mkdir()
        tries.mkdir()
        spec = RunSpec(
            run=RUN,
            kind="evolve",
            target="toy",
            commit=self.commit,
            cause="a test",
            made_at=AT,
            made_by="a test",
            work=dump(self.work),
        )
        step = step_spec(
            spec,
            job="cell",
            cause="a test",
            body="outerloop_hpc.evolve.bodies.cell:cell",
            resources=ask or self.work.tasks[0].resources,
            parameters=parameters,
            max_tries=1,
        )
        element = ManifestElement(step=step, try_number=1)
        return Context(spec, element, self.layout, scratch, tries / "e0000.log", Stop(), 600.0, self.environ)

    def left(self, context: Context) -> list[str]:
        """Names in the submission's folder and in scratch."""
        return sorted(path.name for path in context.log.parent.iterdir())


def carry_out(body: Body, context: Context) -> Result:
    return carried_out(body, context)


def cell_given(**more: Any) -> dict[str, Any]:
    return {
        "cell": "c0ffee",
        "task": "toy",
        "seed": 3,
        "repeat": 0,
        "stage": "screen",
        "overlay": "",
        "arms": ["incumbent"],
        **more,
    }


def new_sweep(root: Path, files: dict[str, str] | None = None, proposer: Proposer | None = None) -> Sweep:
    """Make a target, its mirror, and a sweep with one task over it, without any container."""
    source = new_source(root / "source")
    for path, text in (files or FILES).items():
        place = source / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
    (source / "old-answer").write_text("the answer was 41\n", encoding="utf-8")
    commit(source, "with an old answer")
    (source / "old-answer").unlink()
    made = commit(source, "the base")
    mirror = Mirror(root / "state" / "mirrors" / "toy.git")
    mirror.sync(str(source), "main")
    task = Task(
        id="toy",
        commit=made,
        tree=mirror.tree(made),
        command=(sys.executable, "bench.py"),
        oracle=Oracle(command=(sys.executable, "{oracle}/checks/hidden.py"), files=("checks/hidden.py",), timeout_s=90),
        success_key="ok",
        timeout_s=90,
        resources=ResourceAsk(minutes=5, cpus=1, memory_mb=500),
    )
    work = EvolveWork(
        name="toy",
        document="d" * 64,
        overlay=OverlayRules(allow=("solver.py",)),
        proposer=proposer or Grid(template={"solver.py": "FACTOR = {{factor}}\n"}, values={"factor": (1, 2, 3)}),
        tasks=(task,),
        unit="pair",
        gate=GatePolicy(primary=Metric(name="score", direction="max")),
        base={"solver.py": content_digest((files or FILES)["solver.py"].encode())},
        proposing=ResourceAsk(minutes=5),
        containment=UNCONTAINED,
        proposing_containment=UNCONTAINED,
    )
    return Sweep(root, work, made, {"PATH": os.environ["PATH"]})
