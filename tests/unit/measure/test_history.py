"""Points of the history: found by run or commit, compared, folded into the ledger, kept in files."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import pytest

from outerloop_hpc import effects, fsio
from outerloop_hpc.cli.cells import readable
from outerloop_hpc.cli.points import history_rows
from outerloop_hpc.cli.points import ledger_rows as shown_ledger
from outerloop_hpc.engine.layout import Layout
from outerloop_hpc.errors import Fault, UsageError
from outerloop_hpc.measure.history import (
    Point,
    Sample,
    compare_points,
    ledger_rows,
    path_of,
    pick_pair,
    previous,
)
from outerloop_hpc.measure.results import benchmarks, best_points, points, refresh_ledger
from tests.unit.engine.made import after

pytestmark = pytest.mark.unit

A, B = "aaaa1111", "bbbb2222"


def point(number: int, commit: str, *values: float, **more: Any) -> Point:
    found = values or (float(number),)
    given = {
        "run": f"run-{number}",
        "target": "iris",
        "benchmark": "accuracy",
        "metric": "acc",
        "direction": "max",
        "commit": commit,
        "tree": "t",
        "at": after(number),
        "samples": tuple(Sample(seed=seed, value=value) for seed, value in enumerate(found)),
        "median": sorted(found)[len(found) // 2],
        "minimum": min(found),
        "maximum": max(found),
    }
    return Point(**{**given, **more})


def pick(found: Sequence[Point], wanted: str) -> Point:
    return pick_pair(found, wanted, wanted)[1]


def before(
    found: Sequence[Point], commit: str, *, metric: str = "acc", direction: Literal["min", "max"] = "max"
) -> Point | None:
    return previous(found, commit, metric=metric, direction=direction, seeds=range(5))


HISTORY = [point(1, A), point(2, B), point(3, B), point(4, A)]


@pytest.mark.parametrize(
    ("wanted", "run"),
    [("run-2", "run-2"), (B, "run-3"), ("bbbb", "run-3"), (A, "run-4"), ("aaaa1", "run-4")],
)
def test_a_point_is_found_by_run_or_by_the_beginning_of_its_commit(wanted: str, run: str) -> None:
    assert pick(HISTORY, wanted).run == run


@pytest.mark.parametrize("wanted", ["cccc", "aaa", "", "run-9", "HEAD", "bbbb2222f"])
def test_what_was_not_measured_is_a_usage_error(wanted: str) -> None:
    with pytest.raises(UsageError, match="no run and no measured commit"):
        pick(HISTORY, wanted)


def test_a_beginning_of_several_commits_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="several measured commits"):
        pick([point(1, "abcd1"), point(2, "abcd2")], "abcd")


def test_the_earlier_point_is_the_newest_of_another_commit() -> None:
    found = before(HISTORY, A)
    assert found is not None
    assert found.run == "run-3"
    assert before(HISTORY[1:3], B) is None
    assert before([], A) is None


def test_other_seeds_tried_in_between_do_not_take_the_pairs_away() -> None:
    own, tried = point(1, A, *[1.0] * 5), point(2, A, samples=(Sample(seed=77, value=1.0),))
    found = before([own, tried], B)
    assert found is not None
    assert found.run == own.run
    new = point(3, B, *[2.0] * 5)
    assert [one.run for one in pick_pair([own, tried, new], A, B)] == [own.run, new.run]


def test_an_older_commit_measured_on_request_is_no_previous_head() -> None:
    first, second = point(1, A), point(2, B)
    again = point(3, A, head=False)
    assert before([first, second, again], "cccc3333") == second
    assert before([first, second], "aaaa1111") == second


def test_a_contract_that_changes_the_metric_starts_a_new_row_and_a_new_comparison() -> None:
    old, new = point(1, A, 5.0), point(2, B, 0.5, metric="loss", direction="min")
    assert before([old], B, metric="loss", direction="min") is None
    assert before([old, new], "cccc3333") == old
    row = ledger_rows([new, old])["accuracy"]
    assert (row.metric, row.baseline) == ("loss", 0.5)
    assert ledger_rows([old, new, point(3, A, 4.0)])["accuracy"].best == 5.0


def test_points_are_compared_in_pairs_with_the_newer_ones_floors() -> None:
    old, new = point(1, A, *[1.0] * 6), point(2, B, *[2.0] * 6)
    assert str(compare_points(old, new).verdict) == "better"
    assert str(compare_points(old, new.model_copy(update={"min_delta": 5.0})).verdict) == "no difference"
    assert str(compare_points(new, old).verdict) == "worse"
    assert compare_points(old, point(3, B, 2.0)).pairs == 1


@pytest.mark.parametrize("other", [{"metric": "loss"}, {"direction": "min"}])
def test_different_things_are_not_compared(other: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="cannot be compared"):
        compare_points(point(1, A), point(2, B, **other))


def test_medians_enter_the_ledger() -> None:
    rows = ledger_rows([point(2, B, 0.5, 0.9, 0.7), point(1, A, 0.6), point(3, A, 0.1, benchmark="other")])
    assert (rows["accuracy"].baseline, rows["accuracy"].best, rows["accuracy"].best_run) == (0.6, 0.7, "run-2")
    assert list(rows) == ["accuracy", "other"]


def test_a_lucky_seed_that_a_person_picked_is_no_best_number() -> None:
    rows = ledger_rows([point(1, A, 0.6, 0.5), point(2, A, 0.9, picked=True)])
    assert (rows["accuracy"].best, rows["accuracy"].best_run) == (0.6, "run-1")
    assert ledger_rows([point(1, A, 0.9, picked=True)]) == {}


def test_the_ledger_is_rendered_from_the_files_and_stays_when_one_is_broken(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    for one in (point(2, B), point(1, A), point(3, A, benchmark="loss", direction="min")):
        path = tmp_path / path_of("iris", one.benchmark, one.run)
        fsio.make_folder(path.parent)
        fsio.publish(path, one.encoded())
    assert refresh_ledger(layout.results, "iris")["accuracy"].best == 2.0
    assert benchmarks(layout.results, "iris") == ["accuracy", "loss"]
    assert [one.run for one in points(layout.results, "iris", "accuracy")] == ["run-1", "run-2"]
    folder = tmp_path / "results" / "iris"
    rendered = {name: (folder / name).read_bytes() for name in ("leader.json", "BENCHMARKS.md")}
    assert json.loads(rendered["leader.json"])
    (folder / "accuracy" / "run-9.json").write_bytes(b"{")
    with pytest.raises(Fault, match=r"run-9\.json"):
        refresh_ledger(layout.results, "iris")
    assert {name: (folder / name).read_bytes() for name in rendered} == rendered


def test_the_history_and_the_ledger_show_the_digits_that_the_contract_asks_for(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    for one in (point(1, A, 10.001, display_digits=8), point(2, B, 10.002, display_digits=8)):
        path = tmp_path / path_of("iris", one.benchmark, one.run)
        fsio.make_folder(path.parent)
        fsio.publish(path, one.encoded())
    shown = [readable("median", row["median"]) for row in history_rows(layout, "iris", "")]
    assert shown == ["10.001", "10.002"]
    rows = refresh_ledger(layout.results, "iris")
    (row,) = shown_ledger(rows, best_points(layout.results, "iris", rows))
    assert (row["commit"], row["seeds"], row["minimum"], row["maximum"]) == (B, 1, 10.002, 10.002)
    assert {"nodes", "runtime", "image_sha256"} < set(row)
    assert (readable("baseline", row["baseline"]), readable("best", row["best"])) == ("10.001", "10.002")


def test_nothing_measured_renders_nothing(tmp_path: Path) -> None:
    assert refresh_ledger(Layout(tmp_path).results, "iris") == {}
    assert not (tmp_path / "results").exists()


def test_a_point_published_while_the_ledger_is_written_is_not_left_out_of_it(tmp_path: Path) -> None:
    layout = Layout(tmp_path)

    def published(one: Point) -> None:
        path = tmp_path / path_of("iris", "accuracy", one.run)
        path.parent.mkdir(parents=True, exist_ok=True)
        fsio.publish(path, one.encoded())

    def around(what: str, _subject: str, action: Callable[[], object]) -> object:
        if what == "replace":
            # Another pass publishes and writes its ledger; ours, from the older history, comes last.
            effects.install(None)
            published(point(2, B, 9.0))
            refresh_ledger(layout.results, "iris")
        return action()

    published(point(1, A, 1.0))
    effects.install(around)
    try:
        refresh_ledger(layout.results, "iris")
    finally:
        effects.install(None)
    (row,) = json.loads((tmp_path / "results/iris/leader.json").read_bytes())["rows"]
    assert row["best"] == 9.0


def test_numbers_before_a_new_ruler_are_no_number_s_predecessor() -> None:
    story = [point(1, A), point(2, B, rebased=True, head=False), point(3, B)]
    assert before(story[:2], "cccc3333") is None
    assert before(story, "cccc3333") == story[2]


def test_a_new_ruler_starts_the_ledger_s_row_anew() -> None:
    row = ledger_rows([point(1, A, 9.0), point(2, B, 4.0, rebased=True), point(3, B, 5.0)])["accuracy"]
    assert (row.baseline, row.best, row.best_run) == (4.0, 5.0, "run-3")
