"""What this tool adds to a job on this machine, beside bare submitit with the same command.

The command says when it begins and ends. To its first line: the way in. All but the command's own seconds: the way in
and out, checkout, record and accounting included.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import submitit
from submitit.local.local import LocalJob

from outerloop_hpc.engine.layout import Layout, element_file
from outerloop_hpc.engine.records import LOG
from tests.bench.figure import Figure, beside
from tests.bench.places import disk, scratch
from tests.bench.processes import environment, python
from tests.bench.samples import Samples

_ROUNDS = 7
_PEER = "submitit LocalExecutor"
_WAIT_S = 120.0
_COMMAND = """\
import json, time
print(json.dumps({"begun": time.time()}), flush=True)
time.sleep(0.2)
print(json.dumps({"score": 1.0, "ended": time.time()}), flush=True)
"""
_CONTRACT = """\
benchmarks:
  - {name: score, command: python3 timed.py, metric: score, direction: max, eval_minutes: 1}
scope: {allowed: [solver.py]}
steward: {allowed: [timed.py]}
"""
_SETTINGS = """\
state = {{ root = "{root}" }}
compute = {{ kind = "local" }}
container = {{ uncontained = true }}
targets = {{ timed = {{ repository = "{target}", branch = "main" }} }}
"""


@dataclass(frozen=True, slots=True)
class Overhead:
    """Seconds of one job."""

    to_first_line: float
    beyond: float


def overhead(submitted: float, output: str, ended: float) -> Overhead:
    """Compute it from when the job was submitted and over, and from what the command said in between.

    Raises:
        KeyError: the command did not say when it began or ended.
    """
    said: dict[str, Any] = {}
    for line in output.splitlines():
        if line.startswith("{"):
            said |= json.loads(line)
    return Overhead(said["begun"] - submitted, ended - submitted - (said["ended"] - said["begun"]))


def measure() -> list[Figure]:
    """Run both in turn; the first pair warms caches and is dropped."""
    with scratch(disk()) as folder:
        project = make_project(folder)
        pairs = [(ours(project), bare(folder)) for _ in range(_ROUNDS + 1)][1:]
    mine, theirs = zip(*pairs, strict=True)
    return [
        beside(
            f"job_overhead.{name}",
            "s",
            Samples(tuple(getattr(one, name) for one in mine)),
            _PEER,
            Samples(tuple(getattr(one, name) for one in theirs)),
        )
        for name in ("to_first_line", "beyond")
    ]


def make_project(folder: Path) -> Path:
    """Make a target with the command as its benchmark, and a state folder for it."""
    target, project = folder / "target", folder / "project"
    target.mkdir()
    files = {"timed.py": _COMMAND, "solver.py": "", ".outerloop.yaml": _CONTRACT}
    for name, text in files.items():
        (target / name).write_text(text, encoding="utf-8")
    for arguments in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "timed"]):
        subprocess.run(["git", *arguments], cwd=target, env=_git_environment(), check=True)
    (project / "state").mkdir(parents=True)
    settings = _SETTINGS.format(root=project / "state", target=target)
    (project / "outerloop.toml").write_text(settings, encoding="utf-8")
    return project


def ours(project: Path) -> Overhead:
    """Measure one job of ours: submission and end as its event file has them; it is settled when it is over."""
    run = _cli(project, "bench", "run", "timed", "--seeds", "1").split()[0]
    layout = Layout(project / "state")
    folder = next((layout.run(run).path / "tries").iterdir())
    at = wait_for_end(layout.local / f"{folder.name}.jsonl")
    output = (folder / element_file(0, LOG)).read_text(encoding="utf-8")
    _cli(project, "reconcile")
    return overhead(at["submitted"], output, at["ended"])


def wait_for_end(events: Path) -> dict[str, float]:
    """Return when each event of a local job happened, once it has ended.

    Raises:
        RuntimeError: it did not end in two minutes.
    """
    until = time.monotonic() + _WAIT_S
    while time.monotonic() < until:
        lines = events.read_text(encoding="utf-8").splitlines()
        at = {event["event"]: float(event["at"]) for event in map(json.loads, lines)}
        if "ended" in at:
            return at
        time.sleep(0.2)
    raise RuntimeError(f"{events}: no end within {_WAIT_S} s")


def bare(folder: Path) -> Overhead:
    """Measure the same command under submitit alone; over when the job's process is gone."""
    executor = submitit.LocalExecutor(folder=folder / "bare")
    executor.update_parameters(timeout_min=2)
    submitted = time.time()
    job = executor.submit(run_command, str(folder / "target"))
    assert isinstance(job, LocalJob)
    assert job._process is not None
    job._process.wait()
    ended = time.time()
    return overhead(submitted, str(job.result()), ended)


def run_command(folder: str) -> str:
    """Run the command; submitit pickles this by its name."""
    return subprocess.run(["python3", "timed.py"], cwd=folder, capture_output=True, text=True, check=True).stdout


def _cli(cwd: Path, *arguments: str) -> str:
    return python("-m", "outerloop_hpc.cli.main", *arguments, cwd=cwd).output


def _git_environment() -> dict[str, str]:
    who = {f"GIT_{role}_{what}": "bench" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    return {**environment(), **who, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
