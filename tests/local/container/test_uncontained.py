"""Without a container, a real process still gets only its own HOME, TMPDIR and the allowed variables."""

from __future__ import annotations

import sys
from pathlib import Path, PurePosixPath

import pytest

from outerloop_hpc.clock import SystemClock
from outerloop_hpc.container.choose import choose
from outerloop_hpc.container.enclosure import Enclosure
from outerloop_hpc.container.runtime import Sandbox, make_scratch
from outerloop_hpc.measure.measurement import Outcome
from outerloop_hpc.measure.run import Request, measure
from outerloop_hpc.supervision.child import Limits

pytestmark = pytest.mark.local


def test_environment_and_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUTERLOOP_SECRET", "of the caller")
    scratch, folder = tmp_path / "scratch", tmp_path / "co"
    make_scratch(scratch)
    folder.mkdir()
    script = """
import json, os, tempfile
print(json.dumps({
    "score": 1,
    "secret": int("OUTERLOOP_SECRET" in os.environ),
    "home": int(os.environ["HOME"].endswith("scratch/home")),
    "tmp": int(tempfile.gettempdir().endswith("scratch/tmp")),
    "here": int(os.path.exists("bench.py")),
}))
"""
    (folder / "bench.py").write_text(script, encoding="utf-8")
    runtime = choose("none", image=None, uncontained=True)
    enclosure = Enclosure(runtime, Sandbox((), PurePosixPath("/"), scratch))
    request = Request([sys.executable, "bench.py"], "score", folder, Limits(20))
    found = measure(request, enclosure=enclosure, clock=SystemClock())
    assert found.outcome is Outcome.MEASURED, found.reason
    assert found.metrics == {"secret": 0, "home": 1, "tmp": 1, "here": 1}
    assert (found.runtime, found.network) == ("none", "host")
    assert "not contained" in found.notes[0]
