"""A role pauses after a refusal, counted from the refusal; wrong clocks and broken files pause nobody."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from outerloop_hpc.agents.pauses import RoleOutage, outage_path, paused_until
from outerloop_hpc.agents.refusals import Outage
from tests.unit.engine.made import T0

pytestmark = pytest.mark.unit

PAUSES: dict[Outage, timedelta] = {"refused": timedelta(minutes=45), "throttled": timedelta(minutes=5)}
MINUTE = timedelta(minutes=1)


def refuse(folder: Path, at: datetime, outage: Outage = "refused", run: str = "r1") -> Path:
    path = folder / Path(outage_path("steward", run)).name
    path.write_bytes(RoleOutage(role="steward", run=run, at=at, outage=outage).encoded())
    return path


@pytest.mark.parametrize(
    ("outage", "age", "left"),
    [
        ("refused", 0, 45),
        ("refused", 44, 1),
        ("refused", 45, None),
        ("throttled", 4, 1),
        ("throttled", 5, None),
        ("refused", -5, 50),
        ("refused", -6, None),
        ("throttled", -5, 10),
        ("refused", -100_000, None),
    ],
)
def test_how_long_a_refusal_pauses(tmp_path: Path, outage: Outage, age: int, left: int | None) -> None:
    refuse(tmp_path, T0 - age * MINUTE, outage)
    expected = None if left is None else T0 + left * MINUTE
    assert paused_until(tmp_path, PAUSES, T0) == expected


def test_of_several_the_longest_holds_whatever_they_are_called(tmp_path: Path) -> None:
    refuse(tmp_path, T0 - 44 * MINUTE, run="a")
    refuse(tmp_path, T0 - 10 * MINUTE, run="b")
    refuse(tmp_path, T0 - 1 * MINUTE, "throttled", run="c")
    assert paused_until(tmp_path, PAUSES, T0) == T0 + 35 * MINUTE


@pytest.mark.parametrize("data", [b"", b"\xff", b"{}", b'{"schema": "role-outage/9"}', b"[]"])
def test_what_cannot_be_read_pauses_nothing_and_hides_no_other(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "broken.json").write_bytes(data)
    assert paused_until(tmp_path, PAUSES, T0) is None
    refuse(tmp_path, T0, run="z")
    assert paused_until(tmp_path, PAUSES, T0) == T0 + 45 * MINUTE
    assert (tmp_path / "broken.json").exists()


def test_nobody_has_refused(tmp_path: Path) -> None:
    assert paused_until(tmp_path / "missing", PAUSES, T0) is None


def test_what_is_long_over_is_cleared_away_unless_the_pass_only_looks(tmp_path: Path) -> None:
    """A dry run removed old refusals."""
    old, new = refuse(tmp_path, T0 - 51 * MINUTE, run="old"), refuse(tmp_path, T0 - 46 * MINUTE, run="new")
    assert paused_until(tmp_path, PAUSES, T0, tidy=False) is None
    assert old.exists()
    assert paused_until(tmp_path, PAUSES, T0) is None
    assert (old.exists(), new.exists()) == (False, True)


def test_a_word_of_a_later_version_is_no_pause_of_unknown_length(tmp_path: Path) -> None:
    said = {"schema": "role-outage/1", "role": "steward", "run": "r", "at": T0.isoformat(), "outage": "on strike"}
    (tmp_path / "r.json").write_text(json.dumps(said))
    assert paused_until(tmp_path, PAUSES, T0) is None
