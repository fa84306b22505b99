"""A real bubblewrap: what is visible from inside, and that a measurement works in it."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path, PurePosixPath

import pytest

from outerloop_hpc.clock import SystemClock
from outerloop_hpc.container.bubblewrap import Bubblewrap
from outerloop_hpc.container.check import check
from outerloop_hpc.container.choose import choose
from outerloop_hpc.container.enclosure import Enclosure
from outerloop_hpc.container.runtime import Bind, Runtime, Sandbox, make_scratch
from outerloop_hpc.measure.measurement import Measurement, Outcome
from outerloop_hpc.measure.run import Request, measure
from outerloop_hpc.process import run_command
from outerloop_hpc.supervision.child import Limits

pytestmark = [
    pytest.mark.local,
    pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed here"),
    pytest.mark.skipif(not Path("/usr/bin/python3").exists(), reason="no python3 in /usr/bin to run inside"),
]


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> Runtime:
    monkeypatch.setenv("OUTERLOOP_SECRET", "of the caller")
    return choose("auto", image=None, uncontained=False)


@pytest.fixture
def enclosure(runtime: Runtime, tmp_path: Path) -> Enclosure:
    scratch = tmp_path / "scratch: with, signs"
    make_scratch(scratch)
    data = tmp_path / "data"
    data.mkdir()
    (data / "x").write_text("1", encoding="ascii")
    binds = (Bind(data, PurePosixPath("/data")),)
    return Enclosure(runtime, Sandbox(binds, PurePosixPath("/"), scratch))


def measured(enclosure: Enclosure, folder: Path, script: str, wall_s: float = 120.0) -> Measurement:
    folder.mkdir(exist_ok=True)
    (folder / "bench.py").write_text(script, encoding="utf-8")
    request = Request("python3 bench.py", "score", folder, Limits(wall_s, 0.5), seed=3, seed_env="SEED")
    return measure(request, enclosure=enclosure, clock=SystemClock())


def test_it_was_seen_to_contain(runtime: Runtime) -> None:
    assert isinstance(runtime, Bubblewrap)
    assert runtime.cuts_network


def test_a_measurement_sees_only_its_sandbox(enclosure: Enclosure, tmp_path: Path) -> None:
    script = f"""
import json, os
def refused(path):
    try:
        open(path, "w")
    except OSError:
        return 1
    return 0
print(json.dumps({{
    "score": int(os.environ["SEED"]),
    "host_file": int(os.path.exists({str(tmp_path / "data")!r})),
    "secret": int("OUTERLOOP_SECRET" in os.environ),
    "root_home": int(os.path.exists("/root/.ssh") or os.path.exists("/home/" + os.environ.get("USER", "x"))),
    "data_read_only": refused("/data/x"),
    "usr_read_only": refused("/usr/x"),
    "work_writable": 1 - refused("/work/result"),
    "tmp_writable": 1 - refused("/tmp/t"),
    "interfaces": len(os.listdir("/sys/class/net")) if os.path.exists("/sys/class/net") else 0,
    "processes": sum(name.isdigit() for name in os.listdir("/proc")),
}}))
"""
    found = measured(enclosure, tmp_path / "co", script)
    assert (found.outcome, found.value) == (Outcome.MEASURED, 3.0), found.reason
    assert found.metrics.pop("processes") < 5
    assert found.metrics == {
        "host_file": 0,
        "secret": 0,
        "root_home": 0,
        "data_read_only": 1,
        "usr_read_only": 1,
        "work_writable": 1,
        "tmp_writable": 1,
        "interfaces": 0,
    }
    assert (found.runtime, found.network, found.image_sha256) == ("bubblewrap", "off", None)
    assert (tmp_path / "co/result").exists()
    assert (enclosure.sandbox.scratch / "tmp/t").exists()


def test_no_value_is_seen_in_the_process_list(enclosure: Enclosure, tmp_path: Path) -> None:
    folder = tmp_path / "co"
    folder.mkdir()
    prepared = enclosure.command(["sleep", "5"], {"TOKEN": "seen-by-nobody"}, folder)
    with subprocess.Popen(prepared.argv, env=dict(prepared.env), cwd=prepared.cwd) as process:
        time.sleep(0.3)
        listing = subprocess.run(["ps", "-eww", "-o", "args"], capture_output=True, text=True, check=True).stdout
        process.kill()
    assert "seen-by-nobody" not in listing
    assert str(folder) in listing


def test_a_daemon_in_the_sandbox_dies_with_it(enclosure: Enclosure, tmp_path: Path) -> None:
    script = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execvp("sleep", ["sleep", "987654"])
    os._exit(0)
os.wait()
print('{"score": 1}')
"""
    found = measured(enclosure, tmp_path / "co", script)
    assert found.value == 1.0
    assert subprocess.run(["pgrep", "-f", "^sleep 987654"], check=False, capture_output=True).stdout == b""


def test_a_sandboxed_command_that_ignores_term_ends_at_the_limit(enclosure: Enclosure, tmp_path: Path) -> None:
    script = "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(600)"
    found = measured(enclosure, tmp_path / "co", script, wall_s=1.0)
    assert found.outcome is Outcome.FAILED
    assert found.seconds < 60


def test_a_missing_bind_is_infrastructure_and_a_missing_program_is_not(enclosure: Enclosure, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "data")
    found = measured(enclosure, tmp_path / "co", "print('{\"score\": 1}')")
    assert found.outcome is Outcome.INFRASTRUCTURE
    assert "container start failed" in found.reason
    (tmp_path / "data").mkdir()
    request = Request("no-such-program", "score", tmp_path / "co", Limits(10))
    assert measure(request, enclosure=enclosure, clock=SystemClock()).outcome is Outcome.FAILED


def test_check_reports_what_is_seen(runtime: Runtime, tmp_path: Path) -> None:
    program = shutil.which("bwrap") or ""
    found = {one.name: one for one in check(lambda environ: Bubblewrap(program, environ=environ), scratch=tmp_path)}
    assert found["starts"].ok
    assert found["python3"].detail.startswith("Python 3")
    wrong = [one for one in found.values() if not one.ok and one.name != "git"]
    assert wrong == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.getuid() != 0 or shutil.which("setpriv") is None, reason="needs root to become somebody else")
def test_it_works_for_an_ordinary_user(tmp_path: Path) -> None:
    program = shutil.which("bwrap") or ""
    sandbox = Sandbox((), PurePosixPath("/"), Path("/tmp/outerloop-test-" + os.urandom(4).hex()))
    make_scratch(sandbox.scratch)
    for folder in (sandbox.scratch, sandbox.scratch / "home", sandbox.scratch / "tmp"):
        os.chown(folder, 65534, 65534)
    try:
        prepared = Bubblewrap(program).command(["id", "-u"], sandbox)
        argv = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *prepared.argv]
        finished = run_command(argv, timeout=120, env=prepared.env, cwd=Path("/"))
        assert (finished.stdout.strip(), finished.status) == ("65534", 0), finished.stderr
    finally:
        shutil.rmtree(sandbox.scratch)
