"""Sweeps on a real cluster: whatever happens to their cells, the same pairs lead to the same decision."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from outerloop_hpc.engine import events as ev
from outerloop_hpc.engine.state import RunState
from tests.cluster.cluster import Cluster
from tests.cluster.configuration import CPUS, NODES
from tests.slurm.project import PATIENT, Project

_RATES = {"incumbent": 1.0, "candidate": 0.8}
#: A cost that follows from seed and file alone. Each execution leaves a line; one that finds a trap takes it and waits
#: for ever.
_EVALUATE = f"""\
import json, os, pathlib, random, signal
rate, seed, task = float(open("rate.txt").read()), os.environ["OL_SEED"], os.environ["OL_TASK"]
name, traps = f"{{task}}-{{seed}}-{{rate}}", pathlib.Path(TRAPS)
with open(traps / "executions", "a") as log:
    log.write(name + "\\n")
if ready := sorted(traps.glob(f"{{name}}.trap*")):
    ready[0].rename(traps / f"sprung-{{ready[0].name}}")
    signal.pthread_sigmask(signal.SIG_BLOCK, {{signal.SIGUSR1}})
    pathlib.Path("/proc/self/comm").write_text("{PATIENT}")
    signal.sigwait({{signal.SIGUSR1}})
noise = random.Random(seed).lognormvariate(0, 0.1) * random.Random(f"{{seed}} {{rate}}").lognormvariate(0, 0.02)
print(json.dumps({{"success": True, "cost": 100 * rate * noise}}))
"""
_PLAIN = """\
import json, os
rate = float(open("rate.txt").read())
print(json.dumps({"cost": 100 * rate + int(os.environ["OL_SEED"]) % 7}))
"""
_CONTRACT = """\
benchmarks:
  - {name: quick, command: python3 evaluate.py, metric: cost, direction: min}
scope: {allowed: [rate.txt]}
"""
#: The third task's cells can be preempted: their partition makes room for better ones.
_SWEEP = """\
schema: sweep/1
name: rates
target: demo
overlay: {allow: [rate.txt]}
proposer: {kind: grid, template: {rate.txt: "{{rate}}\\n"}, values: {rate: [0.8]}}
tasks:
  - {id: one, command: python3 evaluate.py, timeout_s: 110}
  - {id: two, command: python3 evaluate.py, timeout_s: 110}
  - {id: three, command: python3 evaluate.py, timeout_s: 110, resources: {options: {partition: lowc}}}
metrics: {primary: {name: cost, direction: min}}
repeats: {screen: 2, confirm: 10, most: 10}
unit: cell
"""


class Sweeps:
    """Alice's project with one sweep, which she submits several times."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.traps = f"{project.folder}/traps"
        evaluate = _EVALUATE.replace("TRAPS", repr(self.traps))
        project.make({".outerloop.yaml": _CONTRACT, "evaluate.py": evaluate, "rate.txt": "1.0\n"})
        project.write("traps/none", "")
        project.write("sweep.yaml", _SWEEP)
        project.done("init")
        job = f"{project.state_root}/jobs/cell.toml"
        definition = re.sub(r"(?m)^overhead_minutes = \d+", "overhead_minutes = 0", project.cluster.read(job))
        project.cluster.write(job, definition, user="alice")

    def submit(self) -> str:
        return self.project.done("evolve", "submit", "sweep.yaml").strip()

    def trap(self, task: str, seed: int, arm: str, times: int = 1) -> str:
        """Let the first executions of a cell hang; returns the cell's name."""
        name = _named(task, seed, arm)
        for number in range(times):
            self.project.write(f"traps/{name}.trap{number}", "")
        return name

    def executions(self) -> Counter[str]:
        """How often each cell's command began, by the cell's name, in all sweeps."""
        return Counter(self.project.cluster.read(f"{self.traps}/executions").splitlines())

    def decided(self, run: str) -> tuple[str, list[Any]]:
        """The decision, and all that it rests on: tasks, seeds, numbers; not where and by which cell they were had."""
        document = self.project.state(run).conclusions["confirm-g0-look1"]
        rows = []
        for row in document["rows"]:
            pair = row["pair"]
            costs = [pair[arm]["metrics"]["cost"] for arm in _RATES]
            rows.append((pair["task"], pair["seed"], row["use"], row.get("d"), *costs))
        return document["decision"], sorted(rows)

    def done(self, run: str) -> int:
        (row,) = self.project.rows("evolve", "status", run)
        return int(row["done"])

    def holder(self, run: str, task: str, seed: int, arm: str) -> Mapping[str, Any]:
        """Who claimed the newest try of a confirming cell."""
        for step in self.project.state(run).steps.values():
            given = step.spec.parameters
            if (given.get("task"), given.get("seed"), given.get("arms")) == (task, seed, [arm]):
                last = step.tries[-1]
                path = f"tries/{last.submission}/e{last.index:04d}.claim.json"
                found: Mapping[str, Any] = self.project.document(run, path)["holder"]
                return found
        raise AssertionError(f"{run} has no cell of {task}, {seed}, {arm}")


def once(state: RunState) -> bool:
    """Whether every step has exactly one result, and nothing was submitted of it once it had that."""
    outcomes = [[one.outcome for one in step.tries] for step in state.steps.values()]
    return all(tried.count("done") == 1 and tried[-1] == "done" for tried in outcomes)


@pytest.fixture
def sweeps(cluster: Cluster, request: pytest.FixtureRequest) -> Sweeps:
    """Without a container, so that benchmarks find their traps."""
    return Sweeps(Project(cluster, re.sub(r"\W+", "-", request.node.name).strip("-")[:60]))


def test_killed_preempted_timed_out_and_lost_cells_and_a_stop_change_no_decision(sweeps: Sweeps) -> None:
    project, cluster = sweeps.project, sweeps.project.cluster
    undisturbed = sweeps.submit()
    (state,) = project.settle(undisturbed)
    assert state.ended is not None
    assert (state.ended.ending, once(state)) == ("promoted", True)
    decision, rows = sweeps.decided(undisturbed)
    assert (decision, len(rows)) == ("promote", 30)
    first = sweeps.executions()
    assert set(first.values()) == {1}

    seeds = _seeds(state)
    hurt = {
        "killed": ("one", seeds["one", 0], "candidate"),
        "lost": ("two", seeds["two", 2], "candidate"),
        "preempted": ("three", seeds["three", 3], "incumbent"),
    }
    # What the crash loses hangs once more, until its walltime.
    names = {word: sweeps.trap(*cell, times=2 if word == "lost" else 1) for word, cell in hurt.items()}
    disturbed = sweeps.submit()
    project.pass_until(lambda: len(project.patients()) == 3, "three cells in their traps")
    holders = {word: sweeps.holder(disturbed, *cell) for word, cell in hurt.items()}
    project.kill_job(holders["killed"])
    # All of the node but what the other hanging cell may have of it: nobody makes room with that one.
    cpus = CPUS - (holders["lost"]["host"] == "n2")
    better = cluster.check(
        ["sbatch", "--parsable", "-p", "main", "-N1", "-w", "n2", f"-n{cpus}", "--chdir=/tmp", "--wrap", "sleep 3000"],
        user="bob",
    ).strip()
    queued = ["squeue", "-h", "-j", better, "-o", "%T"]
    project.wait(lambda: cluster.check(queued).strip() == "RUNNING", "the better job")
    cluster.check(["scancel", better], user="bob")
    # At once, whatever accounting says by then: the cell has a walltime, too.
    cluster.node_crash(holders["lost"]["host"])
    cluster.node_up(holders["lost"]["host"])
    project.pass_until(lambda: _words(project, disturbed) >= {"PREEMPTED", "NODE_FAIL"}, "what was preempted and lost")
    project.pass_until(lambda: "timed_out" in _outcomes(project, disturbed), "a cell at its walltime")
    (state,) = project.settle(disturbed)
    assert state.ended is not None
    assert state.ended.ending == "promoted"
    assert sweeps.decided(disturbed) == (decision, rows)
    assert once(state)
    again = sweeps.executions() - first - first
    assert set(names.values()) <= set(again), "whoever was hurt ran again"
    tried = Counter(one.outcome for step in state.steps.values() for one in step.tries)
    assert tried["timed_out"] == 1
    assert {"PREEMPTED", "NODE_FAIL"} <= _words(project, disturbed)
    assert sum(again.values()) <= tried["lost"] + tried["timed_out"]

    _stopped_half_way(sweeps, decision, rows, ("two", seeds["two", 1], "candidate"))


def _stopped_half_way(sweeps: Sweeps, decision: str, rows: list[Any], slow: tuple[str, int, str]) -> None:
    """The same sweep once more: stopped when half of its cells have their result and one hangs, and resumed."""
    project, before, hanging = sweeps.project, sweeps.executions(), sweeps.trap(*slow)
    run = sweeps.submit()
    project.pass_until(lambda: sweeps.done(run) >= 30 and len(project.patients()) == 1, "half of the cells")
    project.done("evolve", "cancel", run, "--reason", "the cluster is needed", status=0)
    stopped = project.state(run).steps
    finished = {key for key, step in stopped.items() if step.settled() == "record"}
    project.settle(run, phase="parked")
    project.pass_until(lambda: not list(project.state(run).open_tries()), "nothing of it under way")
    project.done("evolve", "resume", run, "--reason", "it is free again")
    (state,) = project.settle(run)
    assert sweeps.decided(run) == (decision, rows)
    assert once(state)
    assert all(len(state.steps[key].tries) == 1 for key in finished), "what was finished is never measured again"
    ran = sweeps.executions() - before
    given = [stopped[key].spec.parameters for key in finished if stopped[key].spec.job == "cell"]
    names = [_named(one["task"], one["seed"], *one["arms"]) for one in given]
    assert len(names) >= 30
    assert ({ran[name] for name in names}, ran[hanging]) == ({1}, 2)
    withdrawn = sum(one.outcome == "withdrawn" for step in state.steps.values() for one in step.tries)
    cells = sum(step.spec.job == "cell" for step in state.steps.values())
    assert cells < ran.total() <= cells + withdrawn


def _named(task: str, seed: int, arm: str) -> str:
    """What the benchmark calls a cell."""
    return f"{task}-{seed}-{_RATES[arm]}"


def _seeds(state: RunState) -> dict[tuple[str, int], int]:
    """Seeds of the confirming cells, by task and repeat."""
    given = (step.spec.parameters for step in state.steps.values() if step.spec.parameters.get("stage") == "confirm")
    return {(one["task"], one["repeat"]): one["seed"] for one in given}


def _tries(project: Project, run: str) -> Iterator[ev.TryEnded]:
    yield from project.events(run, ev.TryEnded)


def _words(project: Project, run: str) -> set[str]:
    return {one.word for one in _tries(project, run)}


def _outcomes(project: Project, run: str) -> set[str]:
    return {one.outcome for one in _tries(project, run)}


def test_submit_returns_at_once_and_the_sweep_comes_to_its_verdict_without_any_tick(project: Project) -> None:
    """In its container, where the cluster has one: each of its jobs wakes the next step.

    Nothing can run while it is submitted, so whoever waited for a job would wait for ever.
    """
    project.make({".outerloop.yaml": _CONTRACT, "evaluate.py": _PLAIN, "rate.txt": "1.0\n"})
    sweep = re.sub(r"(?m)^  - \{id: t.*\n", "", _SWEEP)
    sweep = sweep.replace("screen: 2, confirm: 10, most: 10", "screen: 3, confirm: 5, most: 5")
    project.write("sweep.yaml", sweep)
    cluster, nodes = project.cluster, ",".join(NODES)
    cluster.check(["scontrol", "update", f"nodename={nodes}", "state=drain", "reason=test"])
    try:
        run = project.done("evolve", "submit", "sweep.yaml").strip()
        begun = project.state(run)
        assert [(step.spec.job, step.settled()) for step in begun.steps.values()] == [("propose", None)]
        assert [one.status for one in begun.submissions.values()] == ["bound"]
    finally:
        cluster.check(["scontrol", "update", f"nodename={nodes}", "state=resume"])
    project.wait(lambda: project.state(run).closed, "the run closed by its own jobs", 900)
    state = project.state(run)
    assert state.ended is not None
    assert state.ended.ending == "promoted"
    assert once(state)
