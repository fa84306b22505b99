"""People act at any moment: orders that are closed, deleted or unlabelled, changes that are decided on, runs ended."""

from __future__ import annotations

import json
import shutil

import pytest

from tests.local.scratch import commit
from tests.local.site import wait_for
from tests.local.steward.lane import CONTRACT, MEND, NO_CHANGE, OUTAGE, Lane

pytestmark = [pytest.mark.local, pytest.mark.timeout(600)]

_START = "command submitit.local"


def die_at(lane: Lane, what: str) -> None:
    """Let a pass die before it does this."""

    def died() -> bool:
        assert lane.site.driver is not None
        return lane.site.driver.order("--config", str(lane.site.config), "tick", at=what, when="before").status < 0

    wait_for(died, f"a pass died before {what}")


def test_an_order_that_is_closed_while_its_run_is_live_still_hears_how_it_ended(swift: Lane) -> None:
    swift.script(swift.gated(NO_CHANGE))
    order = swift.order()
    swift.tick()
    swift.until_bought()
    swift.forge.close_order(order, author="ada", body="never mind")
    swift.tick()
    assert swift.markers(order) == ["claimed"], "a living job is not taken away"
    swift.gate().touch()
    swift.until_told(order, "claimed", "ended:answered")
    for _ in range(2):
        swift.tick()
    assert len(swift.sessions()) == 1


def test_an_order_that_is_deleted_before_its_claim_is_told_costs_no_session(swift: Lane) -> None:
    """A claim that could not be told counted as told, and the session was bought for nobody."""
    swift.measured()
    order = swift.order()
    die_at(swift, f"/orders/{order}/00000002.json")
    shutil.rmtree(swift.folder(order))
    swift.settle()
    assert (swift.endings(), swift.sessions()) == (["refused"], [])
    assert "not there any more" in swift.claim_ends()[0]["why"]


@pytest.mark.parametrize("moment", ["session", "change"])
def test_an_order_that_is_deleted_later_leaves_no_run_behind(swift: Lane, moment: str) -> None:
    swift.script(swift.gated(MEND))
    order = swift.order()
    swift.tick()
    swift.until_bought()
    if moment == "session":
        shutil.rmtree(swift.folder(order))
    swift.gate().touch()
    change = swift.until_open()
    if moment == "change":
        shutil.rmtree(swift.folder(order))
    swift.forge.merge(change.change_id, author="ada", repository=str(swift.site.source()))
    swift.settle()
    assert swift.endings() == ["merged"]
    assert "+ 1000" in (swift.site.source() / "evaluate.py").read_text(encoding="utf-8")


def test_a_label_that_is_taken_away_ends_no_claim_and_buys_no_other_session(swift: Lane) -> None:
    swift.script(swift.gated("sys.exit(3)\n"))
    order = swift.order()
    swift.tick()
    swift.until_bought()
    swift.forge.relabel(order, author="ada", added=(), removed=("outerloop:steward",))
    swift.tick()
    assert swift.markers(order) == ["claimed"]
    swift.gate().touch()
    swift.until_told(order, "claimed", "ended:failed")
    for _ in range(2):
        swift.tick()
    assert len(swift.sessions()) == 1, "without the label nobody takes it again"
    swift.forge.relabel(order, author="ada", added=("outerloop:steward",), removed=())
    swift.until_told(order, "claimed", "ended:failed", "claimed")


@pytest.mark.parametrize("first", ["merge", "close"])
def test_a_change_that_two_people_decide_on_is_decided_once(swift: Lane, first: str) -> None:
    order = swift.order()
    change = swift.until_open()
    source = str(swift.site.source())
    decide = {
        "merge": lambda: swift.forge.merge(change.change_id, author="ada", repository=source),
        "close": lambda: swift.forge.close_change(change.change_id, author="bob", body="no"),
    }
    decide[first]()
    with pytest.raises(Exception, match=change.change_id):
        decide["close" if first == "merge" else "merge"]()
    swift.settle()
    assert swift.endings() == ["merged" if first == "merge" else "rejected"]
    assert swift.markers(order) == ["claimed", "ended:published"]


def test_hold_between_claim_and_session_keeps_both(swift: Lane) -> None:
    swift.measured()
    order = swift.order()
    die_at(swift, _START)
    hold = swift.site.state / "tick" / "HOLD"
    hold.touch()
    for hours in (0, 10):
        swift.later(3600.0 * hours)
        swift.tick()
    assert (swift.markers(order), swift.sessions()) == (["claimed"], [])
    hold.unlink()
    swift.until_open()
    assert len(swift.sessions()) == 1


def test_a_run_that_a_person_ends_is_not_bought_again_and_its_change_is_left_to_people(swift: Lane) -> None:
    order = swift.order()
    change = swift.until_open()
    run = swift.stewards()[0].name
    swift.site.cli("runs", "end", run, "--reason", "we do it by hand")
    swift.settle()
    assert (swift.endings(), swift.markers(order)) == (["operator"], ["claimed", "ended:answered"])
    for _ in range(2):
        swift.tick()
    assert len(swift.stewards()) == 1
    assert swift.forge.change(change.change_id).status == "open"


def test_a_run_that_a_person_ends_before_its_claim_was_told_is_not_bought_again(swift: Lane) -> None:
    """Nothing was ever said on the order, and so the next pass took it once more."""
    swift.measured()
    order = swift.order()
    die_at(swift, "/journal/00000001.json")
    swift.site.cli("runs", "end", swift.stewards()[0].name, "--reason", "we do it by hand")
    for _ in range(3):
        swift.tick()
    assert (swift.endings(), swift.markers(order)) == (["operator"], ["claimed", "ended:answered"])
    assert swift.sessions() == []


def test_a_benchmark_that_is_renamed_before_the_merge_keeps_its_old_history(swift: Lane) -> None:
    order = swift.order()
    change = swift.until_open()
    source = swift.site.source()
    renamed = CONTRACT.replace("name: score,", "name: points,")
    (source / ".outerloop.yaml").write_text(renamed, encoding="utf-8")
    commit(source)
    swift.tick()
    swift.forge.merge(change.change_id, author="ada", repository=str(source))
    swift.settle()
    assert swift.markers(order) == ["claimed", "ended:published"]
    (point,) = swift.site.state.glob("results/tiny/*/steward-*.json")
    assert point.parent.name == "score"
    swift.tick()
    again = swift.order("Once more", body="benchmark: score")
    swift.tick()
    (said,) = swift.comments(again)
    assert "There is no benchmark `score`" in said.body
    assert "`points`" in said.body


def test_a_contract_that_breaks_while_the_role_pauses_raises_its_alarm_and_keeps_it(swift: Lane) -> None:
    """A lane that pauses looked at no contract, which then passed for a healthy one."""
    swift.script(OUTAGE)
    order = swift.order()
    swift.until_told(order, "claimed", "ended:outage")
    source = swift.site.source()
    (source / ".outerloop.yaml").write_text("benchmarks: {\n", encoding="utf-8")
    commit(source)
    for _ in range(5):
        swift.tick(expect=(4,))
    assert len(swift.forge.orders("outerloop:alarm")) == 1
    (source / ".outerloop.yaml").write_text(CONTRACT, encoding="utf-8")
    commit(source)
    swift.tick()
    assert swift.forge.orders("outerloop:alarm") == []


def test_an_order_on_a_target_without_a_steward_is_told_so_and_taken_once_there_is_one(swift: Lane) -> None:
    source = swift.site.source()
    (source / ".outerloop.yaml").write_text(CONTRACT.partition("steward:")[0], encoding="utf-8")
    commit(source)
    order = swift.order()
    for _ in range(2):
        swift.tick()
    (said,) = swift.comments(order)
    assert "no `steward` section" in said.body
    (source / ".outerloop.yaml").write_text(CONTRACT, encoding="utf-8")
    commit(source)
    swift.tick()
    assert swift.markers(order) == ["claimed"]


def test_a_tick_that_only_looks_says_what_would_be_and_does_nothing(swift: Lane) -> None:
    order = swift.order()
    unclear = swift.order("Hello", body="no name at all")
    before = sorted(swift.site.state.rglob("*"))
    rows = swift.site.rows("tick", "--dry-run")
    assert {(row["rule"], row["decision"]) for row in rows} >= {("lane.run", "run"), ("lane.remark", "remark")}
    assert sorted(swift.site.state.rglob("*")) == before
    assert (swift.comments(order), swift.comments(unclear)) == ([], [])


def test_the_live_limit_holds_within_one_pass_and_over_passes(swift: Lane) -> None:
    swift.configure({"live": 2})
    swift.script(swift.gated(NO_CHANGE))
    orders = [swift.order(f"Order {number}") for number in range(4)]
    for _ in range(3):
        swift.tick()
    assert [bool(swift.markers(order)) for order in orders] == [True, True, False, False]
    swift.gate().touch()
    swift.until_told(orders[-1], "claimed", "ended:answered")
    specs = [json.loads((folder / "spec.json").read_bytes()) for folder in swift.stewards()]
    assert sorted(spec["work"]["order"]["order_id"] for spec in specs) == orders
