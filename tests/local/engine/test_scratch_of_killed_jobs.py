"""Scratch of a job that was killed with SIGKILL, with real processes: it goes when its job is dead, never before."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from outerloop_hpc.engine.scratch import sweep
from tests.local.site import environment

pytestmark = pytest.mark.local

#: Holds scratch as a job does, starts a child as it does, says where it is, and waits.
JOB = """
import subprocess, sys
from datetime import UTC, datetime
from outerloop_hpc.engine.scratch import made
with made(sys.argv[1], "0123456789abcdef", datetime.now(UTC)) as own:
    (own / "session").mkdir()
    (own / "session" / "work").write_bytes(b"x")
    child = subprocess.Popen(["sleep", "600"])
    print(own.name, child.pid, flush=True)
    sys.stdin.read()
    child.kill()
    child.wait()
"""


@contextmanager
def job(root: Path) -> Iterator[tuple[subprocess.Popen[str], str, int]]:
    command = [sys.executable, "-c", JOB, str(root)]
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, env=environment(), text=True, **streams) as process:  # type: ignore[call-overload]
        assert process.stdout is not None
        name, child = process.stdout.readline().split()
        yield process, name, int(child)
        process.kill()


def test_scratch_goes_when_its_job_was_killed_and_not_while_it_lives(tmp_path: Path) -> None:
    later = datetime.now(UTC) + timedelta(days=2)
    with job(tmp_path) as (process, name, child):
        assert sweep(str(tmp_path), later) == []
        process.kill()
        process.wait()
        assert (tmp_path / name / "session" / "work").exists()
        assert sweep(str(tmp_path), datetime.now(UTC)) == [], "it is not a day old"
        # What a dead job started and nobody ended holds no lock: it is no job.
        assert sweep(str(tmp_path), later) == [name]
        os.kill(child, 9)
    assert list(tmp_path.iterdir()) == []


def test_a_job_that_ends_well_leaves_nothing(tmp_path: Path) -> None:
    with job(tmp_path) as (process, _, _):
        process.communicate("")
    assert list(tmp_path.iterdir()) == []
