"""The ledger follows from its history alone, and its rendering cannot be driven by a name."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outerloop_hpc.errors import Fault
from outerloop_hpc.measure.ledger import Entry, Event, Row, decode, encode, escaped, fold, render

pytestmark = pytest.mark.unit

FIRST = Entry("iris", "accuracy", "max", 0.90, "run-1", "2026-11-01T00:00:00Z", seed=3)
ENTRY = st.builds(
    Entry,
    benchmark=st.sampled_from(["a", "b"]),
    metric=st.just("m"),
    direction=st.just("min"),
    value=st.floats(-1e9, 1e9),
    run=st.sampled_from(["r1", "r2", "r3"]),
    at=st.sampled_from(["2026-11-01", "2026-11-02", "2026-11-03"]),
    seed=st.none() | st.integers(0, 5),
    event=st.sampled_from(Event),
)


def later(day: int, value: float, event: Event = Event.MEASURED) -> Entry:
    return replace(FIRST, value=value, run=f"run-{day}", at=f"2026-11-{day:02}T00:00:00Z", event=event)


def test_the_baseline_is_pinned_and_the_best_only_gets_better() -> None:
    row = fold([FIRST, later(2, 0.95), later(3, 0.93), later(4, 0.95)])["iris"]
    assert row == Row("iris", "accuracy", "max", 0.90, 0.95, "run-2", "2026-11-02T00:00:00Z", 3)


def test_a_rebase_starts_the_row_anew() -> None:
    row = fold([FIRST, later(2, 0.99), later(3, 0.5, Event.REBASED), later(4, 0.6)])["iris"]
    assert (row.baseline, row.best, row.best_run) == (0.5, 0.6, "run-4")


def test_smaller_can_be_better() -> None:
    rows = fold([replace(FIRST, direction="min"), replace(later(2, 0.8), direction="min")])
    assert rows["iris"].best == 0.8


def test_a_changed_metric_needs_a_rebase() -> None:
    other = replace(later(2, 1.0), metric="f1")
    with pytest.raises(Fault, match="re-base"):
        fold([FIRST, other])
    assert fold([FIRST, replace(other, event=Event.REBASED)])["iris"].metric == "f1"


def test_a_value_that_is_not_finite_is_a_fault() -> None:
    with pytest.raises(Fault, match="run-1"):
        fold([replace(FIRST, value=float("nan"))])


@given(st.lists(ENTRY, max_size=12), st.randoms())
def test_the_order_of_the_entries_does_not_matter(entries: list[Entry], random: object) -> None:
    turned = sorted(entries, key=lambda one: (one.value, one.benchmark))
    assert fold(entries) == fold(turned)


@given(st.lists(ENTRY, max_size=12))
def test_the_best_is_never_worse_than_the_baseline_and_files_round_trip(entries: list[Entry]) -> None:
    rows = fold(entries)
    assert all(row.best <= row.baseline for row in rows.values())
    assert decode(encode(rows), "ledger") == rows


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{}",
        b"null",
        b"\xff",
        b'{"schema": "ledger/2", "rows": []}',
        b'{"schema": "ledger/1", "rows": [{}]}',
        b'{"schema": "ledger/1", "rows": 7}',
        b'{"schema": "ledger/1", "rows": [7]}',
    ],
)
def test_an_unreadable_ledger_is_refused_and_not_taken_for_an_empty_one(data: bytes) -> None:
    with pytest.raises(Fault, match=r"results/leader\.json"):
        decode(data, "results/leader.json")


@pytest.mark.parametrize(
    "change",
    [{"best": True}, {"best": "1"}, {"baseline": float("nan")}, {"direction": "up"}, {"metric": 5}, {"surplus": 1}],
)
def test_a_bad_row_makes_the_ledger_unreadable(change: dict[str, object]) -> None:
    good = json.loads(encode(fold([FIRST])))
    good["rows"][0].update(change)
    with pytest.raises(Fault, match="not a readable ledger"):
        decode(json.dumps(good).encode(), "here")


def test_two_rows_of_one_benchmark_are_refused() -> None:
    good = json.loads(encode(fold([FIRST])))
    good["rows"] *= 2
    with pytest.raises(Fault, match="two rows"):
        decode(json.dumps(good).encode(), "here")


def test_the_rendering_is_one_table() -> None:
    text = render(fold([FIRST, later(2, 0.954321)]), digits={"iris": 3})
    assert (
        text.splitlines()[-1] == "| iris | accuracy | higher | 0.9 | 0.954 | +6.0% | run-2 | 3 | 2026-11-02T00:00:00Z |"
    )


@pytest.mark.parametrize(
    "hostile",
    [
        "a|b",
        "a\n\n# title",
        "<!-- outerloop:claimed -->",
        "<script>",
        "`x`",
        "[t](http://h)",
        "@person",
        "a\u202eb",
        "![i](x)",
        "&lt;",
    ],
)
def test_a_hostile_name_stays_in_its_cell(hostile: str) -> None:
    row = render(fold([replace(FIRST, metric=hostile, run=hostile)])).splitlines()
    assert len(row) == 7
    assert row[-1].replace("\\|", "").count("|") == 10
    for sign in ("<", ">", "@", "://", "\u202e"):
        assert sign not in row[-1]
    assert escaped(hostile) in row[-1]
