"""The steward lane on a real Slurm, in the containment that is there: each way an order can go."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from outerloop_hpc.forge.markers import read
from tests.cluster.cluster import SHARED, Cluster
from tests.cluster.venv import CHECKOUT
from tests.slurm.project import PATIENT, Project

_CONTRACT = """\
benchmarks:
  - {name: score, command: python3 evaluate.py, metric: score, direction: max, seed_env: SEED, eval_minutes: 2}
  - {name: other, command: python3 other.py, metric: other, direction: max, eval_minutes: 2}
scope: {allowed: [solver.py]}
steward: {allowed: [evaluate.py, checks]}
"""
_FILES = {
    ".outerloop.yaml": _CONTRACT,
    "solver.py": "def answer(seed):\n    return seed % 1000\n",
    "evaluate.py": "import json, os\nfrom solver import answer\n"
    "print(json.dumps({'score': answer(7)}))  # always the same\n",
    "other.py": "import json\nprint(json.dumps({'other': 1.5}))\n",
}
_START = """\
import json, os, pathlib, signal, socket, sys
pathlib.Path("/proc/self/comm").write_text("ol-session")
def end(status, outcome, report):
    print(json.dumps({"outcome": outcome, "report": report}), flush=True)
    sys.exit(status)
"""
_AGENTS = {
    "mend": _START + "path = pathlib.Path('evaluate.py')\n"
    "path.write_text(path.read_text().replace('answer(7)', 'answer(int(os.environ[\"SEED\"]))'))\n"
    "inside = os.path.exists('/.singularity.d')\n"
    "end(0, 'done', f'inside an image: {inside}; key {os.environ[\"AGENT_KEY\"]}')\n",
    "answer": _START + "end(10, 'no-change', 'It measures what it should.')\n",
    "cheat": _START
    + "pathlib.Path('solver.py').write_text('def answer(seed):\\n    return 10**9\\n')\nend(0, 'done', '')\n",
    "outage": _START + "sys.stderr.write('API Error: 529 overloaded\\n')\nend(75, 'outage', '')\n",
    "patient": _START + "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})\n"
    f"pathlib.Path('/proc/self/comm').write_text('{PATIENT}')\n"
    "signal.sigwait({signal.SIGUSR1})\nend(10, 'no-change', 'Somebody let me go.')\n",
}
INSIDE = CHECKOUT / "tests" / "local" / "steward" / "inside.py"
#: Where the daemon of the first node listens; all nodes of the test cluster share the loopback.
SLURMD = 17001
KEY = "sk-alices-own-key-0123456789"


#: What an image and its runtime set for everybody.
_ORDINARY = {
    *(
        "PATH",
        "HOME",
        "TMPDIR",
        "LANG",
        "LC_ALL",
        "LC_CTYPE",
        "TZ",
        "PWD",
        "USER_PATH",
        "PS1",
        "TERM",
        "PROMPT_COMMAND",
    ),
    "LD_LIBRARY_PATH",
}


class Lane:
    """Alice's project with a steward and one order."""

    def __init__(self, project: Project, agent: str) -> None:
        self.project = project
        project.settings = {"bench": {"seeds": 1}, "targets.demo": {"benchmarks": ["other"]}}
        project.make(_FILES)
        project.git("config", "receive.denyCurrentBranch", "updateInstead")
        for name, text in _AGENTS.items():
            project.write(f"agents/{name}.py", text)
        project.write("agents/inside.py", INSIDE.read_text(encoding="utf-8"))
        project.write("key", KEY)
        project.cluster.check(["chmod", "600", f"{project.folder}/key"], user=project.user)
        self.use(agent)
        project.done("init")
        title = ["--title", "It can be gamed", "--body", "It always asks the same.", "--benchmark", "score"]
        self.order = project.done("orders", "new", "demo", *title).split()[-1]

    def use(self, agent: str) -> None:
        """Let the steward be this agent from now on."""
        steward = {
            "command": ["python3", f"{{files}}/{agent}.py"],
            "files": f"{self.project.folder}/agents",
            "key_file": f"{self.project.folder}/key",
            "key_env": "AGENT_KEY",
            "seeds": 2,
            "minutes": 10,
        }
        self.project.configure(steward=steward)

    def tick(self) -> str:
        """Tick; returns the steward run that it began."""
        before = set(self.stewards())
        self.project.done("tick")
        (run,) = set(self.stewards()) - before
        return run

    def stewards(self) -> list[str]:
        return [run for run in self.project.runs() if run.startswith("steward-")]

    def thread(self) -> list[dict[str, Any]]:
        """What was said on the order, as it is on disk."""
        folder = f"{self.project.state_root}/forge/demo/orders/{int(self.order)}"
        names = self.project.cluster.check(["ls", folder]).split()
        return [self._said(f"{folder}/{name}") for name in names[1:]]

    def markers(self) -> list[str]:
        found = [read(said["body"]) for said in self.thread() if said["author"] == "outerloop"]
        return [one.reason or "claimed" for one in found if one is not None]

    def bought(self) -> int:
        """How many session jobs accounting has seen."""
        return len(self.project.bought("ol.demo.session"))

    def until_told(self, what: str) -> None:
        self.project.pass_until(lambda: any(what in said["body"] for said in self.thread()), f"{what!r} on the order")

    def _said(self, path: str) -> dict[str, Any]:
        said: dict[str, Any] = json.loads(self.project.cluster.read(path))
        return said


@pytest.fixture
def lane(project: Project) -> Callable[[str], Lane]:
    return lambda agent: Lane(project, agent)


def test_an_order_is_measured_proposed_merged_and_accounted_for(lane: Callable[[str], Lane], containment: str) -> None:
    ours = lane("mend")
    project, run = ours.project, ours.tick()
    ours.until_told("proposes")
    (change,) = project.rows("changes", "list", "demo")
    (session,) = [one for one in ours.thread() if "proposes" in one["body"]]
    assert f"inside an image: {bool(containment)}" in session["body"]
    assert KEY not in session["body"]
    project.done("changes", "merge", "demo", change["change"])
    (state,) = project.settle(run)
    assert state.ended is not None
    assert (state.ended.ending, ours.markers()) == ("merged", ["claimed", "published"])
    assert ours.bought() == 1
    assert set(project.archived(run)) == set(state.submissions)
    measured = [step.payload for step in state.steps.values() if step.spec.job == "measure"]
    assert {one["runtime"] for one in measured} == {"apptainer" if containment else "none"}
    assert len({one["value"] for one in measured}) == 2
    (row,) = [row for row in project.rows("bench", "ledger", "demo") if row["benchmark"] == "score"]
    assert row["best_run"] == run
    assert "int(os.environ" in project.cluster.read(f"{project.repository}/evaluate.py")
    found = project.cluster.run(["grep", "-r", "-l", KEY, project.state_root], timeout=60)
    assert found.stdout == ""


def test_an_answered_order_is_not_bought_again_until_somebody_comments(lane: Callable[[str], Lane]) -> None:
    ours = lane("answer")
    (state,) = ours.project.settle(ours.tick())
    assert state.ended is not None
    assert (state.ended.ending, ours.markers()) == ("answered", ["claimed", "answered"])
    ours.project.done("tick")
    assert len(ours.stewards()) == 1
    ours.project.done("orders", "comment", "demo", ours.order, "--body", "Look again, please.")
    ours.project.settle(ours.tick())
    assert ours.bought() == 2


def test_a_cheating_session_is_refused_with_its_paths_and_nothing_is_measured(lane: Callable[[str], Lane]) -> None:
    ours = lane("cheat")
    (state,) = ours.project.settle(ours.tick())
    assert state.ended is not None
    assert (state.ended.ending, ours.markers()) == ("out-of-scope", ["claimed", "failed"])
    assert "`solver.py`" in ours.thread()[-1]["body"]
    assert [step.spec.job for step in state.steps.values()] == ["session"]
    assert ours.project.rows("changes", "list", "demo", "--all") == []


def test_a_session_whose_job_is_killed_has_failed_and_is_not_bought_twice_for_one_claim(
    lane: Callable[[str], Lane],
) -> None:
    ours = lane("patient")
    project, run = ours.project, ours.tick()
    project.wait_patients(1)
    project.kill_job(project.holder(run))
    project.wait(lambda: not project.patients(), "the session dies with its job")
    (state,) = project.settle(run)
    assert state.ended is not None
    assert (state.ended.ending, ours.markers()) == ("aborted", ["claimed", "failed"])
    assert "died with its job" in state.ended.reason
    assert [len(step.tries) for step in state.steps.values()] == [2], "the second try found the first one's session"
    second = ours.tick()
    project.release(1)
    project.settle(second)
    assert ours.markers() == ["claimed", "failed", "claimed", "answered"]


def test_an_outage_gives_the_attempt_back_and_pauses_the_role_from_the_refusal_on(lane: Callable[[str], Lane]) -> None:
    ours = lane("outage")
    project, run = ours.project, ours.tick()
    (state,) = project.settle(run)
    assert state.ended is not None
    assert (state.ended.ending, ours.markers()) == ("outage", ["claimed", "outage"])
    record = next(iter(state.steps.values())).payload
    path = f"{project.state_root}/outages/steward/{run}.json"
    assert re.search(rf'"at":\s*"{re.escape(record["refused_at"])}"', project.cluster.read(path))
    project.done("tick")
    assert len(ours.stewards()) == 1, "the role pauses"
    project.cluster.check(["rm", path], user=project.user)
    ours.use("answer")
    project.settle(ours.tick())
    assert ours.markers() == ["claimed", "outage", "claimed", "answered"]


def test_a_session_that_somebody_cancels_waits_for_a_person(lane: Callable[[str], Lane]) -> None:
    ours = lane("patient")
    project, run = ours.project, ours.tick()
    project.wait_patients(1)
    project.cluster.check(["scancel", project.submission(run).job_id], user=project.user)
    (state,) = project.settle(run, phase="parked")
    assert state.parked is not None
    assert ours.markers() == ["claimed"]
    project.done("runs", "end", run, "--reason", "enough")
    project.settle(run)
    assert ours.markers() == ["claimed", "answered"]


def test_a_session_in_apptainer_sees_its_workspace_brief_and_own_key_and_nothing_else(
    cluster26: Cluster, apptainer_image: str
) -> None:
    project = Project(cluster26, "inside", apptainer_image)
    ours = Lane(project, "inside")
    host = [project.folder, project.state_root, f"{project.folder}/key", "/etc/slurm", "/etc/munge", "/run/munge"]
    homes = ["/home/alice", "/root/.ssh", SHARED]
    closed = ["/usr", "/bin", "/outerloop", "/outerloop/files"]
    probe = {"key_env": "AGENT_KEY", "paths": [*host, *homes], "closed": closed, "port": SLURMD, "leak": False}
    project.write("agents/probe.json", json.dumps({**probe, "wait": False}))
    project.configure(steward={"network": False})
    connect = f"import socket; socket.create_connection(('127.0.0.1', {SLURMD}), 5)"
    reachable = project.cluster.run(["srun", "-n1", "python", "-c", connect], user=project.user, cwd=project.folder)
    assert reachable.status == 0, f"outside a container it can be reached: {reachable.stderr}"
    run = ours.tick()
    ours.until_told("proposes")
    state = project.state(run)
    (session,) = (step.payload for step in state.steps.values() if step.spec.job == "session")
    found = json.loads(session["report"])
    own = {"OUTERLOOP_ROLE", "OUTERLOOP_BRIEF", "OUTERLOOP_TURNS", "OUTERLOOP_MINUTES", "AGENT_KEY"}
    runtime = [name for name in found["env"] if name.startswith(("APPTAINER", "SINGULARITY"))]
    assert set(found["env"]) - set(runtime) - own <= _ORDINARY
    assert found["key length"] == len(KEY)
    assert found["brief"]
    assert found["work"] == [".git", ".outerloop.yaml", "evaluate.py", "other.py", "solver.py"]
    assert found["table"] == ["brief.md", "files"]
    empty = {"there": [], "tmp": [], "writable": [], "git": [], "reached": False}
    assert {name: found[name] for name in empty} == empty
    assert found["key in a command line"] == 0
    assert not any("slurm" in line for line in found["processes"])
    assert not any(KEY in said for said in found["said"])
    measured = [step.payload["metrics"] for step in state.steps.values() if step.spec.job == "measure"]
    assert len(measured) == 2
    for metrics in measured:
        assert metrics == {"reached": 0, "links": 0, "key": 0, "table": 0, "host": 0}
    assert project.cluster.run(["grep", "-r", "-l", KEY, project.state_root], timeout=60).stdout == ""
