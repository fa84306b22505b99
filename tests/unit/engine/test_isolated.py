"""What breaks about one run, order or lane stays with it."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from outerloop_hpc import fsio
from outerloop_hpc.engine import inbox, runs
from outerloop_hpc.engine.housekeeping import Housekeeping, Tidied
from outerloop_hpc.engine.lane import Order
from outerloop_hpc.engine.spec import RunSpec
from outerloop_hpc.engine.tick import Pass
from outerloop_hpc.errors import Exit, FilesystemUnfit, TryLater
from outerloop_hpc.slurm.port import Bound, JobRef, SubmissionAmbiguous, Work
from tests.bench.queue import MemoryCompute
from tests.bench.statefolder import StateFolder, engine, spec_of
from tests.unit.hidden import hide

pytestmark = pytest.mark.unit


class Lane:
    """Two orders that cannot be made, and then the lane itself breaks."""

    name = "benchmark"

    def targets(self) -> list[str]:
        return ["iris"]

    def orders(self, target: str) -> Iterator[Order]:
        for key in ("one", "two"):
            yield Order(target, key, "why", self._make)
        raise ValueError("nobody thought of this")

    def _make(self) -> RunSpec:
        raise PermissionError(13, "Permission denied", "jobs/measure.toml")


class Mute(MemoryCompute):
    """Answers neither a submission nor a cancellation."""

    def submit(self, work: Work) -> Bound:
        raise SubmissionAmbiguous(f"{work.name}: sbatch: did not answer in time")

    def cancel(self, jobs: Sequence[JobRef]) -> None:
        raise TryLater("scancel: did not answer in time")


def test_a_submission_or_cancellation_without_an_answer_makes_the_pass_a_try_later(tmp_path: Path) -> None:
    folder = StateFolder(tmp_path / "state")
    folder.add_live(1)
    (stopped,) = runs.live(folder.layout)
    now = datetime.now(UTC)
    inbox.put(folder.layout.run(stopped), "end", who="alice", reason="enough", at=now)
    cancelling = Pass(engine(folder.root, Mute()), launch=False).run()
    assert cancelling.problems == ["slurm: scancel: did not answer in time"]
    runs.ensure(folder.layout, spec_of(7, now))
    submitting = Pass(engine(folder.root, Mute()), launch=False, only=[spec_of(7, now).run]).run()
    assert ["unclear" in problem for problem in submitting.problems] == [True]
    assert [result.unavailable for result in (cancelling, submitting)] == [True, True]


def test_a_run_that_found_no_room_leaves_no_folder_without_a_specification(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, spec = StateFolder(tmp_path / "state"), spec_of(7, datetime.now(UTC))

    def full(path: Path, _: bytes) -> bool:
        raise TryLater(f"{path}: cannot be written: No space left on device")

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(fsio, "publish", full)
        with pytest.raises(TryLater):
            runs.ensure(folder.layout, spec)
    assert list(runs.every(folder.layout)) == []
    assert runs.ensure(folder.layout, spec).spec.is_file()


def test_a_run_whose_journal_cannot_be_listed_stops_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = StateFolder(tmp_path / "state")
    folder.add_live(2)
    closed, other = runs.live(folder.layout)
    hidden = folder.layout.run(closed).journal
    hide(hidden, monkeypatch)
    result = Pass(engine(folder.root, MemoryCompute()), launch=False).run()

    assert result.faults == [
        (closed, f"{hidden}: cannot be listed: Permission denied; the run waits until it can be"),
    ]
    assert {run for run, _ in result.lines} == {other}


def test_an_order_or_a_lane_that_breaks_does_not_end_the_pass(tmp_path: Path) -> None:
    folder = StateFolder(tmp_path / "state")
    folder.add_live(1)

    result = Pass(engine(folder.root, MemoryCompute()), launch=True, lanes=[Lane()]).run()

    assert [who for who, _ in result.faults] == ["benchmark iris"] * 3
    assert "jobs/measure.toml" in result.faults[0][1]
    assert "nobody thought of this" in result.faults[2][1]
    assert (folder.layout.tick / "completed.json").exists()


def test_housekeeping_that_breaks_is_told_and_stops_no_tick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(_: Housekeeping) -> Tidied:
        raise ValueError("nobody thought of this")

    folder = StateFolder(tmp_path / "state")
    folder.add_live(1)
    monkeypatch.setattr(Housekeeping, "run", breaks)
    result = Pass(engine(folder.root, MemoryCompute()), launch=True).run()
    assert result.problems == ["housekeeping: ValueError: nobody thought of this; the next tick tries again"]
    assert (result.faults, result.live) == ([], 1)
    assert (folder.layout.tick / "completed.json").exists()


def test_a_pass_over_named_runs_clears_nothing_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def must_not_run(_: Housekeeping) -> Tidied:
        raise AssertionError("it ran")

    folder = StateFolder(tmp_path / "state")
    folder.add_live(1)
    monkeypatch.setattr(Housekeeping, "run", must_not_run)
    for how in (
        {"only": runs.live(folder.layout), "launch": True},
        {"launch": False},
        {"launch": True, "dry_run": True},
    ):
        assert Pass(engine(folder.root, MemoryCompute()), **how).run().problems == []


def test_no_pass_is_made_where_nothing_is_exclusive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    folder = StateFolder(tmp_path / "state")
    folder.add_live(1)
    (folder.layout.tick / "filesystem.json").unlink()
    before = sorted(path for path in folder.root.rglob("*"))
    monkeypatch.setattr(os, "link", refuse)
    monkeypatch.setattr(os, "rename", refuse)
    with pytest.raises(FilesystemUnfit, match=r"link.*Operation not supported") as refused:
        Pass(engine(folder.root, MemoryCompute()), launch=True).run()
    assert refused.value.exit_status == Exit.BAD_CONFIG
    assert sorted(path for path in folder.root.rglob("*")) == before
