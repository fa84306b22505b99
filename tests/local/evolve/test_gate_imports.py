"""What importing the gate costs who needs no gate."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.local

_LOADED = """
import sys
import outerloop_hpc.evolve.gate.decide, outerloop_hpc.evolve.gate.screening
print(sorted({"numpy", "scipy"} & sys.modules.keys()))
"""


def test_neither_numpy_nor_scipy_is_imported_before_a_gate_decides() -> None:
    done = subprocess.run([sys.executable, "-c", _LOADED], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
