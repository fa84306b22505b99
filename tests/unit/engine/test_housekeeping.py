"""What each tick may clear away, how much of it, and what it never touches."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from outerloop_hpc import fsio
from outerloop_hpc.documents import load
from outerloop_hpc.engine.housekeeping import Chore, Housekeeping, Share, Tidied, due, marker_of, parse_marker
from outerloop_hpc.engine.layout import Layout
from outerloop_hpc.engine.leftovers import Leftovers, Sighting, folders, sighted
from outerloop_hpc.errors import UsageError

pytestmark = pytest.mark.unit

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
RUN = "steward-iris-20261101T120000Z-0000000{}"
SHARE = Share()
SHORT = SHARE.on_short_disk()


def ago(**age: float) -> datetime:
    return NOW - timedelta(**age)


class Clock:
    """A clock that tests set; each look at it takes ``step`` seconds."""

    def __init__(self, at: datetime, step: float = 0.0) -> None:
        self.at, self.step, self.passed = at, step, 0.0

    def now(self) -> datetime:
        return self.at

    def steady(self) -> float:
        self.passed += self.step
        return self.passed

    def sleep(self, seconds: float) -> None:
        raise AssertionError("housekeeping does not wait")


def tidy(layout: Layout, at: datetime, share: Share = SHARE, step: float = 0.0, host: str = "h") -> Tidied:
    return Housekeeping(layout, Clock(at, step), host, share).run()


# --- what may go -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("age", "share", "goes"),
    [
        ({"hours": 23}, SHARE, False),
        ({"hours": 24, "minutes": 4}, SHARE, False),
        ({"hours": 24, "minutes": 6}, SHARE, True),
        ({"seconds": 1}, SHORT, True),
        ({"minutes": -4}, SHORT, True),
    ],
)
def test_what_a_closed_run_kept_goes_after_the_grace_or_at_once_for_want_of_room(
    age: Mapping[str, float], share: Share, goes: bool
) -> None:
    marker = marker_of(RUN.format(1), ago(**age))
    assert [one.name for one in due([marker], {}, [], NOW, "h", share)] == [marker] * goes


@pytest.mark.parametrize("share", [SHARE, SHORT])
def test_nothing_of_a_live_run_is_due(share: Share) -> None:
    assert due([marker_of(RUN.format(1), ago(days=9))], {}, [RUN.format(1)], NOW, "h", share) == []


@pytest.mark.parametrize(
    ("age", "host", "share", "goes"),
    [
        ({"hours": 23, "minutes": 59}, "h", SHARE, False),
        ({"hours": 24}, "h", SHARE, True),
        ({"hours": 24, "minutes": 4}, "other", SHARE, False),
        ({"hours": 24, "minutes": 5}, "other", SHARE, True),
        ({"minutes": 59}, "h", SHORT, False),
        ({"minutes": 60}, "h", SHORT, True),
        ({"minutes": 64}, "other", SHORT, False),
        ({"hours": -1}, "h", SHORT, False),
    ],
)
def test_a_leftover_goes_when_it_was_seen_unchanged_for_long(
    age: Mapping[str, float], host: str, share: Share, goes: bool
) -> None:
    seen = {"live/.tmp-0123456789abcdef": Sighting(at=ago(**age), host=host, mark="m")}
    assert bool(due([], seen, [], NOW, "h", share)) is goes


def test_the_oldest_goes_first() -> None:
    markers = [marker_of(RUN.format(number), ago(days=number)) for number in (3, 9, 5)]
    seen = {"b": Sighting(at=ago(days=7), host="h", mark=""), "a": Sighting(at=ago(days=7), host="h", mark="")}
    found = due(markers, seen, [], NOW, "h", SHARE)
    assert [(NOW - one.since).days for one in found] == [9, 7, 7, 5, 3]
    assert [one.name for one in found[1:3]] == ["a", "b"]
    assert found[1] == Chore(ago(days=7), "leftover", "a")


@pytest.mark.parametrize("name", ["", "x", RUN.format(1), f"yesterday.{RUN.format(1)}", "20261129T120000Z.x"])
def test_a_marker_that_is_not_ours_makes_nothing_due(name: str) -> None:
    with pytest.raises(UsageError):
        parse_marker(name)
    assert due([name], {}, [], NOW, "h", SHORT) == []


def test_what_changes_is_in_use_and_counts_from_then_on() -> None:
    first = sighted({}, {"a": "1", "b": "1"}, ago(hours=30), "h")
    second = sighted(first, {"a": "1", "b": "2"}, NOW, "h")
    assert [one.name for one in due([], second, [], NOW, "h", SHARE)] == ["a"]


# --- doing it --------------------------------------------------------------------------------------------------------


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    made = Layout(tmp_path / "state")
    for folder in (made.live, made.tick, made.mirrors / "iris.git", made.tidy, made.results / "iris" / "score"):
        folder.mkdir(parents=True)
    return made


def closed_run(layout: Layout, number: int = 1, *, live: bool = False, scraps: int = 1) -> Path:
    """Make a run that was closed nine days and ``number`` seconds ago, with all that its jobs and passes left."""
    run = RUN.format(number)
    folder = layout.run(run)
    for place in (folder.journal, folder.inbox, folder.path / "accounting"):
        place.mkdir(parents=True)
    for scrap in range(scraps):
        own = folder.submission(f"s{scrap}")
        (own / "submitit").mkdir(parents=True)
        (own / "submitit" / "0.pkl").write_bytes(b"x" * 1000)
        for kept in ("e0000.record.json", "e0000.log", "e0000.begun.json", "manifest.json"):
            (own / kept).write_bytes(b"kept")
    for kept in ("spec.json", "report.md", "journal/00000001.json", "accounting/s0.json"):
        (folder.path / kept).write_bytes(b"kept")
    if live:
        (layout.live / run).touch()
    (layout.tidy / marker_of(run, ago(days=9) - timedelta(seconds=number))).touch()
    return folder.path


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir()}


def test_only_scraps_and_leftovers_of_a_closed_run_go(layout: Layout) -> None:
    run = closed_run(layout)
    before = files(run)
    for leftover in (".tmp-0123456789abcdef", "journal/.tmp-0123456789abcdef", "tries/s0/.tmp-0123456789abcdef"):
        (run / leftover).write_bytes(b"x" * 10)
    done = tidy(layout, NOW)
    assert before - files(run) == {"tries/s0/submitit/0.pkl"}
    assert files(run) <= before
    assert (done.removed, done.bytes, done.more, done.problems) == (4, 1030, False, [])
    assert fsio.names(layout.tidy) == []


@pytest.mark.parametrize("share", [SHARE, SHORT])
def test_nothing_of_a_live_run_is_touched(layout: Layout, share: Share) -> None:
    run = closed_run(layout, live=True)
    (run / "tries" / "s0" / ".tmp-0123456789abcdef").write_bytes(b"x")
    before = files(layout.root)
    assert tidy(layout, NOW, share).removed == 0
    assert before <= files(layout.root)


def test_a_leftover_goes_a_grace_after_it_was_first_seen_whatever_its_own_time_says(layout: Layout) -> None:
    paths = [layout.live / ".tmp-0123456789abcdef", layout.results / "iris" / "score" / ".tmp-0123456789abcdef"]
    for path, time in zip(paths, (0, 2**32), strict=True):
        path.write_bytes(b"x" * 10)
        os.utime(path, (time, time))
    assert tidy(layout, NOW).removed == 0
    assert tidy(layout, NOW + timedelta(hours=23)).removed == 0
    done = tidy(layout, NOW + timedelta(hours=24))
    assert (done.removed, done.bytes) == (2, 20)
    assert not any(path.exists() for path in paths)
    assert load(Leftovers, layout.tick / "leftovers.json").seen == {}


def test_a_clone_that_grows_is_in_use_however_short_the_disk_is(layout: Layout) -> None:
    clone = layout.mirrors / ".tmp-mirror-0123456789abcdef"
    (clone / "objects" / "pack").mkdir(parents=True)
    pack = clone / "objects" / "pack" / "tmp_pack_1"
    for hour in range(5):
        with pack.open("ab") as file:
            file.write(b"x" * 100)
        assert tidy(layout, NOW + timedelta(hours=hour), SHORT).removed == 0
    done = tidy(layout, NOW + timedelta(hours=5), SHORT)
    assert (done.removed, clone.exists()) == (1, False)


def test_a_leftover_that_changed_since_it_was_looked_at_stays(layout: Layout) -> None:
    path = layout.live / ".tmp-0123456789abcdef"
    path.write_bytes(b"x")
    seen = {"live/.tmp-0123456789abcdef": Sighting(at=ago(days=9), host="h", mark="as it was")}
    # This pass goes on behind the folder of it.
    (layout.tick / "leftovers.json").write_bytes(Leftovers(after="live", seen=seen).encoded())
    assert tidy(layout, NOW).removed == 0
    assert path.exists()


@pytest.mark.parametrize(
    "path",
    [
        "mirrors/iris.git/.tmp-0123456789abcdef",
        "mirrors/iris.git/refs/outerloop/cand/.tmp-0123456789abcdef",
        "runs/2026-11/x/.tmp-0123456789abcdef",
        "venv/lib/.tmp-0123456789abcdef",
        "live/.tmp-notes of ann",
        "live/.tmp-mirror-0123456789abcdef.bak",
        "live/tmp-0123456789abcdef",
    ],
)
def test_what_is_not_a_leftover_of_a_pass_stays(layout: Layout, path: str) -> None:
    kept = layout.root / path
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_bytes(b"x")
    for day in range(3):
        assert tidy(layout, NOW + timedelta(days=day), SHORT).removed == 0
    assert kept.exists()


def test_a_pass_stops_when_its_items_are_used_up_and_the_next_goes_on(layout: Layout) -> None:
    runs = [closed_run(layout, number) for number in range(1, 6)]
    share = Share(items=4)
    done = tidy(layout, NOW, share)
    assert (done.removed, done.more) == (2, True)
    # The oldest were closed first: those with the highest numbers here.
    assert [(run / "tries/s0/submitit").exists() for run in runs] == [True, True, True, False, False]
    assert tidy(layout, NOW, share).removed == 2
    last = tidy(layout, NOW, share)
    assert (last.removed, last.more) == (1, False)
    assert fsio.names(layout.tidy) == []


def test_a_short_disk_gets_ten_times_as_much(layout: Layout) -> None:
    runs = [closed_run(layout, number) for number in range(1, 6)]
    assert tidy(layout, NOW, Share(items=1).on_short_disk()).removed == 5
    assert not any((run / "tries/s0/submitit").exists() for run in runs)


def test_a_pass_stops_in_the_middle_of_a_large_folder_when_its_time_is_over(layout: Layout) -> None:
    run = closed_run(layout)
    for number in range(100):
        (run / "tries" / "s0" / "submitit" / f"{number}.pkl").write_bytes(b"x")
    share, passes = Share(seconds=30), 0
    while fsio.names(layout.tidy):
        passes += 1
        left = len(files(run / "tries" / "s0" / "submitit"))
        done = tidy(layout, NOW, share, step=1.0)
        assert len(files(run / "tries" / "s0" / "submitit")) < left
        assert done.more is (run / "tries" / "s0" / "submitit").exists()
    assert passes > 3


def test_one_run_that_cannot_be_cleared_holds_up_no_other(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    stuck, other = closed_run(layout, 2), closed_run(layout, 1)
    (stuck / "tries/s0/submitit/stuck").write_bytes(b"x")
    unlink = os.unlink

    def refuse(path: str, **where: int) -> None:
        if str(path) == "stuck":
            raise PermissionError(1, "Operation not permitted")
        unlink(path, **where)

    monkeypatch.setattr(os, "unlink", refuse)
    done = tidy(layout, NOW, Share(items=2))
    assert [problem.partition("submitit/")[2] for problem in done.problems] == [
        "stuck: cannot be removed: Operation not permitted; each tick tries again"
    ]
    assert not (other / "tries/s0/submitit").exists()
    assert [parse_marker(name)[1] for name in fsio.names(layout.tidy)] == [stuck.name]


def test_a_cache_that_cannot_be_read_only_costs_another_grace(layout: Layout) -> None:
    (layout.live / ".tmp-0123456789abcdef").write_bytes(b"x")
    (layout.tick / "leftovers.json").write_bytes(b"{")
    assert tidy(layout, NOW).removed == 0
    assert tidy(layout, NOW + timedelta(days=1)).removed == 1


def test_a_pass_that_finds_nothing_writes_nothing(layout: Layout) -> None:
    tidy(layout, NOW)
    assert files(layout.root) == set()


def test_a_folder_whose_name_is_no_text_stops_nothing(layout: Layout) -> None:
    (layout.root / "jobs" / "a").mkdir(parents=True)
    (layout.root / "jobs" / os.fsdecode(b"\xff")).mkdir()
    (layout.live / ".tmp-0123456789abcdef").write_bytes(b"x")
    assert tidy(layout, NOW, Share(items=1)).removed == 0
    assert tidy(layout, NOW + timedelta(days=1)).removed == 1


def test_looking_does_not_use_up_the_time_for_removing(layout: Layout) -> None:
    closed_run(layout)
    for number in range(100):
        (layout.claims / f"{number:02d}").mkdir(parents=True)
    assert tidy(layout, NOW, Share(seconds=20), step=1.0).removed == 1


def test_folders_are_gone_round_in_turn(layout: Layout) -> None:
    everything = ["/".join(folder) for folder, _ in folders(layout.root, "")]
    assert everything == ["", "live", "mirrors", "results", "results/iris", "results/iris/score", "tick", "tidy"]
    for number, last in enumerate(everything[1:], 1):
        assert ["/".join(folder) for folder, _ in folders(layout.root, last)] == everything[number + 1 :]


def test_a_pass_looks_into_so_many_folders_and_the_next_goes_on_behind_them(layout: Layout) -> None:
    for number in range(25):
        folder = layout.claims / f"{number:02d}"
        folder.mkdir(parents=True)
        (folder / ".tmp-0123456789abcdef").write_bytes(b"x")
    counts = []
    for _ in range(4):
        tidy(layout, NOW, Share(items=1))
        counts.append(len(load(Leftovers, layout.tick / "leftovers.json").seen))
    assert counts == [8, 18, 25, 25]
