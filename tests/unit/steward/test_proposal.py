"""The ledger as a change leaves it: one row begins anew, every other one stays as it was, to the letter."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outerloop_hpc.errors import Fault
from outerloop_hpc.measure import ledger
from outerloop_hpc.steward import proposal
from outerloop_hpc.steward.work import work_of
from tests.unit.steward.made import CANDIDATE, RUN, TREE, found, spec

pytestmark = pytest.mark.unit

NUMBERS = st.floats(allow_nan=False, allow_infinity=False, width=32)
ROWS = st.builds(
    ledger.Row,
    benchmark=st.from_regex(r"[A-Za-z0-9_.-]{1,12}", fullmatch=True),
    metric=st.text(min_size=1, max_size=10),
    direction=st.sampled_from(["min", "max"]),
    baseline=NUMBERS,
    best=NUMBERS,
    best_run=st.text(max_size=20),
    updated=st.just("2026-01-01T00:00:00+00:00"),
    run_seed=st.none() | st.integers(0, 2**31 - 1),
)


@given(st.lists(ROWS, max_size=5, unique_by=lambda row: row.benchmark))
def test_no_other_row_is_touched(before: list[ledger.Row]) -> None:
    known = {row.benchmark: row for row in before}
    made = spec(leader=ledger.encode(known).decode())
    change = proposal.of(made, work_of(made), found(), {"11": 4.0, "12": 6.0})
    after = ledger.decode(change.files["results/leader.json"].encode(), "after")
    row = after.pop("score")
    assert after == {name: kept for name, kept in known.items() if name != "score"}
    assert (row.baseline, row.best, row.best_run, row.run_seed) == (5.0, 5.0, RUN, None)


def test_a_better_number_before_does_not_outlive_its_ruler() -> None:
    old = ledger.Row("score", "score", "max", 1.0, 99.0, "old", "2026-01-01T00:00:00+00:00")
    made = spec(leader=ledger.encode({"score": old}).decode(), best=99.0, best_run="old")
    change = proposal.of(made, work_of(made), found(), {"11": 4.0})
    row = ledger.decode(change.files["results/leader.json"].encode(), "after")["score"]
    assert (row.baseline, row.best, row.run_seed) == (4.0, 4.0, 11)
    assert "99" in change.body


@pytest.mark.parametrize("text", ["{", "[]", '{"schema": "ledger/2", "rows": []}', '{"rows": [1]}', "\x00"])
def test_a_ledger_that_cannot_be_read_is_not_written(text: str) -> None:
    made = spec(leader=text)
    with pytest.raises(Fault, match="leader"):
        proposal.of(made, work_of(made), found(), {"11": 4.0})


def test_branch_candidate_and_tree_follow_from_the_run() -> None:
    made = spec()
    change = proposal.of(made, work_of(made), found(), {"11": 4.0})
    assert (change.branch, change.candidate, change.tree, change.onto) == (
        f"feat/steward/{RUN}",
        CANDIDATE,
        TREE,
        "main",
    )
    assert TREE in change.body
    assert TREE in change.message
