"""Run a child process of this checkout and take its time."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]


def environment() -> dict[str, str]:
    """The environment of every child: this checkout is what is imported, with byte code as an installation has it."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "OUTERLOOP_"))}
    return {**kept, "PYTHONPATH": str(CHECKOUT), "NO_COLOR": "1"}


@dataclass(frozen=True, slots=True)
class Child:
    """What one child took, in seconds (its own children's CPU time included), and what it printed."""

    wall: float
    cpu: float
    output: str


def python(*arguments: str, cwd: Path = CHECKOUT, programs: Path | None = None) -> Child:
    """Run this Python with ``arguments``; ``programs`` is a folder whose programs the child finds first.

    Raises:
        RuntimeError: it failed; the text has its complaints.
    """
    environ = environment()
    if programs is not None:
        environ["PATH"] = f"{programs}:{environ['PATH']}"
    argv = [sys.executable, *arguments]
    used, begun = _cpu(), time.perf_counter()
    done = subprocess.run(argv, cwd=cwd, env=environ, capture_output=True, text=True, check=False)
    wall, cpu = time.perf_counter() - begun, _cpu() - used
    if done.returncode:
        raise RuntimeError(f"python {' '.join(arguments)}: exit status {done.returncode}: {done.stderr[-2000:]}")
    return Child(wall, cpu, done.stdout)


def seconds(arguments: Sequence[str]) -> float:
    """Return the wall seconds of one child."""
    return python(*arguments).wall


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
