"""Scratch of jobs that were killed: what a later job may clear away, and above all what it may not."""

from __future__ import annotations

import fcntl
import json
import os
import stat
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from outerloop_hpc.engine.scratch import HOLDER, made, sweep
from outerloop_hpc.slurm.processes import this_process

pytestmark = pytest.mark.unit

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
LATER = NOW + timedelta(days=2)
NAME = "ol-0123456789abcdef-abcd_123"


def left(root: Path, name: str = NAME, **holder: Any) -> Path:
    """Make what a dead job of this host left: a pid of a boot before this one."""
    folder = root / name
    (folder / "session" / "deep").mkdir(parents=True)
    (folder / "session" / "deep" / "file").write_bytes(b"x" * 100)
    said = {"host": this_process().host, "boot": "an earlier one", "pid": 7, "ticks": 7}
    said |= {"at": NOW.isoformat(), "locked": True} | holder
    (folder / HOLDER).write_text(json.dumps(said), encoding="utf-8")
    return folder


def test_scratch_of_a_dead_job_is_cleared_away(tmp_path: Path) -> None:
    folder = left(tmp_path)
    assert sweep(str(tmp_path), LATER) == [NAME]
    assert not folder.exists()


@pytest.mark.parametrize(
    ("holder", "now"),
    [
        ({}, NOW + timedelta(hours=23)),
        ({}, NOW - timedelta(days=9)),
        ({"host": "another-node"}, LATER),
        ({"locked": False}, LATER),
        ({"boot": this_process().boot, "pid": os.getpid(), "ticks": this_process().ticks}, LATER),
    ],
    ids=["young", "of the future", "of another host", "where nothing could be locked", "whose process lives"],
)
def test_scratch_whose_holder_may_live_stays(tmp_path: Path, holder: dict[str, Any], now: datetime) -> None:
    folder = left(tmp_path, **holder)
    assert sweep(str(tmp_path), now) == []
    assert (folder / "session" / "deep" / "file").exists()


def test_scratch_whose_lock_is_held_stays_whatever_its_holder_says(tmp_path: Path) -> None:
    folder = left(tmp_path)
    with (folder / HOLDER).open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert sweep(str(tmp_path), LATER) == []
    assert sweep(str(tmp_path), LATER) == [NAME]


def test_scratch_of_a_job_that_runs_stays_however_old_it_is(tmp_path: Path) -> None:
    with made(str(tmp_path), "0123456789abcdef", NOW) as own:
        said = json.loads((own / HOLDER).read_bytes())
        (own / HOLDER).write_text(json.dumps(said | {"pid": 7, "ticks": 7}), encoding="utf-8")
        assert sweep(str(tmp_path), LATER) == []
        assert own.is_dir()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "name",
    [
        "ol-0123456789abcdef",
        "ol-0123456789abcdef-abcd_12",
        "ol-0123456789abcdef-abcd_1234",
        "ol-0123456789ABCDEF-abcd_123",
        "xol-0123456789abcdef-abcd_123",
        "ol-0123456789abcdef-abcd_123.bak",
        "ol-0123456789abcdef-abcd_123\n",
        "home",
    ],
)
def test_a_folder_of_any_other_name_stays(tmp_path: Path, name: str) -> None:
    folder = left(tmp_path, name)
    assert sweep(str(tmp_path), LATER) == []
    assert (folder / HOLDER).exists()


def _without(folder: Path) -> None:
    (folder / HOLDER).unlink()


def _rubbish(folder: Path) -> None:
    (folder / HOLDER).write_bytes(b"\xff{")


def _no_table(folder: Path) -> None:
    (folder / HOLDER).write_bytes(b"[]")


def _endless(folder: Path) -> None:
    (folder / HOLDER).write_bytes((folder / HOLDER).read_bytes() + b" " * 5000)


def _link(folder: Path) -> None:
    (folder / HOLDER).rename(folder.parent / "elsewhere")
    (folder / HOLDER).symlink_to(folder.parent / "elsewhere")


def _pipe(folder: Path) -> None:
    (folder / HOLDER).unlink()
    os.mkfifo(folder / HOLDER)


@pytest.mark.parametrize("harm", [_without, _rubbish, _no_table, _endless, _link, _pipe])
def test_a_folder_that_does_not_say_whose_it_is_stays(tmp_path: Path, harm: Callable[[Path], None]) -> None:
    folder = left(tmp_path)
    harm(folder)
    assert sweep(str(tmp_path), LATER) == []
    assert (folder / "session" / "deep" / "file").exists()


def test_a_link_with_the_name_of_scratch_is_not_followed(tmp_path: Path) -> None:
    real = left(tmp_path, "mine")
    (tmp_path / NAME).symlink_to(real)
    assert sweep(str(tmp_path), LATER) == []
    assert (real / HOLDER).exists()


def of_another(found: os.stat_result) -> os.stat_result:
    values = list(found)
    values[stat.ST_UID] += 1
    return os.stat_result(values)


@pytest.mark.parametrize(("owner", "look"), [(Path, "lstat"), (os, "fstat")], ids=["the folder", "its holder's file"])
def test_scratch_of_another_user_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: object, look: str
) -> None:
    folder = left(tmp_path)
    real = getattr(owner, look)
    with monkeypatch.context() as patched:
        patched.setattr(owner, look, lambda what: of_another(real(what)))
        assert sweep(str(tmp_path), LATER) == []
    assert (folder / "session" / "deep" / "file").exists()


def test_nothing_beside_scratch_is_reached_through_links_in_it(tmp_path: Path) -> None:
    folder, outside = left(tmp_path), tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_bytes(b"x")
    (folder / "to folder").symlink_to(outside)
    (folder / "session" / "to file").symlink_to(outside / "kept")
    assert sweep(str(tmp_path), LATER) == [NAME]
    assert (outside / "kept").exists()


def test_one_job_clears_away_only_so_much(tmp_path: Path) -> None:
    for number in range(10):
        left(tmp_path, f"ol-0123456789abcdef-abcd_12{number}")
    assert len(sweep(str(tmp_path), LATER)) == 4
    assert len(list(tmp_path.iterdir())) == 6


def test_a_sweep_that_was_cut_short_goes_on_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = left(tmp_path)
    with monkeypatch.context() as patched:
        times = iter([0.0, 0.0, 11.0])
        patched.setattr(time, "monotonic", lambda: next(times, 11.0))
        assert sweep(str(tmp_path), LATER) == []
    assert (folder / HOLDER).exists()
    assert sweep(str(tmp_path), LATER) == [NAME]


def test_a_root_that_is_not_there_stops_no_job(tmp_path: Path) -> None:
    assert sweep(str(tmp_path / "nowhere"), LATER) == []
