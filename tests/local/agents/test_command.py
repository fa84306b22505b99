"""A real program as an agent: brief on stdin, limits that end it, no secret in what it leaves, nothing left behind."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from outerloop_hpc.agents.command import Assignment, Bounds, NotStarted, run
from outerloop_hpc.agents.outcome import Session
from outerloop_hpc.clock import SystemClock

pytestmark = pytest.mark.local

ROOMY = Bounds(turns=0, minutes=5)
KEY = "sk-very-secret-key-0001"


@dataclass(frozen=True)
class Launched:
    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: Path


@dataclass(frozen=True)
class Bare:
    """No container: the command as it is, with just what it was given."""

    failure: str | None = None

    def command(self, argv: Sequence[str], env: Mapping[str, str], folder: Path) -> Launched:
        return Launched(tuple(argv), {"PATH": "/usr/bin:/bin", **env}, folder)

    def start_failure(self, status: int | None, stderr: str) -> str | None:
        return self.failure


@dataclass
class Desk:
    """A place for one session."""

    folder: Path

    def hold(
        self, script: str, bounds: Bounds = ROOMY, *, stop_after: float = 1e9, failure: str = ""
    ) -> Session | None:
        workspace = self.folder / "work"
        workspace.mkdir()
        (self.folder / "brief.md").write_text("The brief.\n")
        assignment = Assignment(
            command=(sys.executable, "-c", script),
            workspace=workspace,
            brief=self.folder / "brief.md",
            bounds=bounds,
            transcript=self.folder / "transcript",
            env={"OUTERLOOP_ROLE": "steward"},
            secrets={"API_KEY": KEY},
        )
        until = time.monotonic() + stop_after
        return run(assignment, Bare(failure or None), SystemClock(), lambda: time.monotonic() > until)

    @property
    def transcript(self) -> str:
        return (self.folder / "transcript").read_text()


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def held(session: Session | None) -> Session:
    assert session is not None
    return session


def test_it_reads_its_brief_and_changes_its_workspace(desk: Desk) -> None:
    session = held(desk.hold("import sys; open('made', 'w').write(sys.stdin.read())"))
    assert (session.word, session.exit_status) == ("done", 0)
    assert (desk.folder / "work" / "made").read_text() == "The brief.\n"


def test_no_key_leaves_the_session(desk: Desk) -> None:
    script = (
        "import base64, json, os, sys\n"
        "key = os.environ['API_KEY']\n"
        "print('plain', key); print('coded', base64.b64encode(key.encode()).decode())\n"
        "for half in (key[:9], key[9:]): sys.stdout.write(half); sys.stdout.flush()\n"
        "print()\n"
        "print(file=sys.stderr); print(key, file=sys.stderr)\n"
        "print(json.dumps({'outcome': 'no-change', 'report': 'the key is ' + key}))\n"
    )
    session = held(desk.hold(script))
    assert session.report == "the key is [redacted]"
    assert KEY not in desk.transcript + session.model_dump_json()
    assert desk.transcript.count("[redacted]") == 5


@pytest.mark.parametrize(
    ("script", "bounds", "reason"),
    [
        ("while True: pass", Bounds(turns=0, minutes=0.01), "minutes were over"),
        (
            "import json, time\nwhile True: print(json.dumps({'type': 'turn'}), flush=True); time.sleep(0.01)",
            Bounds(turns=5, minutes=5),
            "5 turns were over",
        ),
        ("while True: print('x' * 1000)", Bounds(turns=0, minutes=5, output_bytes=100_000), "more than 100000 bytes"),
    ],
)
def test_what_goes_beyond_its_bounds_is_ended_as_budget(desk: Desk, script: str, bounds: Bounds, reason: str) -> None:
    session = held(desk.hold(script, bounds))
    assert session.word == "budget"
    assert reason in session.reason


def test_a_session_that_the_job_stops_is_no_session_of_any_kind(desk: Desk) -> None:
    assert desk.hold("import time; time.sleep(60)", stop_after=0.5) is None


def test_it_may_end_in_order_when_it_is_asked_to(desk: Desk) -> None:
    # By its turns, which come when it is ready for the signal; the last few bytes wait for more, as half a key might.
    script = (
        "import json, signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: (open('saved', 'w').close(), sys.exit(0)))\n"
        "print(*[json.dumps({'type': 'turn'})] * 200, sep='\\n', flush=True)\n"
        "time.sleep(600)"
    )
    assert held(desk.hold(script, Bounds(turns=1, minutes=5))).word == "budget"
    assert (desk.folder / "work" / "saved").exists()


def test_a_container_that_does_not_start_bought_no_session(desk: Desk) -> None:
    with pytest.raises(NotStarted, match="no loop devices"):
        desk.hold("", failure="no loop devices")


@pytest.mark.parametrize(
    ("script", "bounds", "word"),
    [
        ("import os, time; os.kill(os.getppid(), 9); time.sleep(1)", ROOMY, "failed"),
        ("print('{}')\nimport sys; sys.exit('FATAL:   container creation failed')", ROOMY, "failed"),
        ("import time; time.sleep(60)", Bounds(turns=0, minutes=0.01), "budget"),
    ],
    ids=["its warden was killed", "it speaks like the runtime", "it had to be ended"],
)
def test_a_session_that_ran_is_never_taken_for_one_that_did_not_start(
    desk: Desk, script: str, bounds: Bounds, word: str
) -> None:
    """Each try bought it again: without an exit status, or with a runtime's words, it seemed never to have begun."""
    assert held(desk.hold(script, bounds, failure="the program could not be started")).word == word


def test_a_program_that_is_not_there_bought_no_session(desk: Desk) -> None:
    class Missing(Bare):
        def command(self, argv: Sequence[str], env: Mapping[str, str], folder: Path) -> Launched:
            return super().command(("/none/such", *argv), env, folder)

    (desk.folder / "brief.md").touch()
    wanted = Assignment(("agent",), desk.folder, desk.folder / "brief.md", ROOMY, desk.folder / "transcript")
    with pytest.raises(NotStarted, match="could not be started"):
        run(wanted, Missing("the program could not be started"), SystemClock())
