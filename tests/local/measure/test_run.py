"""Real processes, no container: whatever a benchmark does, the measurement ends, and nothing of it is left."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from outerloop_hpc.clock import SystemClock
from outerloop_hpc.measure.measurement import Measurement, Outcome
from outerloop_hpc.measure.run import Request, measure
from outerloop_hpc.supervision.child import Limits
from tests.local.site import wait_for

pytestmark = pytest.mark.local


@dataclass(frozen=True)
class Started:
    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: Path
    network: str = "host"
    notes: tuple[str, ...] = ()


class Bare:
    """The smallest enclosure: runs the command as it is."""

    name = "none"
    image_sha256 = None

    def command(self, argv: Sequence[str], env: Mapping[str, str], folder: Path) -> Started:
        return Started(tuple(argv), {"PATH": os.environ["PATH"], **env}, folder)

    def start_failure(self, status: int | None, stderr: str) -> str | None:
        return None


class Jumping(SystemClock):
    """An hour passes when the command has made the file ``ready``: it reaches its limit there, on any machine."""

    def __init__(self, checkout: Path) -> None:
        self.ready = checkout / "ready"

    def steady(self) -> float:
        return super().steady() + 3600.0 * self.ready.exists()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "a checkout with 'quotes' and ü"
    folder.mkdir()
    return folder


@pytest.fixture
def marker() -> Iterator[str]:
    """A word on the command line of everything that a test starts; nothing may carry it afterwards."""
    word = f"outerloop-marker-{os.getpid()}-{time.monotonic_ns()}"
    yield word
    found = subprocess.run(["pgrep", "-f", "--", word], capture_output=True, text=True, check=False).stdout.split()
    for pid in found:
        os.kill(int(pid), 9)
    assert found == []


def run(
    checkout: Path,
    script: str,
    *arguments: str,
    wall_s: float = 120.0,
    grace_s: float = 0.5,
    output_bytes: int = 1 << 20,
    log: Path | None = None,
    stop: threading.Event | None = None,
    clock: SystemClock | None = None,
) -> Measurement:
    (checkout / "bench.py").write_text(textwrap.dedent(script), encoding="utf-8")
    request = Request(
        command=[sys.executable, "bench.py", *arguments],
        metric="score",
        checkout=checkout,
        limits=Limits(wall_s, grace_s, output_bytes),
        seed=7,
        seed_env="BENCH_SEED",
        cpus=2,
        log=log,
    )
    clock = clock or SystemClock()
    return measure(request, enclosure=Bare(), clock=clock, stop=(stop or threading.Event()).is_set)


def shortest(measured: Callable[[], Measurement], limit_s: float) -> Measurement:
    """The first of three that took no longer: a busy machine delays one of them, a wait in the program each."""
    for _ in range(3):
        begun = time.monotonic()
        found = measured()
        if time.monotonic() - begun < limit_s:
            return found
    raise AssertionError(f"each took more than {limit_s:g} s")


def test_measures_with_seed_and_pinned_threads(checkout: Path) -> None:
    found = run(
        checkout,
        """
        import json, os
        print("progress")
        print(json.dumps({"score": int(os.environ["BENCH_SEED"]) * 1.5, "threads": int(os.environ["OMP_NUM_THREADS"])}))
        """,
    )
    assert (found.outcome, found.value, found.metrics) == (Outcome.MEASURED, 10.5, {"threads": 2.0})
    assert (found.seed, found.exit_status, found.exit_signal, found.reason) == (7, 0, None, "")
    assert found.seconds > 0
    assert found.cpu_user_s > 0
    assert found.max_rss_kib > 1000
    assert found.node == os.uname().nodename
    assert found.cpu_model
    assert found.network == "host"


def test_the_callers_environment_does_not_arrive(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUTERLOOP_SECRET", "of the caller")
    found = run(checkout, "import os; print({True: '{\"score\": 1}'}.get('OUTERLOOP_SECRET' not in os.environ))")
    assert found.value == 1.0


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("", "printed nothing"),
        ("import os; os.write(1, bytes(range(256)) * 50)", "no line of the output"),
        ("print('{\"score\": NaN}')", "not finite"),
        ("print('{\"score\": 1e999}')", "not finite"),
        ("print('{\"score\": true}')", "true or false"),
        ("print('{\"score\": 1}'); raise SystemExit(3)", "exit status 3"),
        ("import os; print('{\"score\": 1}', flush=True); os.kill(os.getpid(), 11)", "SIGSEGV"),
    ],
)
def test_unusable_results_fail_with_a_reason(checkout: Path, script: str, reason: str) -> None:
    found = run(checkout, script)
    assert found.outcome is Outcome.FAILED
    assert found.value is None
    assert reason in found.reason


def test_the_last_of_two_results_wins(checkout: Path) -> None:
    assert run(checkout, "print('{\"score\": 1}'); print('{\"score\": 2}'); print('done')").value == 2.0


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("raise SystemExit(75)", "tried later"),
        ("raise OSError(28, 'No space left on device')", "no space or memory left"),
        ("raise OSError(12, 'Cannot allocate memory')", "no space or memory left"),
    ],
)
def test_faults_of_the_node_are_infrastructure(checkout: Path, script: str, reason: str) -> None:
    found = run(checkout, script)
    assert found.outcome is Outcome.INFRASTRUCTURE
    assert reason in found.reason


def test_ten_megabytes_of_output_keep_the_result_and_a_capped_log(checkout: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    found = run(
        checkout,
        """
        import sys
        print("first words", flush=True)
        for _ in range(10): sys.stdout.write("x" * 999_999 + "\\n")
        print('{"score": 4}')
        """,
        output_bytes=100_000,
        log=log,
    )
    assert found.value == 4.0
    assert found.output_cut
    assert found.output_bytes > 10_000_000
    text = log.read_bytes()
    assert len(text) < 100_200
    assert text.startswith(b"first words")
    assert text.endswith(b'{"score": 4}\n')
    assert b"bytes left out here" in text


def test_a_flood_on_stderr_is_bounded_and_ends_at_the_limit(checkout: Path, tmp_path: Path, marker: str) -> None:
    log = tmp_path / "log"
    script = """
        import os
        for _ in range(20): os.write(2, b"y" * 65536)
        open("ready", "w").close()
        while True: os.write(2, b"y" * 65536)
    """
    found = run(checkout, script, marker, wall_s=600.0, output_bytes=50_000, log=log, clock=Jumping(checkout))
    assert found.outcome is Outcome.FAILED
    assert found.output_bytes > 1_000_000
    assert log.stat().st_size < 50_200


@pytest.mark.parametrize(
    "script",
    [
        pytest.param("import time; time.sleep(600)", id="never ends"),
        pytest.param("import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(600)", id="ignores TERM"),
        pytest.param("import os, time; os.close(1); os.close(2); time.sleep(600)", id="closes stdout and hangs"),
        pytest.param("import os\nwhile True: os.getpid()", id="spins"),
        pytest.param("import os, signal; os.kill(os.getpid(), signal.SIGSTOP)", id="stops itself"),
    ],
)
def test_a_command_that_does_not_end_is_ended(checkout: Path, marker: str, script: str) -> None:
    found = shortest(lambda: run(checkout, script, marker, wall_s=1.0), 6)
    assert found.outcome is Outcome.FAILED
    assert "did not end within 1 s" in found.reason
    assert found.exit_status is None


def test_a_command_may_end_orderly_within_the_grace(checkout: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    script = """
        import signal, sys, time
        signal.signal(15, lambda *_: (print("tidied up", flush=True), sys.exit(0)))
        open("ready", "w").close()
        time.sleep(600)
    """
    found = run(checkout, script, wall_s=600.0, grace_s=100.0, log=log, clock=Jumping(checkout))
    assert found.outcome is Outcome.FAILED
    assert found.seconds < 3600 + 60
    assert log.read_text(encoding="utf-8") == "tidied up\n"


DAEMON = """
    import os, signal, sys, time
    if os.fork() == 0:
        os.setsid()
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if os.fork() == 0:
            if sys.argv[2] == "quiet":
                for fd in (0, 1, 2): os.close(fd)
            os.execvp("sleep", ["sleep", "600"]) if len(sys.argv) > 3 else time.sleep(600)
        os._exit(0)
    os.wait()
    print('{"score": 5}')
"""


@pytest.mark.parametrize("style", ["quiet", "holds the pipes"])
def test_a_daemon_dies_with_its_measurement(checkout: Path, marker: str, style: str) -> None:
    found = shortest(lambda: run(checkout, DAEMON, marker, style), 6)
    assert found.value == 5.0
    assert "1 processes were still there" in found.notes[0]


def test_a_tree_of_processes_dies_at_the_limit(checkout: Path, marker: str) -> None:
    script = """
        import os, time
        for _ in range(4): os.fork()
        os.setsid() if os.getpid() != os.getsid(0) else None
        time.sleep(600)
    """
    assert run(checkout, script, marker, wall_s=1.0).outcome is Outcome.FAILED


def test_a_stop_interrupts(checkout: Path, marker: str) -> None:
    stop = threading.Event()
    timer = threading.Timer(0.7, stop.set)
    timer.start()
    found = run(checkout, "import time; time.sleep(600)", marker, stop=stop)
    timer.join()
    assert found.outcome is Outcome.INTERRUPTED
    assert found.seconds < 60


def test_nothing_survives_the_death_of_the_measuring_process(checkout: Path, marker: str) -> None:
    (checkout / "bench.py").write_text("import time; time.sleep(600)", encoding="utf-8")
    code = textwrap.dedent(
        """
        import os, sys
        from pathlib import Path
        from outerloop_hpc.clock import SystemClock
        from outerloop_hpc.supervision.child import Limits, run_child
        run_child([sys.executable, "bench.py", sys.argv[2]], env={"PATH": os.environ["PATH"]}, cwd=Path(sys.argv[1]),
                  limits=Limits(600, 0.5), log=None, clock=SystemClock())
        """
    )
    measuring = subprocess.Popen([sys.executable, "-c", code, str(checkout), marker])

    def alive(word: str) -> bool:
        return subprocess.run(["pgrep", "-f", "--", word], capture_output=True, check=False).returncode == 0

    wait_for(lambda: alive(f"bench.py {marker}"), "the benchmark")
    measuring.kill()
    measuring.wait()
    wait_for(lambda: not alive(marker), "the end of all that it had started")


def test_a_missing_program_is_the_benchmarks_fault(checkout: Path) -> None:
    request = Request(["./no such program"], "score", checkout, Limits(5))
    found = measure(request, enclosure=Bare(), clock=SystemClock())
    assert found.outcome is Outcome.FAILED
    assert "No such file" in found.reason


def test_an_unwritable_log_is_noted_and_does_not_end_the_measurement(checkout: Path) -> None:
    found = run(checkout, "print('{\"score\": 1}')", log=Path("/proc/no/log"))
    assert found.value == 1.0
    assert "log could not be written" in found.notes[0]


def test_a_full_disk_under_the_log_is_noted(checkout: Path) -> None:
    # O_NOFOLLOW and O_TRUNC are fine with the device that is always full.
    found = run(checkout, "print('{\"score\": 1}')", log=Path("/dev/full"))
    assert found.value == 1.0
    assert "No space left" in found.notes[0]


def test_a_command_has_its_own_ending_where_whoever_started_the_job_ignores_the_end_of_children(checkout: Path) -> None:
    """The kernel then keeps no status: a cell that had ended waited for its limit, and counted as its arm's failure."""
    starter = textwrap.dedent("""
        import os, signal, sys
        from pathlib import Path
        from outerloop_hpc.clock import SystemClock
        from outerloop_hpc.supervision.child import Limits, run_child
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        ended = run_child(["sh", "-c", "exit 3"], env={"PATH": os.environ["PATH"]}, cwd=Path(sys.argv[1]),
                          limits=Limits(8), log=None, clock=SystemClock())
        print(ended.status, ended.ended_by)
    """)
    call = [sys.executable, "-c", starter, str(checkout)]
    said = subprocess.run(call, capture_output=True, text=True, check=True, timeout=60).stdout
    assert said == "3 itself\n"


def test_programs_that_fail_are_seen_to_fail_where_whoever_started_us_ignores_the_end_of_children() -> None:
    """Python says 0 for a child whose status the kernel did not keep: a refused sbatch seemed to have been accepted."""
    starter = textwrap.dedent("""
        import atexit, signal, subprocess, sys
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        from outerloop_hpc.cli.main import main
        atexit.register(lambda: print(subprocess.run(["false"], check=False).returncode))
        sys.argv = ["outerloop-hpc", "--version"]
        main()
    """)
    said = subprocess.run([sys.executable, "-c", starter], capture_output=True, text=True, check=True, timeout=60)
    assert said.stdout.splitlines()[-1] == "1"
