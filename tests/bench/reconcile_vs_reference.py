"""One sweep over 50,000 records of which 2,500 are live, beside the reference's ``tick.sweep`` over as many.

Both sides are timed in turn by the same interpreter in the same place, inside one process each: imports and interpreter
start are in neither. Both ask stub programs that answer at once, as real processes: ours one ``squeue``, the reference
one ``sacct`` for each live record. The reference's ended records carry its own note that nothing is left to do.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from outerloop_hpc.engine import runs
from outerloop_hpc.engine.evidence import ref_of
from outerloop_hpc.engine.watch import load
from tests.bench import peer
from tests.bench.figure import Figure, Peer, figure
from tests.bench.peer import Place
from tests.bench.places import disk, memory, scratch
from tests.bench.samples import Samples, ratio_of_pairs
from tests.bench.statefolder import StateFolder
from tests.bench.stubs import make_stubs

LIVE, TOTAL = 2500, 50_000
_ROUNDS = 3
_GOAL = "ratio < 0.025 (40 times faster)"
_SACCT = "#!/bin/sh\necho RUNNING\n"


def measure() -> list[Figure]:
    """Build both state folders, with and without history, and sweep them in turn."""
    with scratch(memory() or disk()) as parent, peer.place(parent) as place:
        ours = {total: prepare(parent / f"ours-{total}", LIVE, total - LIVE) for total in (LIVE, TOTAL)}
        if isinstance(place, str):
            return [_alone(total, folder, place, parent) for total, folder in ours.items()]
        taken: dict[int, tuple[list[float], list[float]]] = {LIVE: ([], []), TOTAL: ([], [])}
        for _ in range(_ROUNDS):
            for total, (mine, theirs) in taken.items():
                mine.extend(sweep(place, ours[total], 1, LIVE)["seconds"])
                theirs.extend(reference(place, parent, total, LIVE, 1))
        name = peer.named(place)
    return figures(name, {total: (Samples(tuple(a)), Samples(tuple(b))) for total, (a, b) in taken.items()})


def prepare(parent: Path, live: int, ended: int, elements: int = 1) -> Path:
    """Make a state folder with live runs of so many elements each, ended ones, and the programs that know them."""
    parent.mkdir()
    folder = StateFolder(parent / "state")
    if live:
        folder.add_live(live, elements)
    if ended:
        folder.add_ended(ended)
    states = [load(folder.layout, run).state for run in runs.live(folder.layout)]
    make_stubs(parent / "bin", [ref_of(one) for state in states for one in state.submissions.values()])
    return parent


def sweep(place: Place, parent: Path, rounds: int, live: int, elements: int = 1) -> dict[str, Any]:
    """Let our passes go over a prepared folder; returns what ``tests.bench.sweep`` prints.

    Raises:
        RuntimeError: a pass did not see what is there.
    """
    arguments = ["-m", "tests.bench.sweep", str(parent / "state"), str(parent / "bin"), str(rounds)]
    said: dict[str, Any] = json.loads(place.run(arguments))
    if (said["live"], said["alive"], said["others"]) != (live, live * elements, 0):
        raise RuntimeError(
            f"the pass saw {said['live']} of {live} live runs, {said['alive']} of {live * elements} running tries and "
            f"{said['others']} other things"
        )
    return said


def reference(place: Place, parent: Path, total: int, live: int, rounds: int) -> list[float]:
    """Let the reference make its records and sweep them; returns the seconds of each sweep.

    Raises:
        RuntimeError: a sweep did not find them as they are.
    """
    root, programs = parent / "reference", parent / "reference-bin"
    root.mkdir()
    programs.mkdir(exist_ok=True)
    (programs / "sacct").write_text(_SACCT, encoding="utf-8")
    (programs / "sacct").chmod(0o755)
    # -P: the folder of the program holds names of the standard library.
    arguments = ["-P", "tests/bench/reference.py", str(root), str(total), str(live), str(rounds)]
    said = json.loads(place.run(arguments, programs=programs, reference=True))
    shutil.rmtree(root)
    if (said["running"], said["ended"]) != (live, 0):
        raise RuntimeError(f"the reference found {said['running']} of {live} running and ended {said['ended']}")
    seconds: list[float] = said["seconds"]
    return seconds


def figures(reference_name: str, taken: dict[int, tuple[Samples, Samples]]) -> list[Figure]:
    """The comparison with all records, and with the live ones alone."""
    found = []
    for total, (mine, theirs) in sorted(taken.items(), reverse=True):
        name = "reconcile_vs_reference" if total == TOTAL else f"reconcile_vs_reference.total_{total}"
        other = Peer(reference_name, theirs.median, ratio_of_pairs(mine.values, theirs.values))
        found.append(Figure(name, mine.median, "s a sweep", other, _GOAL, mine.low, mine.high))
    all_of_it, live_alone = found
    growth = Peer("no history", live_alone.value, all_of_it.value / live_alone.value)
    grown = Figure("reconcile_vs_reference.growth", all_of_it.value, "s a sweep", growth, "ratio near 1")
    return [*found, grown]


def _alone(total: int, folder: Path, reason: str, parent: Path) -> Figure:
    said = sweep(peer.Here(parent), folder, _ROUNDS, LIVE)
    name = f"reconcile_vs_reference.ours_of_{total}"
    return figure(name, "s a sweep", Samples(tuple(said["seconds"])), goal=f"left out: the reference: {reason}")
