"""Inside the allocation: whose try it is, how long it may take, which body runs, and what is left behind."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from outerloop_hpc import fsio
from outerloop_hpc.clock import SystemClock
from outerloop_hpc.documents import load
from outerloop_hpc.engine import job, records
from outerloop_hpc.engine.body import Context, Result, Stop, resolve
from outerloop_hpc.engine.job import Execution
from outerloop_hpc.engine.layout import Layout, element_file
from outerloop_hpc.engine.scratch import HOLDER, scratch_root
from outerloop_hpc.engine.spec import Image, RunSpec
from outerloop_hpc.errors import ConfigError, NodeUnfit, OuterloopError, TryLater
from outerloop_hpc.target.git import NoGit
from tests.unit.engine.made import RUN, SPEC, T0, claim, record, step

pytestmark = pytest.mark.unit

NAME = "ol.iris.measure.0011"
Body = Callable[[Context], Result]


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        (None, 600),
        ("", 600),
        ("soon", 600),
        ("1300", 300),
        ("1660", 660),
        ("1661", 600),
        ("1000", 600),
        ("999", 600),
        ("nan", 600),
        ("inf", 600),
    ],
)
def test_the_walltime_is_slurms_word_where_it_is_sane(end: str | None, expected: float) -> None:
    environ = {} if end is None else {"SLURM_JOB_END_TIME": end}
    assert job._seconds_left(environ, 600.0, 1000.0) == expected


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"SLURM_JOB_ID": "12"}, "12"),
        ({"SLURM_JOB_ID": "15", "SLURM_ARRAY_JOB_ID": "12", "SLURM_ARRAY_TASK_ID": "3"}, "12_3"),
        ({"SLURM_JOB_ID": "12", "SLURM_ARRAY_JOB_ID": "12", "SLURM_ARRAY_TASK_ID": "0"}, "12_0"),
        ({"OUTERLOOP_LOCAL_JOB": "99_1"}, "99_1"),
        ({}, "pid-{}"),
    ],
)
def test_the_job_is_named_as_the_scheduler_names_it(environ: Mapping[str, str], expected: str) -> None:
    assert job._job_id(environ) == expected.format(os.getpid())


@pytest.mark.parametrize(
    ("wanted", "environ", "expected"),
    [
        ("", {}, None),
        ("", {"TMPDIR": "/t"}, "/t"),
        ("", {"TMPDIR": "/t", "SLURM_TMPDIR": "/s"}, "/s"),
        ("/local", {"TMPDIR": "/t"}, "/local"),
        ("$SCRATCH", {"SCRATCH": "/fast", "TMPDIR": "/t"}, "/fast/"),
        ("$SCRATCH/mine", {"SCRATCH": "/fast"}, "/fast/mine"),
        ("$SCRATCH/mine", {"TMPDIR": "/t"}, "/t"),
        ("$SCRATCH", {"SCRATCH": "", "TMPDIR": "/t"}, "/t"),
    ],
)
def test_scratch_is_where_the_node_has_it(wanted: str, environ: Mapping[str, str], expected: str | None) -> None:
    assert scratch_root(wanted, environ) == (expected or tempfile.gettempdir())


@pytest.mark.parametrize(
    "reference",
    [
        "os:system",
        "outerloop_hpc:x",
        "outerloop_hpcx.y:z",
        "subprocess:run",
        "outerloop_hpc.engine.job:a.b",
        "",
        ":",
        "x",
    ],
)
def test_a_body_that_is_not_of_this_package_is_refused(reference: str) -> None:
    with pytest.raises(OuterloopError, match="not a body of this package"):
        resolve(reference)


def test_a_body_of_this_package_is_found() -> None:
    assert resolve("outerloop_hpc.benchmark.job:measure").__name__ == "measure"


def test_the_first_reason_to_stop_stays() -> None:
    stop = Stop()
    assert not stop()
    stop.ask("first")
    stop.ask("second")
    assert stop()
    assert stop.reason == "first"


# --- one execution --------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    run = Layout(tmp_path).run(RUN)
    made = run.submission(NAME)
    fsio.make_folder(made)
    fsio.publish(run.spec, SPEC.encoded())
    manifest = records.Manifest(
        run=RUN,
        kind="benchmark",
        target="iris",
        submission=NAME,
        spec_digest=SPEC.digest(),
        image=Image(),
        state_root=str(tmp_path),
        elements=(records.ManifestElement(step=step(), try_number=1),),
    )
    fsio.publish(made / "manifest.json", manifest.encoded())
    return made


def carry_out(folder: Path, body: Body, monkeypatch: pytest.MonkeyPatch, **environ: str) -> None:
    monkeypatch.setattr(job, "resolve", lambda _: body)
    given = {"TMPDIR": str(folder.parents[4]), "SLURM_JOB_ID": "7", **environ}
    Execution(folder / "e0000", environ=given, clock=SystemClock()).run()


def the_record(folder: Path) -> records.Record:
    found: records.Record = load(records.Record, folder / element_file(0, records.RECORD))
    return found


def must_not_run(_: Context) -> Result:
    raise AssertionError("the body ran")


def test_a_body_that_ends_well_leaves_one_record_and_no_scratch(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Path] = []

    def body(context: Context) -> Result:
        seen.append(context.scratch)
        (context.scratch / "big").write_bytes(b"x")
        assert 0 < context.deadline_s <= 600
        return Result("completed", "", {"value": 1.5})

    carry_out(folder, body, monkeypatch)
    found = the_record(folder)
    assert (found.outcome, found.payload, found.step, found.try_number) == ("completed", {"value": 1.5}, "measure-1", 1)
    assert (found.holder.job_id, found.holder.host) == ("7", socket.gethostname())
    assert not seen[0].exists()
    assert fsio.names(folder) == ["e0000.claim.json", "e0000.record.json", "manifest.json"]


@pytest.mark.parametrize(
    ("error", "outcome", "words", "unfit"),
    [
        (ConfigError("no such key"), "refused", "no such key", False),
        (TryLater("no answer"), "infrastructure", "no answer", False),
        (NodeUnfit("no /dev/fuse"), "infrastructure", "no /dev/fuse", True),
        (NoGit("no git"), "infrastructure", "no git", True),
        (ValueError("oops"), "infrastructure", "ValueError: oops", False),
        (MemoryError(), "infrastructure", "MemoryError", False),
    ],
)
def test_whatever_a_body_raises_ends_in_a_record(
    folder: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, outcome: str, words: str, unfit: bool
) -> None:
    def body(_: Context) -> Result:
        raise error

    carry_out(folder, body, monkeypatch)
    assert the_record(folder).outcome == outcome
    assert words in the_record(folder).reason
    assert the_record(folder).node_unfit is unfit


def test_another_specification_than_the_submitted_one_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fsio.replace(folder.parents[1] / "spec.json", SPEC.model_copy(update={"commit": "f00"}).encoded())
    carry_out(folder, must_not_run, monkeypatch)
    assert the_record(folder).outcome == "refused"


def test_a_job_of_before_an_upgrade_is_not_refused_for_a_default_it_did_not_know(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Later(RunSpec):
        priority: int = 0

    monkeypatch.setattr(job, "RunSpec", Later)
    carry_out(folder, lambda _: Result("completed"), monkeypatch)
    assert the_record(folder).outcome == "completed"


@pytest.mark.parametrize("harm", ["gone", "unreadable"])
def test_a_specification_that_one_node_cannot_read_is_tried_elsewhere_and_not_final(
    folder: Path, monkeypatch: pytest.MonkeyPatch, harm: str
) -> None:
    spec = folder.parents[1] / "spec.json"
    spec.unlink()
    if harm == "unreadable":
        spec.write_bytes(b"{")
    carry_out(folder, must_not_run, monkeypatch)
    assert the_record(folder).outcome == "infrastructure"
    assert "specification cannot be read on this node" in the_record(folder).reason
    assert the_record(folder).node_unfit


def test_what_a_body_was_lost_with_is_in_its_record(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    carry_out(folder, lambda _: Result("infrastructure", "later", part="candidate"), monkeypatch)
    assert the_record(folder).part == "candidate"


def test_scratch_with_read_only_folders_is_removed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Path] = []

    def body(context: Context) -> Result:
        seen.append(context.scratch)
        inner = context.scratch / "mod" / "cache"
        inner.mkdir(parents=True)
        (inner / "file").write_bytes(b"x")
        inner.chmod(0o555)
        inner.parent.chmod(0o555)
        return Result("completed")

    carry_out(folder, body, monkeypatch)
    assert not seen[0].exists()


@pytest.mark.parametrize("how", ["completed", "refused", "raises", "no scratch", "another spec"])
def test_no_record_is_without_the_digest_of_the_image_however_early_the_try_ended(
    folder: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    def body(_: Context) -> Result:
        if how == "raises":
            raise ConfigError("no runtime")
        return Result("refused" if how == "refused" else "completed")

    path = folder / "manifest.json"
    manifest: records.Manifest = load(records.Manifest, path)
    image = Image(path="/images/one.sif", sha256="ab" * 32)
    fsio.replace(path, manifest.model_copy(update={"image": image}).encoded())
    if how == "another spec":
        fsio.replace(folder.parents[1] / "spec.json", SPEC.model_copy(update={"commit": "f00"}).encoded())
    environ = {"TMPDIR": str(folder / "nowhere")} if how == "no scratch" else {}
    carry_out(folder, body, monkeypatch, **environ)
    assert the_record(folder).image_sha256 == "ab" * 32


def test_a_record_of_an_earlier_version_blames_no_node(folder: Path) -> None:
    known = json.loads(record("infrastructure").encoded())
    path = folder / element_file(0, records.RECORD)
    path.write_text(json.dumps({name: known[name] for name in known if name not in {"node_unfit", "image_sha256"}}))
    assert (the_record(folder).node_unfit, the_record(folder).image_sha256) == (False, "")


def test_a_try_with_a_record_is_left_alone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fsio.publish(folder / element_file(0, records.RECORD), record().encoded())
    carry_out(folder, must_not_run, monkeypatch)
    assert the_record(folder) == record()


@pytest.mark.parametrize("abandoned", [True, False])
def test_a_try_that_somebody_else_holds_is_left_alone(
    folder: Path, monkeypatch: pytest.MonkeyPatch, abandoned: bool
) -> None:
    fsio.publish(folder / element_file(0, records.CLAIM), claim(abandoned=abandoned).encoded())
    carry_out(folder, must_not_run, monkeypatch, SLURM_JOB_ID="8")
    assert fsio.names(folder) == ["e0000.claim.json", "manifest.json"]


def test_a_restart_of_the_same_job_goes_on_with_its_try(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fsio.publish(folder / element_file(0, records.CLAIM), claim().encoded())
    carry_out(folder, lambda _: Result("completed"), monkeypatch, SLURM_RESTART_COUNT="1")
    assert the_record(folder).holder.restart == 1


def test_the_first_record_stays_and_the_late_one_is_dropped(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def body(_: Context) -> Result:
        fsio.publish(folder / element_file(0, records.RECORD), record("failed").encoded())
        return Result("completed")

    carry_out(folder, body, monkeypatch)
    assert the_record(folder) == record("failed")


class Sleepless(SystemClock):
    """Sleeps at once and remembers for how long."""

    def __init__(self) -> None:
        self.slept = 0.0

    def sleep(self, seconds: float) -> None:
        self.slept += seconds


@pytest.mark.parametrize(("room_after_s", "minutes_left", "kept"), [(590, 60, True), (700, 60, False), (90, 1, False)])
def test_a_job_stays_for_a_full_disk_ten_minutes_and_not_beyond_its_walltime(
    folder: Path, monkeypatch: pytest.MonkeyPatch, room_after_s: int, minutes_left: int, kept: bool
) -> None:
    clock, publish = Sleepless(), fsio.publish

    def full(path: Path, data: bytes) -> bool:
        if path.name.endswith(records.RECORD) and clock.slept < room_after_s:
            raise TryLater(f"{path}: cannot be written: No space left on device")
        return publish(path, data)

    monkeypatch.setattr(fsio, "publish", full)
    monkeypatch.setattr(job, "_seconds_left", lambda *_: 60.0 * minutes_left)
    monkeypatch.setattr(job, "resolve", lambda _: lambda _: Result("completed"))
    execution = Execution(folder / "e0000", environ={"TMPDIR": str(folder.parents[4])}, clock=clock)
    if kept:
        execution.run()
        assert the_record(folder).outcome == "completed"
    else:
        with pytest.raises(TryLater, match="No space left"):
            execution.run()
        assert clock.slept == pytest.approx(min(600, 60 * minutes_left - 10), abs=1)


def test_a_signal_leaves_what_is_known_and_no_record(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def body(context: Context) -> Result:
        os.kill(os.getpid(), signal.SIGTERM)
        assert context.stop()
        return Result("failed", "cut off", {"seen": 3})

    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit) as left:
        carry_out(folder, body, monkeypatch)
    assert left.value.code == 1
    note: records.Interrupted = load(records.Interrupted, folder / element_file(0, records.INTERRUPTED))
    assert (note.signal, note.payload) == ("SIGTERM", {"seen": 3})
    assert not (folder / element_file(0, records.RECORD)).exists()
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_program_that_fails_is_seen_to_fail_where_whoever_started_the_job_ignores_the_end_of_children(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel keeps no status then, and Python says 0: a checkout that git could not make counted as made."""

    def body(_: Context) -> Result:
        return Result("completed", payload={"status": subprocess.run(["false"], check=False).returncode})

    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        carry_out(folder, body, monkeypatch)
        assert signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGCHLD, before)
    assert the_record(folder).payload == {"status": 1}


def test_the_warning_ahead_of_the_walltime_ends_in_a_record(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def body(context: Context) -> Result:
        os.kill(os.getpid(), signal.SIGUSR2)
        assert context.stop()
        return Result("failed", "cut off")

    carry_out(folder, body, monkeypatch, SLURM_JOB_END_TIME=str(int(time.time()) + 120))
    assert the_record(folder).outcome == "timed_out"
    assert "walltime" in the_record(folder).reason


def test_a_warning_that_comes_a_minute_early_does_not_cut_the_measurement_short(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slurm's own resolution; a job of one minute got its warning, and its end, in its first seconds."""

    def body(context: Context) -> Result:
        os.kill(os.getpid(), signal.SIGUSR2)
        return Result("failed", "told to stop" if context.stop() else "measured on")

    carry_out(folder, body, monkeypatch, SLURM_JOB_END_TIME=str(int(time.time()) + 180))
    assert (the_record(folder).outcome, the_record(folder).reason) == ("failed", "measured on")


def test_a_warning_long_before_the_walltime_is_no_time_out(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Preemption sends USR2 too, where a site asks for that: Slurm's word says what it meant."""

    def body(context: Context) -> Result:
        os.kill(os.getpid(), signal.SIGUSR2)
        assert context.stop()
        return Result("failed", "cut off")

    with pytest.raises(SystemExit):
        carry_out(folder, body, monkeypatch, SLURM_JOB_END_TIME=str(int(time.time()) + 500))
    note: records.Interrupted = load(records.Interrupted, folder / element_file(0, records.INTERRUPTED))
    assert note.signal == "SIGUSR2"


@pytest.mark.parametrize("late", [signal.SIGTERM, signal.SIGUSR2])
def test_a_signal_after_the_measurement_does_not_throw_it_away(
    folder: Path, monkeypatch: pytest.MonkeyPatch, late: signal.Signals
) -> None:
    def body(_: Context) -> Result:
        os.kill(os.getpid(), late)
        return Result("completed", "", {"value": 2.0})

    carry_out(folder, body, monkeypatch)
    assert (the_record(folder).outcome, the_record(folder).payload) == ("completed", {"value": 2.0})


def test_without_scratch_space_the_try_is_lost_and_says_so(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    carry_out(folder, must_not_run, monkeypatch, TMPDIR=str(folder / "nowhere"))
    assert the_record(folder).outcome == "infrastructure"
    assert "no scratch space" in the_record(folder).reason
    assert the_record(folder).node_unfit
    assert the_record(folder).started_at >= T0.replace(year=2000)


@pytest.mark.parametrize("run_id", ["", "x", f"{RUN}\n", f"../{RUN}", RUN.replace("iris", "a/b"), RUN.upper()])
def test_a_run_id_is_one_folder_name_and_nothing_else(run_id: str, tmp_path: Path) -> None:
    with pytest.raises(OuterloopError, match="is not a run id"):
        Layout(tmp_path).run(run_id)


def test_a_job_clears_away_scratch_of_a_dead_one_before_it_makes_its_own(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = folder.parents[4]
    left = root / "ol-0123456789abcdef-abcd_123"
    left.mkdir()
    dead = {"host": socket.gethostname(), "boot": "an earlier one", "pid": 7, "ticks": 7, "locked": True}
    (left / HOLDER).write_text(json.dumps({**dead, "at": T0.replace(year=2020).isoformat()}), encoding="utf-8")

    def body(_: Context) -> Result:
        return Result("completed" if not left.exists() else "failed")

    carry_out(folder, body, monkeypatch)
    assert the_record(folder).outcome == "completed"
