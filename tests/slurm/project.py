"""Alice's project on a cluster: a target repository, her settings, the tool's commands, and what they left on disk."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from outerloop_hpc.documents import decode
from outerloop_hpc.engine import events as ev
from outerloop_hpc.engine.fold import apply
from outerloop_hpc.engine.layout import parse_run_id
from outerloop_hpc.engine.state import RunState, Submission
from outerloop_hpc.process import Finished
from tests.cluster.cluster import SHARED, Cluster
from tests.cluster.machine import SOURCE, Spawned
from tests.cluster.processes import Process

TOOL = ("python", "-m", "outerloop_hpc.cli.main")
#: What a patient benchmark calls itself while it waits to be released.
PATIENT = "ol-patient"
#: Seconds that a test waits for a condition: rows and starts come a minute late while all tiers run on two cores.
PATIENCE_S = 400.0

#: Small, so that tests are quick; long enough for what Slurm itself is late with. Every pass asks.
WINDOWS: Mapping[str, int] = {
    "confirm_s": 1,
    "soft_window_s": 3,
    "grace_s": 600,
    "submit_lag_s": 8,
    "skew_s": 1,
    "backoff_s": 1,
    "archive_wait_s": 240,
    "min_interval_s": 0,
    "ask_again_s": 0,
}

_CONTRACT = """\
benchmarks:
  - {name: quick, command: python3 evaluate.py, metric: score, direction: max, seed_env: SEED, eval_minutes: 2}
  - {name: patient, command: python3 evaluate.py --wait, metric: score, direction: max, seed_env: SEED, eval_minutes: 5}
  - {name: endless, command: sleep 3600, metric: score, direction: max, eval_minutes: 1}
scope: {allowed: [solver.py]}
steward: {allowed: [evaluate.py]}
"""

#: The score follows from the seed alone. With ``--wait`` it is told only after a USR1, which the process announces by
#: its name that it is ready for.
_EVALUATE = f"""\
import json, os, pathlib, signal, sys
from solver import score
if sys.argv[1:] == ["--wait"]:
    signal.pthread_sigmask(signal.SIG_BLOCK, {{signal.SIGUSR1}})
    pathlib.Path("/proc/self/comm").write_text("{PATIENT}")
    signal.sigwait({{signal.SIGUSR1}})
print(json.dumps({{"score": score(int(os.environ["SEED"]))}}))
"""
_SOLVER = "def score(seed):\n    return seed * 2.5\n"


@dataclass
class Project:
    """One folder of alice's below ``/shared``, with its own state folder.

    Attributes:
        image: container image of the target; empty runs its benchmarks without any.
        settings: further lines of outerloop.toml by section; ``configure`` writes them anew.
        env: variables of every command of the tool.
    """

    cluster: Cluster
    name: str
    image: str = ""
    targets: tuple[str, ...] = ("demo",)
    settings: dict[str, dict[str, object]] = field(default_factory=dict)
    user: str = "alice"
    env: dict[str, str] = field(default_factory=dict)
    held: list[str] = field(default_factory=list)

    @property
    def folder(self) -> str:
        """Where it is, inside."""
        return f"{SHARED}/{self.name}"

    @property
    def state_root(self) -> str:
        """Its state folder, inside."""
        return f"{self.folder}/state"

    @property
    def repository(self) -> str:
        """The target's repository, inside."""
        return f"{self.folder}/target"

    # --- making it

    def make(self, files: Mapping[str, str] | None = None) -> Project:
        """Make the repository with one commit and the state folder, and write the settings."""
        given = files or {".outerloop.yaml": _CONTRACT, "evaluate.py": _EVALUATE, "solver.py": _SOLVER}
        for path, text in given.items():
            self.write(f"target/{path}", text)
        self.git("init", "-q", "-b", "main")
        self.commit("a start")
        self.cluster.check(["mkdir", "-p", self.state_root], user=self.user, cwd=self.folder)
        self.configure()
        return self

    def configure(self, **sections: Mapping[str, object]) -> None:
        """Write outerloop.toml; what is given here stays for later calls."""
        for section, values in sections.items():
            self.settings.setdefault(section, {}).update(values)
        merged: dict[str, dict[str, object]] = {
            "state": {"root": self.state_root, "min_free_gb": 0.01},
            "reconcile": dict(WINDOWS),
            "container": {"runtime": "apptainer"} if self.image else {"runtime": "none", "uncontained": True},
        }
        for target in self.targets:
            merged[f"targets.{target}"] = {"repository": self.repository, "image": self.image, "benchmarks": ["quick"]}
        for section, values in self.settings.items():
            merged.setdefault(section, {}).update(values)
        lines = []
        for section, values in merged.items():
            lines += [f"[{section}]", *(f"{key} = {json.dumps(value)}" for key, value in values.items())]
        self.write("outerloop.toml", "\n".join(lines) + "\n")

    def write(self, path: str, text: str) -> None:
        """Write one of alice's files; ``path`` is relative to the project's folder."""
        self.cluster.write(f"{self.folder}/{path}", text, user=self.user)

    def git(self, *arguments: str) -> str:
        """Run git in the target's repository."""
        identity = ["-c", "user.name=Alice", "-c", "user.email=alice@example.org"]
        return self.cluster.check(["git", *identity, *arguments], user=self.user, cwd=self.repository).strip()

    def commit(self, message: str) -> str:
        """Commit everything; returns the commit's id."""
        self.git("add", "--all")
        self.git("commit", "-q", "-m", message)
        return self.git("rev-parse", "HEAD")

    # --- running the tool

    def tool(self, *arguments: str, env: Mapping[str, str] | None = None, timeout: float = 600.0) -> Finished:
        """Run one command of the tool as alice."""
        variables = {**self.env, **(env or {})}
        return self.cluster.run([*TOOL, *arguments], user=self.user, cwd=self.folder, env=variables, timeout=timeout)

    def hurry(self) -> None:
        """Let Slurm's commands give up a silent controller sooner, until ``take_time``: a busy one is late, too."""
        patient = self.cluster.read("/etc/slurm/slurm.conf")
        self.write("slurm.conf", patient + "MessageTimeout=5\n")
        self.env["SLURM_CONF"] = f"{self.folder}/slurm.conf"

    def take_time(self) -> None:
        """Undo ``hurry``."""
        self.env.pop("SLURM_CONF", None)

    def script(self, name: str, *arguments: str, timeout: float = 600.0) -> Finished:
        """Run one of the helpers in ``inside/`` as alice."""
        argv = ["python", f"{SOURCE}/tests/slurm/inside/{name}.py", *arguments]
        return self.cluster.run(argv, user=self.user, cwd=self.folder, timeout=timeout)

    def start_script(self, name: str, *arguments: str) -> Spawned:
        """Start one of the helpers in the background."""
        argv = ["python", f"{SOURCE}/tests/slurm/inside/{name}.py", *arguments]
        return self.cluster.spawn(argv, user=self.user, cwd=self.folder, env=self.env)

    def done(self, *arguments: str, status: int = 0, env: Mapping[str, str] | None = None) -> str:
        """Run one command, expect its exit status, return its standard output."""
        finished = self.tool(*arguments, env=env)
        assert finished.status == status, f"{arguments}: {finished.status}\n{finished.stdout}\n{finished.stderr}"
        return finished.stdout

    def rows(self, *arguments: str, status: int = 0) -> list[dict[str, Any]]:
        """Run one command with ``--json`` and return its rows."""
        rows: list[dict[str, Any]] = self.json(*arguments, status=status)["rows"]
        return rows

    def json(self, *arguments: str, status: int = 0) -> dict[str, Any]:
        """Run one command with ``--json`` and return the whole document."""
        document: dict[str, Any] = json.loads(self.done(*arguments, "--json", status=status))
        return document

    def bench(self, *seeds: int, benchmark: str = "patient", target: str = "demo") -> str:
        """Ask for one run with these seeds; returns its id."""
        chosen = ",".join(map(str, seeds))
        return self.done("bench", "run", target, "-b", benchmark, "--seeds", chosen).strip()

    # --- what is on disk

    def runs(self) -> list[str]:
        """Ids of all runs, oldest first."""
        listed = self.cluster.run(["find", f"{self.state_root}/runs", "-mindepth", "2", "-maxdepth", "2"])
        names = [Path(line).name for line in listed.stdout.split()]
        return sorted(names, key=lambda name: (parse_run_id(name).stamp, name))

    def run_of(self, target: str) -> str:
        """The only run of a target."""
        (found,) = (run for run in self.runs() if parse_run_id(run).target == target)
        return found

    def run_folder(self, run: str) -> str:
        """A run's folder, inside."""
        return f"{self.state_root}/runs/{parse_run_id(run).month}/{run}"

    def transactions(self, run: str) -> list[ev.Transaction]:
        """The journal of a run, as it is now."""
        folder = f"{self.run_folder(run)}/journal"
        text = self.cluster.check(["sh", "-c", f"cat {folder}/0*.json 2>/dev/null || true"])
        found: list[ev.Transaction] = []
        decoder, at = json.JSONDecoder(), 0
        while at < len(text.rstrip()):
            _, end = decoder.raw_decode(text, at)
            one: ev.Transaction = decode(ev.Transaction, text[at:end].encode(), Path(folder))
            found.append(one)
            at = end + len(text[end:]) - len(text[end:].lstrip())
        return found

    def events(self, run: str, kind: type[Any]) -> list[Any]:
        """All events of one kind in a run's journal."""
        return [event for one in self.transactions(run) for event in one.events if isinstance(event, kind)]

    def state(self, run: str) -> RunState:
        """The fold of a run's journal."""
        state = RunState(run=run)
        for transaction in self.transactions(run):
            state = apply(state, transaction)
        return state

    def submission(self, run: str) -> Submission:
        """A run's newest submission."""
        return list(self.state(run).submissions.values())[-1]

    def document(self, run: str, path: str) -> dict[str, Any]:
        """A JSON document in a run's folder."""
        found: dict[str, Any] = json.loads(self.cluster.read(f"{self.run_folder(run)}/{path}"))
        return found

    def archived(self, run: str) -> dict[str, dict[str, Any]]:
        """The accounting archives of a run, by submission."""
        return {name: self.document(run, f"accounting/{name}.json") for name in self.state(run).submissions}

    def reported(self, run: str) -> list[tuple[str, str]]:
        """What ``report jobs`` says of a run's jobs: outcome and state of each attempt, in its order."""
        rows = [row for row in self.rows("report", "jobs") if row["run_id"] == run]
        return [(row["outcome"], row["state"]) for row in rows]

    def bought(self, named: str = "ol.") -> list[str]:
        """Base ids of all jobs (an array is one) of this project, by their job name.

        Those that accounting knows, and those that only the controller knows: rows may come a minute late.
        """
        window = ["-a", "-S", "now-1day", "-E", "now+1day"]
        accounting = ["sacct", "-n", "-P", "-X", "-D", *window, "-o", "jobid,workdir,jobname"]
        queue = ["squeue", "-h", "-a", "-t", "all", "-o", "%F|%Z|%j"]
        lines = [line for argv in (accounting, queue) for line in self.cluster.check(argv).splitlines()]
        jobs = (line.split("|", 2) for line in lines)
        ours = (job for job, at, name in jobs if at.startswith(f"{self.folder}/") and name.startswith(named))
        return sorted({re.split(r"[_.]", job)[0] for job in ours}, key=int)

    # --- waiting

    def wait(self, condition: Callable[[], bool], what: str, timeout: float = PATIENCE_S) -> None:
        """Wait for a condition."""
        self.cluster.machine.wait_until(condition, what, timeout)

    def pass_until(
        self, condition: Callable[[], bool], what: str, statuses: Sequence[int] = (0, 20), timeout: float = PATIENCE_S
    ) -> None:
        """Make passes until a condition holds; each must end with one of these exit statuses."""

        def passed() -> bool:
            finished = self.tool("reconcile", "--quiet")
            assert finished.status in statuses, f"{finished.status}: {finished.stdout}\n{finished.stderr}"
            return condition()

        if not condition():
            self.wait(passed, what, timeout)

    def settle(self, *runs: str, phase: str = "closed", statuses: Sequence[int] = (0, 20)) -> list[RunState]:
        """Make passes until all these runs are in a phase; returns their states."""
        states: list[RunState] = []

        def settled() -> bool:
            states[:] = [self.state(run) for run in runs]
            return all(state.phase == phase for state in states)

        self.pass_until(settled, f"{runs} {phase}", statuses)
        return states

    def patients(self) -> list[Process]:
        """Benchmark processes that wait to be released; those in containers have pid namespaces of their own."""
        nodes = {process.uts for process in self.cluster.machine.processes()}
        named = [folder for folder in Path("/proc").iterdir() if folder.name.isdigit() and _name(folder) == PATIENT]
        return [process for folder in named for process in _seen(folder) if process.uts in nodes]

    def release(self, count: int, *, of: int | None = None) -> None:
        """Wait until ``of`` benchmarks wait (``count`` unless told), and let ``count`` of them go on."""
        self.wait_patients(count if of is None else of)
        for process in self.patients()[:count]:
            process.kill(signal.SIGUSR1)

    def wait_patients(self, count: int) -> None:
        """Wait until so many benchmarks wait to be released."""
        self.wait(lambda: len(self.patients()) == count, f"{count} waiting benchmarks")

    def holder(self, run: str, index: int = 0) -> dict[str, Any]:
        """Who claimed an element of the run's newest submission: host, pid and job id."""
        found: dict[str, Any] = self.document(run, f"tries/{self.submission(run).name}/e{index:04d}.claim.json")
        holder: dict[str, Any] = found["holder"]
        return holder

    def process_of(self, holder: Mapping[str, Any]) -> Process:
        """The Python of the job that holds an element."""
        (process,) = (one for one in self.cluster.machine.processes() if one.pid == holder["pid"])
        return process

    def kill_job(self, holder: Mapping[str, Any]) -> None:
        """Kill the Python of the job that holds an element, as the kernel does when memory runs out."""
        process = self.process_of(holder)
        process.kill()
        self.wait(lambda: process.host_pid not in {one.host_pid for one in self.cluster.machine.processes()}, "its end")


def _name(folder: Path) -> str:
    with suppress(OSError):
        return (folder / "comm").read_text(encoding="utf-8", errors="replace").strip()
    return ""


def _seen(folder: Path) -> Iterator[Process]:
    with suppress(OSError):
        uts = str((folder / "ns" / "uts").readlink())
        yield Process(int(folder.name), 0, uts, _name(folder), ())


def values_of(state: RunState) -> dict[str, float]:
    """The numbers that an ended run holds, by seed."""
    assert state.ended is not None
    values: dict[str, float] = state.ended.result["values"]
    return values


def outcomes_of(state: RunState) -> list[list[str]]:
    """How the tries of each step ended, in order; a try that is under way is ``open``."""
    return [[one.outcome or "open" for one in step.tries] for step in state.steps.values()]
