"""From how a command ended to what may be said: measured, failed, infrastructure or interrupted."""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from outerloop_hpc.clock import Clock, SystemClock
from outerloop_hpc.errors import ConfigError, UsageError
from outerloop_hpc.measure.measurement import Measurement, Outcome
from outerloop_hpc.measure.run import THREAD_VARIABLES, Request, environment, measure
from outerloop_hpc.supervision.child import Ended, Limits

pytestmark = pytest.mark.unit

FINE = Ended(
    status=0,
    ended_by="itself",
    problem=None,
    errno=None,
    stdout=b'{"score": 2, "loss": 0.5}\n',
    stderr="",
    output_bytes=26,
    cut=False,
    seconds=1.5,
    user_s=1.0,
    system_s=0.25,
    max_rss_kib=4096,
)


@dataclass(frozen=True)
class Launched:
    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: Path = Path("/")
    network: str = "off"
    notes: tuple[str, ...] = ("a note",)


@dataclass
class Fake:
    """Stands for the container and for the process: what it was asked, and what it answers."""

    ended: Ended = FINE
    name: str = "apptainer"
    image_sha256: str | None = "ab" * 32
    asked: tuple[str, ...] = ()

    def command(self, argv: Sequence[str], env: Mapping[str, str], folder: Path) -> Launched:
        self.asked = tuple(argv)
        return Launched(("box", *argv), env)

    def start_failure(self, status: int | None, stderr: str) -> str | None:
        return "container start failed: no fuse" if "FATAL" in stderr else None

    def run(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path,
        limits: Limits,
        log: Path | None,
        clock: Clock,
        stop: Callable[[], bool],
    ) -> Ended:
        assert tuple(argv) == ("box", *self.asked)
        return self.ended


def measured(fake: Fake, tmp_path: Path, oom: tuple[int | None, int | None] = (0, 0)) -> Measurement:
    request = Request("python 'b c.py'", "score", tmp_path, Limits(60), seed=5, seed_env="SEED", cpus=4)
    counts = iter(oom)
    return measure(request, enclosure=fake, clock=SystemClock(), run=fake.run, oom_count=lambda: next(counts))


def test_everything_that_is_known_is_in_the_measurement(tmp_path: Path) -> None:
    found = measured(Fake(), tmp_path)
    assert found.outcome is Outcome.MEASURED
    assert (found.command, found.metric, found.seed, found.value) == (("python", "b c.py"), "score", 5, 2.0)
    assert found.metrics == {"loss": 0.5}
    assert (found.seconds, found.cpu_user_s, found.cpu_system_s, found.max_rss_kib) == (1.5, 1.0, 0.25, 4096)
    assert (found.output_bytes, found.output_cut, found.cpus) == (26, False, 4)
    assert (found.runtime, found.image_sha256, found.network) == ("apptainer", "ab" * 32, "off")
    assert found.notes == ("a note",)
    assert Measurement.model_validate_json(found.model_dump_json()) == found


@pytest.mark.parametrize(
    ("changes", "outcome", "reason"),
    [
        ({"ended_by": "stop", "status": 0}, Outcome.INTERRUPTED, "asked to stop"),
        ({"ended_by": "limit", "status": 0}, Outcome.FAILED, "did not end within 60 s"),
        ({"status": 75}, Outcome.INFRASTRUCTURE, "exit status 75"),
        ({"status": 255, "stderr": "FATAL"}, Outcome.INFRASTRUCTURE, "no fuse"),
        ({"status": 1, "stderr": "x\nOSError: [Errno 28] full\n"}, Outcome.INFRASTRUCTURE, "no space or memory"),
        ({"status": 1, "stderr": "fork: Cannot allocate memory"}, Outcome.INFRASTRUCTURE, "no space or memory"),
        ({"status": 1, "stderr": "ValueError: bad\n"}, Outcome.FAILED, "exit status 1: ValueError: bad"),
        ({"status": 137}, Outcome.FAILED, "137 (perhaps SIGKILL)"),
        ({"status": -11}, Outcome.FAILED, "ended by SIGSEGV"),
        ({"status": None, "problem": "warden was killed"}, Outcome.INFRASTRUCTURE, "warden was killed"),
        ({"status": None, "problem": "x", "errno": errno.ENOMEM}, Outcome.INFRASTRUCTURE, "could not be started"),
        ({"stdout": b""}, Outcome.FAILED, "printed nothing"),
        ({"stdout": b'{"score": NaN}'}, Outcome.FAILED, "not finite"),
        ({"stdout": b'{"score": 1}', "cut": True}, Outcome.FAILED, "only the end"),
    ],
)
def test_judgement(tmp_path: Path, changes: dict[str, object], outcome: Outcome, reason: str) -> None:
    found = measured(Fake(replace(FINE, **changes)), tmp_path)  # type: ignore[arg-type]
    assert found.outcome is outcome
    assert reason in found.reason
    assert found.value is None
    assert found.metrics == {}


def test_a_program_that_does_not_exist_is_the_benchmarks_fault_only_without_a_container(tmp_path: Path) -> None:
    ended = replace(FINE, status=None, problem="No such file or directory", errno=errno.ENOENT)
    found = measured(Fake(ended, name="none"), tmp_path)
    assert found.outcome is Outcome.FAILED
    assert found.reason == "the command could not be started without a container: No such file or directory"
    assert measured(Fake(ended, name="apptainer"), tmp_path).outcome is Outcome.INFRASTRUCTURE


@pytest.mark.parametrize(
    ("status", "oom", "outcome"),
    [
        (137, (1, 2), Outcome.OUT_OF_MEMORY),
        (-9, (0, 1), Outcome.OUT_OF_MEMORY),
        (137, (1, 1), Outcome.FAILED),
        (137, (None, None), Outcome.FAILED),
        (0, (0, 1), Outcome.MEASURED),
    ],
)
def test_want_of_memory_is_the_nodes_word(
    tmp_path: Path, status: int, oom: tuple[int | None, int | None], outcome: Outcome
) -> None:
    assert measured(Fake(replace(FINE, status=status)), tmp_path, oom).outcome is outcome


def test_left_over_processes_are_noted_only_when_the_command_ended_itself(tmp_path: Path) -> None:
    assert "3 processes were still there" in measured(Fake(replace(FINE, left_over=3)), tmp_path).notes[1]
    assert measured(Fake(replace(FINE, left_over=3, ended_by="limit")), tmp_path).notes == ("a note",)


def test_the_variables_of_a_measurement(tmp_path: Path) -> None:
    request = Request(
        ["x"], "m", tmp_path, Limits(1), seed=9, seed_env="SEED", cpus=3, env={"GOMAXPROCS": "1", "A": "b"}
    )
    env = environment(request)
    assert env["SEED"] == "9"
    assert env["A"] == "b"
    assert env["GOMAXPROCS"] == "1"
    assert {env[name] for name in THREAD_VARIABLES if name != "GOMAXPROCS"} == {"3"}
    assert "SEED" not in environment(replace(request, seed=None))


def test_what_cannot_be_meant_is_raised_before_anything_runs(tmp_path: Path) -> None:
    fake = Fake()
    with pytest.raises(UsageError, match="no checkout"):
        measure(Request("x", "m", tmp_path / "none", Limits(1)), enclosure=fake, clock=SystemClock(), run=fake.run)
    with pytest.raises(ConfigError, match="only a shell"):
        measure(Request("a | b", "m", tmp_path, Limits(1)), enclosure=fake, clock=SystemClock(), run=fake.run)
    assert fake.asked == ()
