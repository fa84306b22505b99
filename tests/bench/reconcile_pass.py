"""One quiet pass over 1,000 live runs of five running elements each, with more and more ended runs beside them.

A process of its own makes each pass: its whole wall time beyond that of ``python -c pass`` is the figure, imports
included. ``command`` is the whole command line with stub squeue and sacct. The states with fewer ended runs are the
same folder with months of them put aside, measured in turn.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from outerloop_hpc.engine import runs
from outerloop_hpc.engine.evidence import ref_of
from outerloop_hpc.engine.watch import load
from tests.bench.figure import Figure, Peer, figure
from tests.bench.places import disk, memory, scratch
from tests.bench.processes import python, seconds
from tests.bench.queue import ELEMENTS
from tests.bench.samples import Samples, in_turn
from tests.bench.statefolder import PER_MONTH, StateFolder
from tests.bench.stubs import make_stubs

LIVE = 1000
ENDED = (0, 10_000, 50_000)
_ROUNDS = 11
_GOAL_S, _GOAL_MB = 0.5, 150


@dataclass(slots=True)
class Passes:
    """Makes passes over one state folder and remembers how much memory and CPU time each took."""

    folder: StateFolder
    peaks: dict[int, list[float]] = field(default_factory=dict)
    cpu: dict[int, list[float]] = field(default_factory=dict)

    def one(self, ended: int) -> float:
        """Make one pass with so many ended runs in place; returns wall seconds.

        Raises:
            RuntimeError: the pass did not see what is there.
        """
        self.folder.show_ended(ended // PER_MONTH)
        child = python("-m", "tests.bench.onepass", str(self.folder.root))
        said: dict[str, Any] = json.loads(child.output)
        _check(said["live"], said["alive"], said["faults"])
        self.peaks.setdefault(ended, []).append(said["peak_mib"] * 2**20 / 1e6)
        self.cpu.setdefault(ended, []).append(child.cpu)
        return child.wall

    def command(self) -> float:
        """Make one pass by the command line, with everything in place; returns wall seconds.

        Raises:
            RuntimeError: the pass did not see what is there.
        """
        self.folder.show_ended(max(ENDED) // PER_MONTH)
        arguments = ("-m", "outerloop_hpc.cli.main", "--config", str(self.config), "reconcile", "-P")
        child = python(*arguments, programs=self.programs)
        alive = child.output.count("|alive|")
        _check(LIVE, alive, child.output.count("\n") - 1 - alive)
        return child.wall

    @property
    def programs(self) -> Path:
        """Where the stub programs are."""
        return self.folder.root.with_name("bin")

    @property
    def config(self) -> Path:
        """The settings of this state folder."""
        return self.folder.root.with_name("outerloop.toml")

    def prepare(self) -> None:
        """Make the stub programs and the settings."""
        states = [load(self.folder.layout, run).state for run in runs.live(self.folder.layout)]
        make_stubs(self.programs, [ref_of(one) for state in states for one in state.submissions.values()])
        text = f'state = {{ root = "{self.folder.root}", min_free_gb = 0 }}\ncompute = {{ kind = "slurm" }}\n'
        self.config.write_text(text, encoding="utf-8")


def _check(live: int, alive: int, others: int) -> None:
    if (live, alive, others) != (LIVE, LIVE * ELEMENTS, 0):
        raise RuntimeError(f"the pass saw {live} live runs, {alive} running elements and {others} other things")


def measure() -> list[Figure]:
    """Build the state folder, measure, remove it."""
    with scratch(memory() or disk()) as parent:
        folder = StateFolder(Path(parent) / "state")
        folder.add_live(LIVE)
        folder.add_ended(max(ENDED))
        passes = Passes(folder)
        passes.prepare()
        measures: dict[str, Callable[[], float]] = {"start": partial(seconds, ("-c", "pass"))}
        measures |= {str(ended): partial(passes.one, ended) for ended in ENDED}
        measures["command"] = passes.command
        measures["imports"] = partial(seconds, ("-c", "import tests.bench.onepass"))
        taken = in_turn(measures, _ROUNDS)
    return figures(taken, *({ended: Samples(tuple(s)) for ended, s in of.items()} for of in (passes.peaks, passes.cpu)))


def figures(taken: dict[str, Samples], peaks: dict[int, Samples], cpu: dict[int, Samples]) -> list[Figure]:
    """Turn wall times into seconds beyond interpreter start; the largest history is the headline."""
    start = taken["start"].median

    def beyond(name: str, measured: str, goal: str = "") -> Figure:
        samples = Samples(tuple(value - start for value in taken[measured].values))
        return figure(f"reconcile_pass.{name}", "s beyond interpreter start", samples, goal=goal)

    found = [beyond(f"ended_{ended}", str(ended), f"< {_GOAL_S}") for ended in ENDED]
    empty, full = found[0], found[-1]
    beside_empty = Peer("no ended runs", empty.value, full.value / empty.value)
    headline = Figure(
        "reconcile_pass", full.value, full.unit, beside_empty, f"< {_GOAL_S}, ratio near 1", full.low, full.high
    )
    return [
        headline,
        *found[:-1],
        beyond("of_which_imports", "imports"),
        beyond("command", "command"),
        figure("reconcile_pass.cpu", "CPU s, interpreter start included", cpu[max(ENDED)]),
        figure("reconcile_pass.peak_memory", "MB", peaks[max(ENDED)], goal=f"< {_GOAL_MB}"),
        figure("reconcile_pass.peak_memory.ended_0", "MB", peaks[0], goal=f"< {_GOAL_MB}"),
    ]
