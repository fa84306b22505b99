"""What the process of a cell must not import: every element of an array pays for it, before anything is measured."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.local

_HEAVY = {"git", "jinja2", "numpy", "optuna", "rich", "ruamel", "scipy", "submitit", "typer", "yaml"}
_OURS = {
    f"outerloop_hpc.{name}" for name in ("agents", "cli", "config", "forge", "report", "slurm.localjobs", "slurm.port")
}
_LOADED = f"""
import sys
import outerloop_hpc.slurm.element, outerloop_hpc.engine.job, outerloop_hpc.evolve.bodies.cell
print(sorted({_HEAVY | _OURS!r} & sys.modules.keys()))
"""


def test_a_cells_process_imports_nothing_that_only_submitting_proposing_or_deciding_needs() -> None:
    done = subprocess.run([sys.executable, "-c", _LOADED], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
