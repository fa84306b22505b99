"""Passes over a state folder in one process: ``python -m tests.bench.sweep STATE PROGRAMS ROUNDS``.

Each asks the stub ``squeue`` and ``sacct`` in the folder PROGRAMS, as real processes. Prints JSON: the seconds of each
pass after a first one that warms caches and is dropped, what a pass saw, and the most memory that was used.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

from outerloop_hpc import collector
from outerloop_hpc.engine.tick import Pass
from outerloop_hpc.process import run_command
from outerloop_hpc.slurm.query import SlurmQuery
from outerloop_hpc.slurm.sbatch import SiteOptions
from outerloop_hpc.slurm.submit import SlurmCompute
from tests.bench.onepass import peak_mib
from tests.bench.statefolder import engine


class Alice(SlurmCompute):
    """Slurm, as seen by the user to whom all these jobs belong."""

    @property
    def user(self) -> str:
        """Whose jobs are asked about."""
        return "alice"


def main(root: str, programs: str, rounds: int) -> None:
    """Make the passes."""
    collector.seldom()
    environ = {"PATH": f"{programs}:{os.environ['PATH']}"}
    query = SlurmQuery(run_command, environ, column_cache=Path(root).with_name("columns"))
    compute = Alice(query, python=sys.executable, site=SiteOptions(), environ=environ, run=run_command)
    wired = engine(Path(root), compute)
    result = Pass(wired, launch=False).run()
    seconds: list[float] = []
    for _ in range(rounds):
        begun = time.perf_counter()
        result = Pass(wired, launch=False).run()
        seconds.append(time.perf_counter() - begun)
    alive = sum(1 for _, line in result.lines if line.verdict == "alive")
    said = {
        "seconds": seconds,
        "live": result.live,
        "alive": alive,
        "others": len(result.faults) + len(result.problems),
        "calls": result.calls,
        "peak_mib": peak_mib(),
    }
    sys.stdout.write(json.dumps(said) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
