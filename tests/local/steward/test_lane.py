"""The lane from an order to what people make of its change, on the embedded default."""

from __future__ import annotations

import json

import pytest

from tests.local.scratch import git
from tests.local.site import wait_for
from tests.local.steward.lane import (
    BUDGET,
    CHEAT,
    FAIL,
    NO_CHANGE,
    OUTAGE,
    TARGET,
    Lane,
)

pytestmark = pytest.mark.local


def test_an_order_becomes_a_measured_change_that_is_merged(lane: Lane) -> None:
    order = lane.order()
    change = lane.until_open()
    (session,) = lane.sessions()
    assert "The evaluation always adds the same bonus." in session["brief"]
    assert lane.forge.order(order).open
    lane.forge.merge(change.change_id, author="ada", repository=str(lane.site.source()))
    lane.until_ended()
    assert lane.endings() == ["merged"]
    assert lane.markers(order) == ["claimed", "ended:published"]
    assert not lane.forge.order(order).open
    source = lane.site.source()
    assert "+ 1000" in (source / "evaluate.py").read_text(encoding="utf-8")
    ledger = json.loads((source / "results/leader.json").read_bytes())
    assert [row["benchmark"] for row in ledger["rows"]] == ["score"]
    assert "score" in (source / "BENCHMARKS.md").read_text(encoding="utf-8")
    (row,) = [row for row in lane.site.rows("bench", "ledger", TARGET) if row["benchmark"] == "score"]
    assert row["baseline"] == row["best"] >= 1000
    assert len(lane.sessions()) == 1
    assert git(source, "status", "--porcelain") == ""


def test_a_closed_change_ends_the_run_and_is_not_bought_again_until_somebody_speaks(lane: Lane) -> None:
    order = lane.order()
    change = lane.until_open()
    lane.forge.close_change(change.change_id, author="ada", body="no")
    lane.until_ended()
    lane.tick()
    assert (lane.endings(), lane.markers(order)) == (["rejected"], ["claimed", "ended:published"])
    assert len(lane.stewards()) == 1
    lane.forge.say(order, author="ada", body="Try once more, please.")
    wait_for(lambda: bool(lane.tick()) and len(lane.changes()) > 1, "a second change is open")
    assert len(lane.sessions()) == 2
    assert lane.markers(order) == ["claimed", "ended:published", "claimed"]


@pytest.mark.parametrize(
    ("script", "ending", "reason"),
    [
        (NO_CHANGE, "answered", "answered"),
        (BUDGET, "budget-exhausted", "failed"),
        (FAIL, "aborted", "failed"),
        (OUTAGE, "outage", "outage"),
        (CHEAT, "out-of-scope", "failed"),
    ],
)
def test_each_way_a_session_can_end_closes_its_claim(lane: Lane, script: str, ending: str, reason: str) -> None:
    lane.script(script)
    order = lane.order()
    lane.until_ended()
    assert (lane.endings()[0], lane.markers(order)[:2]) == (ending, ["claimed", f"ended:{reason}"])
    assert lane.changes() == []
    assert lane.claim_ends()[0]["reason"] == reason


def test_a_session_that_edits_the_judged_side_is_refused_with_its_paths(lane: Lane) -> None:
    lane.script(CHEAT)
    order = lane.order()
    lane.until_ended()
    said = lane.comments(order)[1].body
    assert "`solver.py`" in said
    assert "out-of-scope" in said
    assert lane.changes() == []
