"""The reference's sweep, carried out by an interpreter that has it: ``python reference.py ROOT TOTAL LIVE ROUNDS``.

Makes TOTAL records, LIVE of them running with a Slurm job each, all others ended long ago and settled; then sweeps.
``sacct`` is whatever PATH holds. Prints JSON: seconds of each sweep after a first one that
warms caches and is dropped, and how many records a sweep found running.
Needs the standard library and ``outerloop`` alone: nothing of this project is imported here.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from pathlib import Path
from typing import Any


def records(state: Any, root: Path, total: int, live: int) -> None:
    """Write the records; all of a kind are copies of one that the reference wrote itself."""
    now = time.time()
    old = now - 90 * 86400
    for first, last, changes in (
        (0, live, {"state": state.RUNNING, "run_job_id": "1000000", "created": now, "deadline": now + 86400}),
        (live, total, {"state": state.ENDED, "ending": state.ABORTED, "created": old}),
    ):
        if first == last:
            continue
        name = f"run-{first:08d}"
        record = state.RunRecord(
            run_id=name,
            target="owner/repo",
            task_title="score",
            benchmark="score",
            stage={"launches_cancelled": True},
            **changes,
        )
        state.save_record(root, record, changes["created"])
        text = (state.run_dir(root, name) / state.RECORD_NAME).read_text(encoding="utf-8")
        for number in range(first + 1, last):
            other = f"run-{number:08d}"
            folder = state.run_dir(root, other)
            folder.mkdir(parents=True)
            changed = text.replace(name, other).replace('"1000000"', f'"{1000000 + number}"')
            (folder / state.RECORD_NAME).write_text(changed, encoding="utf-8")


def main(root: Path, total: int, live: int, rounds: int) -> None:
    """Make the records and sweep them."""
    tick, state, compute = (importlib.import_module(f"outerloop.{name}") for name in ("tick", "runstate", "compute"))
    records(state, root, total, live)
    slurm, dispatcher = compute.SlurmCompute(), tick.LoggingDispatcher()
    seconds: list[float] = []
    ended = 0
    for _ in range(rounds + 1):
        begun = time.perf_counter()
        report = tick.sweep(root, slurm, dispatcher, time.time())
        seconds.append(time.perf_counter() - begun)
        ended += len(report.running_ended)
    running = sum(1 for one in state.list_runs(root) if one.state == state.RUNNING)
    said = {"seconds": seconds[1:], "running": running, "ended": ended}
    sys.stdout.write(json.dumps(said) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:5]))
