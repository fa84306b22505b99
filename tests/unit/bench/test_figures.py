from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.bench.figure import Figure, Peer, beside, figure, write
from tests.bench.samples import Samples, in_turn, ratio_of_pairs
from tests.bench.table import number, render


def test_pairs_are_measured_in_turn_after_a_round_that_is_dropped() -> None:
    order: list[str] = []

    def take(name: str) -> float:
        order.append(name)
        return float(len(order))

    taken = in_turn({"a": lambda: take("a"), "b": lambda: take("b")}, 2)

    assert "".join(order) == "ababab"
    assert taken == {"a": Samples((3.0, 5.0)), "b": Samples((4.0, 6.0))}


def test_a_machine_that_slows_down_does_not_change_the_ratio_of_pairs() -> None:
    theirs = [1.0, 1.0, 4.0, 4.0, 4.0]
    ours = [2.0 * value for value in theirs]
    assert ratio_of_pairs(ours, theirs) == pytest.approx(2.0)


@pytest.mark.parametrize(("ours", "theirs"), [([1.0], [1.0, 2.0]), ([], [])])
def test_without_pairs_there_is_no_ratio(ours: list[float], theirs: list[float]) -> None:
    with pytest.raises(ValueError, match="pairs are needed"):
        ratio_of_pairs(ours, theirs)


def test_no_sample_has_no_median() -> None:
    with pytest.raises(ValueError, match="at least one"):
        Samples(())


def test_one_outlier_moves_the_spread_and_not_the_value() -> None:
    found = figure("name", "s", Samples((1.0, 1.1, 9.0)))
    assert (found.value, found.low, found.high) == (1.1, 1.0, 9.0)


def test_bench_json_is_a_list_of_figures_with_the_peer_only_where_there_is_one(tmp_path: Path) -> None:
    alone = Figure("memory", 80.0, "MB", goal="< 150")
    paired = beside("help", "s", Samples((3.0, 3.0)), "import submitit", Samples((2.0, 2.0)))
    write(tmp_path / "build" / "bench.json", [alone, paired])

    assert json.loads((tmp_path / "build" / "bench.json").read_text()) == [
        {"name": "memory", "value": 80.0, "unit": "MB"},
        {"name": "help", "value": 3.0, "unit": "s", "peer": "import submitit", "peer_value": 2.0, "ratio": 1.5},
    ]


def test_the_table_shows_spread_peer_and_goal() -> None:
    shown = render([Figure("help", 0.1234, "s", Peer("submitit", 0.2, 0.617), "ratio ≤ 1.5", 0.1, 0.3)])
    assert (
        shown.splitlines()[-1]
        == "| help   | 0.123  | s    | 0.1 .. 0.3 | submitit | 0.2        | 0.62  | ratio ≤ 1.5 |"
    )


@pytest.mark.parametrize(
    ("value", "shown"), [(2.0, "2"), (0.12345, "0.123"), (12.345, "12.3"), (13466.4, "13466"), (0.0, "0")]
)
def test_numbers_have_three_digits(value: float, shown: str) -> None:
    assert number(value) == shown
