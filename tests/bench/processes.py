"""Run a child process of this checkout and take its time."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]


def environment() -> dict[str, str]:
    """The environment of every child: this checkout is what is imported, with byte code as an installation has it."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "OUTERLOOP_"))}
    return {**kept, "PYTHONPATH": str(CHECKOUT), "NO_COLOR": "1"}


def python(*arguments: str, cwd: Path = CHECKOUT) -> tuple[float, str]:
    """Run this Python with ``arguments``; return wall seconds and its output.

    Raises:
        RuntimeError: it failed; the text has its complaints.
    """
    begun = time.perf_counter()
    done = subprocess.run(
        [sys.executable, *arguments], cwd=cwd, env=environment(), capture_output=True, text=True, check=False
    )
    seconds = time.perf_counter() - begun
    if done.returncode:
        raise RuntimeError(f"python {' '.join(arguments)}: exit status {done.returncode}: {done.stderr[-2000:]}")
    return seconds, done.stdout


def seconds(arguments: Sequence[str]) -> float:
    """Return the wall seconds of one child."""
    return python(*arguments)[0]
