"""One quiet pass in a process of its own: ``python -m tests.bench.onepass STATE``; prints what it saw as JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from outerloop_hpc import collector
from outerloop_hpc.engine.tick import Pass
from tests.bench.queue import MemoryCompute
from tests.bench.statefolder import engine


def peak_mib() -> float:
    """Return the largest resident size of this process so far (VmHWM: getrusage would count the parent's, too)."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("/proc/self/status has no VmHWM")


def main(root: str) -> None:
    """Make the pass, with the collector as the command line has it."""
    collector.seldom()
    result = Pass(engine(Path(root), MemoryCompute()), launch=False).run()
    alive = sum(1 for _, line in result.lines if line.verdict == "alive")
    said = {"live": result.live, "alive": alive, "faults": len(result.faults), "peak_mib": peak_mib()}
    sys.stdout.write(json.dumps(said) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
