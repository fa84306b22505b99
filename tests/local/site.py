"""A whole site in a folder: a target repository, outerloop.toml, a state folder, and the real command line on them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import outerloop_hpc
from outerloop_hpc.slurm.localjobs import LocalJob, parse
from outerloop_hpc.slurm.processes import process_id
from tests.local.driver import Driver
from tests.local.scratch import commit, new_source

CHECKOUT = Path(outerloop_hpc.__file__).parents[1]
CLI = (sys.executable, "-m", "outerloop_hpc.cli.main")
#: Generous: it is only ever reached by a test that fails.
PATIENCE_S = 240.0

CONTRACT = """\
benchmarks:
  - name: score
    command: python3 evaluate.py
    metric: score
    direction: max
    seed_env: SEED
    eval_minutes: 1
budgets:
  gpu_hours_per_run: 0
  runs_per_week: 100
scope:
  allowed: [solver.py]
steward:
  allowed: [evaluate.py]
"""

#: For benchmarks that a test holds: their own limit is not reached meanwhile, however slow the machine is.
PATIENT_CONTRACT = CONTRACT.replace("eval_minutes: 1", "eval_minutes: 5")

#: Another one, with the benchmarks that are put in.
CONTRACT_OF = """\
benchmarks:
{benchmarks}
budgets: {{gpu_hours_per_run: 0, runs_per_week: 100}}
scope: {{allowed: [solver.py]}}
steward: {{allowed: [evaluate.py]}}
"""

#: Milliseconds of work; the number is the seed's own, so that a mixed-up seed shows.
EVALUATE = """\
import json, os
print(json.dumps({"score": int(os.environ["SEED"]) % 1000 + BONUS}))
"""

SETTINGS = """\
[state]
root = {root}
min_free_gb = {min_free_gb}

[compute]
kind = "{compute}"

[reconcile]
submit_lag_s = {submit_lag_s}
backoff_s = {backoff_s}
confirm_s = {confirm_s}
soft_window_s = {soft_window_s}
archive_wait_s = 600
min_interval_s = {min_interval_s}
ask_again_s = {ask_again_s}

[container]
runtime = "{runtime}"
uncontained = {uncontained}
scratch = "{scratch}"

[bench]
seeds = {seeds}
"""


@dataclass(frozen=True)
class Done:
    """How one command ended."""

    status: int
    out: str
    err: str


def wait_for(condition: Callable[[], bool], what: str, limit_s: float = PATIENCE_S) -> None:
    until = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < until, f"not within {limit_s:g} s: {what}"
        time.sleep(0.02)


@dataclass(frozen=True)
class Site:
    """Paths of one site. ``settings`` are those of SETTINGS; targets are added with their sources."""

    root: Path
    state: Path
    targets: dict[str, Path] = field(default_factory=dict)
    driver: Driver | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    #: How the driver carries out every command, see there.
    how: dict[str, object] = field(default_factory=dict)

    @property
    def config(self) -> Path:
        return self.root / "outerloop.toml"

    def extend(self, text: str) -> None:
        """Add sections to outerloop.toml."""
        with self.config.open("a", encoding="utf-8") as file:
            file.write(f"\n{text}")

    def configure(self, **settings: object) -> None:
        """Write outerloop.toml and make the state folder."""
        self.state.mkdir(parents=True, exist_ok=True)
        values: dict[str, object] = {
            "root": json.dumps(str(self.state), ensure_ascii=False),
            "min_free_gb": 0,
            "compute": "local",
            "submit_lag_s": 600,
            "backoff_s": 0,
            "confirm_s": 0,
            "soft_window_s": 0,
            "min_interval_s": 0,
            "ask_again_s": 0,
            "runtime": "none",
            "uncontained": "true",
            "seeds": 2,
            "scratch": "",
            **settings,
        }
        text = SETTINGS.format(**values)
        for name, source in self.targets.items():
            text += f"\n[targets.{name}]\nrepository = {json.dumps(str(source), ensure_ascii=False)}\n"
        self.config.write_text(text, encoding="utf-8")

    def source(self, name: str = "tiny") -> Path:
        return self.targets[name]

    def change(self, evaluate: str, name: str = "tiny") -> str:
        """Commit another evaluation; returns the commit."""
        (self.source(name) / "evaluate.py").write_text(evaluate, encoding="utf-8")
        return commit(self.source(name))

    def cli(self, *arguments: str, expect: Sequence[int] = (0,)) -> Done:
        """Run the real command line, in a process of its own, and check its exit status."""
        if self.driver is not None:
            ended = self.driver.order("--config", str(self.config), *arguments, **self.how)
            return _checked(arguments, Done(ended.status, ended.out, ended.err), expect)
        done = subprocess.run(
            [*CLI, "--config", str(self.config), *arguments],
            cwd=self.root,
            env=environment() | dict(self.env),
            capture_output=True,
            text=True,
            check=False,
        )
        return _checked(arguments, Done(done.returncode, done.stdout, done.stderr), expect)

    def rows(self, *arguments: str, expect: Sequence[int] = (0,)) -> list[dict[str, Any]]:
        """Run a command with --json and return its rows."""
        rows: list[dict[str, Any]] = json.loads(self.cli(*arguments, "--json", expect=expect).out)["rows"]
        return rows

    def live(self) -> list[str]:
        folder = self.state / "live"
        return sorted(p.name for p in folder.iterdir() if not p.name.startswith(".")) if folder.exists() else []

    def runs(self) -> list[Path]:
        """Folders of all runs, oldest first."""
        return sorted((p for p in self.state.glob("runs/*/*") if (p / "spec.json").exists()), key=lambda p: p.name)

    def run_folder(self) -> Path:
        (only,) = self.runs()
        return only

    def events(self, folder: Path | None = None) -> list[dict[str, Any]]:
        """Return every event of a run's journal."""
        journal = (folder or self.run_folder()) / "journal"
        names = sorted(p for p in journal.iterdir() if not p.name.startswith("."))
        return [event for name in names for event in json.loads(document(name))["events"]]

    def local_files(self) -> list[Path]:
        """Event files of local jobs."""
        return sorted(p for p in self.state.glob("local/*") if not p.name.startswith("."))

    def local_jobs(self) -> list[LocalJob]:
        """Return what the event files say, of those whose controller started."""
        found = [parse(document(path).decode())[0] for path in self.local_files()]
        return [job for job in found if job is not None and job.controller is not None]

    def elements_ended(self) -> bool:
        """Whether every element of every started controller has ended."""
        return all(len(job.ended) == job.count for job in self.local_jobs())

    def jobs_gone(self) -> bool:
        """Whether every element has ended and every controller has left."""
        controllers = [job.controller for job in self.local_jobs() if job.controller is not None]
        return self.elements_ended() and not any(process_id(one.pid) == one for one in controllers)

    def save(self) -> None:
        """Keep the state folder as it is now."""
        shutil.copytree(self.state, self.root / "saved", symlinks=True)

    def empty(self) -> None:
        """Begin anew with an empty state folder."""
        shutil.rmtree(self.state)
        self.state.mkdir()

    def restore(self) -> None:
        """Go back to what was saved: a story can be told again, and no job has to run twice."""
        shutil.rmtree(self.state)
        shutil.copytree(self.root / "saved", self.state, symlinks=True)

    def until_closed(self, limit_s: float = PATIENCE_S) -> None:
        """Make passes without launches of new runs until no run is live."""

        def closed() -> bool:
            self.cli("reconcile", expect=(0, 75))
            return not self.live()

        wait_for(closed, "every run is closed", limit_s)

    def stop_jobs(self) -> None:
        """End what a test left running."""
        for job in self.local_jobs():
            for process in [job.controller, *(started for started, _ in job.started.values())]:
                if process is not None and process_id(process.pid) == process:
                    try:
                        os.killpg(process.pid, signal.SIGKILL)
                    except ProcessLookupError:
                        continue


def _checked(arguments: Sequence[str], done: Done, expect: Sequence[int]) -> Done:
    shown = f"{arguments}: exit {done.status}\n{done.out}\n{done.err}"
    assert done.status in expect, shown
    assert "Traceback" not in done.err, shown
    return done


def document(path: Path) -> bytes:
    """Read a published document, also where it had to become a folder."""
    return (path / "document").read_bytes() if path.is_dir() else path.read_bytes()


def environment() -> dict[str, str]:
    """Return the environment of every process that a test starts: the package is the one under test."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("OUTERLOOP_", "SLURM_", "COV_"))}
    return {**kept, "PYTHONPATH": str(CHECKOUT), "PYTHONDONTWRITEBYTECODE": "1", "NO_COLOR": "1"}


def tiny_target(folder: Path, evaluate: str = EVALUATE.replace("BONUS", "0"), contract: str = CONTRACT) -> Path:
    """Make a target with one benchmark whose command is ``evaluate``."""
    source = new_source(folder)
    (source / ".outerloop.yaml").write_text(contract, encoding="utf-8")
    (source / "evaluate.py").write_text(evaluate, encoding="utf-8")
    (source / "solver.py").write_text("ANSWER = 42\n", encoding="utf-8")
    commit(source)
    return source


def iris_target(folder: Path) -> Path:
    """Make a target of the example."""
    source = new_source(folder)
    shutil.copytree(
        CHECKOUT / "examples" / "iris", source, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__")
    )
    commit(source)
    return source


def new_site(
    root: Path,
    *,
    targets: Mapping[str, Path],
    state: Path | None = None,
    driver: Driver | None = None,
    env: Mapping[str, str] | None = None,
    **settings: object,
) -> Site:
    """Make a site for these targets; with a driver its commands run in forks of it, which start faster."""
    root.mkdir(parents=True, exist_ok=True)
    site = Site(root, state or root / "state", dict(targets), driver, dict(env or {}))
    site.configure(**settings)
    return site


def outcome(site: Site) -> dict[str, Any]:
    """Return what must be the same whatever happened on the way: endings, values, ledger, records, jobs, leftovers."""
    endings, values, records = [], [], []
    for folder in site.runs():
        events = site.events(folder)
        endings += [(e["ending"], e["result"]) for e in events if e["type"] == "run.ended"]
        done = [e for e in events if e["type"] == "try.ended" and e["outcome"] == "done"]
        records += sorted(e["payload"]["seed"] for e in done)
        for point in site.state.glob(f"results/*/*/{folder.name}.json"):
            samples = json.loads(document(point))["samples"]
            values.append((point.parent.name, {s["seed"]: s["value"] for s in samples}))
    ledgers = {path.parent.name: json.loads(path.read_bytes()) for path in site.state.glob("results/*/leader.json")}
    return {
        "endings": endings,
        "values": values,
        "measured": records,
        "ledgers": _timeless(ledgers),
        "reports": [(folder / "report.md").exists() for folder in site.runs()],
        "started": [sum(row["Start"].isdigit() for row in archived(folder)) for folder in site.runs()],
        "event files": [path.name for path in site.local_files()],
        "live": site.live(),
    }


def archived(folder: Path) -> list[dict[str, str]]:
    """Return the archived accounting rows of a run's elements, one for each that was submitted."""
    files = [json.loads(document(path)) for path in sorted((folder / "accounting").glob("*.json"))]
    return [row for file in files for row in file["rows"] if not row["JobID"].endswith(".batch")]


def _timeless(value: Any) -> Any:
    """Leave out times and run ids, which differ between any two runs."""
    if isinstance(value, dict):
        return {k: _timeless(v) for k, v in value.items() if k not in {"updated", "best_run", "run", "at"}}
    return [_timeless(one) for one in value] if isinstance(value, list) else value
