"""``claims``: who holds what, how it ended, nothing left out, and a claim that a person gives free."""

from __future__ import annotations

from pathlib import Path

import pytest

from outerloop_hpc import fsio
from outerloop_hpc.engine import events as ev
from outerloop_hpc.engine import inbox, runs
from outerloop_hpc.engine.claims import ended_path
from outerloop_hpc.engine.journal import Journal
from outerloop_hpc.engine.layout import Layout
from outerloop_hpc.engine.state import RunState
from outerloop_hpc.steward.work import claim_id, order_key
from tests.unit.cli.forged import claim_file, end, hold, new_state, steward_run, take
from tests.unit.cli.shell import Cli, tree
from tests.unit.engine.made import ME, SPEC, T0

pytestmark = pytest.mark.unit

HELD, MAKING, OVER, ROSE = steward_run(1), steward_run(2), steward_run(3), steward_run(4, "rose")
MEASURED = SPEC.run


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    made = new_state(tmp_path)
    hold(made, HELD, order="1")
    take(made, MAKING, order="2")
    hold(made, OVER, order="3")
    end(made, OVER, "failed", order="3")
    hold(made, ROSE, order="1", target="rose")
    return made


def journal(layout: Layout, run: str, *events: ev.Event) -> None:
    Journal(layout.run(run)).commit(RunState(run=run), events, by=ME, at=T0, nonce=fsio.nonce())


def measured(layout: Layout) -> str:
    """Let a benchmark's claim be over, which leaves no document of its end; returns the claim's id."""
    claim = runs.claim(layout, "benchmark/accuracy/c0ffee00/head", SPEC)
    runs.ensure(layout, SPEC)
    runs.made(layout, MEASURED)
    journal(layout, MEASURED, ev.RunEnded(ending="measured", reason="all of them"), ev.RunClosed())
    fsio.remove(layout.live / MEASURED)
    return claim.id


def test_held_claims_are_listed_with_the_id_that_their_orders_show(cli: Cli, layout: Layout) -> None:
    said = cli("claims", "list", "--json")
    assert said.status == 0
    assert {row["run"]: (row["claim"], row["order"], row["state"], row["how"]) for row in said.rows} == {
        HELD: (claim_id("iris", HELD), order_key("1", 1), "held", "new"),
        MAKING: (claim_id("iris", MAKING), order_key("2", 1), "held", "in the making"),
        ROSE: (claim_id("rose", ROSE), order_key("1", 1), "held", "new"),
    }
    assert [row["run"] for row in cli("claims", "list", "--json", "--target", "rose").rows] == [ROSE]


def test_ended_claims_are_listed_with_their_reason_when_all_are_asked_for(cli: Cli, layout: Layout) -> None:
    claim = measured(layout)
    rows = {row["run"]: row for row in cli("claims", "list", "--all", "--json").rows}
    assert {HELD, MAKING, OVER, ROSE, MEASURED} == set(rows)
    assert (rows[OVER]["state"], rows[OVER]["how"]) == ("ended: failed", "aborted: it broke")
    assert (rows[MEASURED]["claim"], rows[MEASURED]["state"]) == (claim, "ended: measured")


def test_an_ending_that_is_not_told_yet_is_no_claim_that_is_held(cli: Cli, layout: Layout) -> None:
    end(layout, HELD, "failed", order="1")
    fsio.publish(layout.live / HELD, b"")
    (row,) = [row for row in cli("claims", "list", "--json").rows if row["run"] == HELD]
    assert row["state"] == "ended: failed"
    assert "not told" in row["how"]


def test_what_a_parked_run_waits_for_is_told(cli: Cli, layout: Layout) -> None:
    journal(layout, HELD, ev.RunStarted(spec_digest="d"), ev.RunParked(question="go on?", reason="lost"))
    (row,) = [row for row in cli("claims", "list", "--json").rows if row["run"] == HELD]
    assert (row["state"], row["how"]) == ("held", "parked: go on?")


@pytest.mark.parametrize("which", ["claim", "end", "journal"])
def test_what_cannot_be_read_of_a_claim_is_a_row_and_hides_no_other(cli: Cli, layout: Layout, which: str) -> None:
    broken = {
        "claim": claim_file(layout, "1"),
        "end": layout.root / ended_path("iris", order_key("1", 1)),
        "journal": layout.run(HELD).journal / "00000001.json",
    }[which]
    fsio.make_folder(broken.parent)
    broken.write_bytes(b"{")
    said = cli("claims", "list", "--json")
    assert said.status == 3
    (row,) = [row for row in said.rows if row["state"] == "unreadable"]
    assert str(broken) in row["how"]
    assert {MAKING, ROSE} <= {row["run"] for row in said.rows}


def test_a_claim_whose_run_nobody_will_end_is_told(cli: Cli, layout: Layout) -> None:
    fsio.remove(layout.live / HELD)
    said = cli("claims", "list", "--all", "--json")
    assert said.status == 3
    assert [row["state"] for row in said.rows if row["run"] == HELD] == ["unclear"]
    assert cli("claims", "release", claim_id("iris", HELD), "--reason", "r").status == 3


def test_a_released_claim_leaves_a_person_s_decision_for_the_next_pass(cli: Cli, layout: Layout) -> None:
    claim = claim_id("iris", HELD)
    said = cli("claims", "release", claim[:6], "--reason", "a mistake")
    assert (said.status, said.out) == (0, "")
    (decided,) = inbox.waiting(layout.run(HELD))
    assert (decided.action, decided.reason) == ("end", "a mistake")


def test_a_claim_whose_run_is_in_the_making_is_made_to_be_ended(cli: Cli, layout: Layout) -> None:
    claim = claim_id("iris", MAKING)
    before = tree(layout.root)
    dry = cli("claims", "release", claim, "--reason", "a mistake", "--dry-run")
    assert (dry.status, "would end" in dry.err) == (0, True)
    assert tree(layout.root) == before
    (row,) = cli("claims", "release", claim, "--reason", "a mistake", "--json").rows
    assert (row["run"], row["claim"]) == (MAKING, claim)
    assert [one.action for one in inbox.waiting(layout.run(MAKING))] == ["end"]
    assert runs.unmade(layout) == []


def test_the_claim_of_a_benchmark_is_released_by_its_own_id(cli: Cli, layout: Layout) -> None:
    claim = runs.claim(layout, "benchmark/accuracy/c0ffee00/head", SPEC)
    runs.ensure(layout, SPEC)
    runs.made(layout, MEASURED)
    assert cli("claims", "release", claim.id, "--reason", "r").status == 0
    assert [one.action for one in inbox.waiting(layout.run(MEASURED))] == ["end"]


def test_a_claim_that_has_ended_is_not_released(cli: Cli, layout: Layout) -> None:
    before = tree(layout.root)
    for claim, word in ((claim_id("iris", OVER), "failed"), (measured(layout), "measured")):
        said = cli("claims", "release", claim, "--reason", "r")
        assert said.status == 2
        assert f"has ended: {word}" in said.err
    assert {path for path in tree(layout.root) if "inbox" in path} == {path for path in before if "inbox" in path}


def test_two_claims_that_begin_alike_and_none_at_all_are_no_claim(cli: Cli, layout: Layout) -> None:
    before = tree(layout.root)
    for text in ("", "nothing"):
        said = cli("claims", "release", text, "--reason", "r")
        assert (said.status, "no single claim" in said.err) == (2, True)
    assert cli("claims", "release", claim_id("iris", HELD)).status == 2
    assert tree(layout.root) == before
    first = {claim_id("iris", run)[0]: run for run in (HELD, MAKING, OVER)}
    number = 5
    while (one := claim_id("iris", steward_run(number)))[0] not in first:
        number += 1
    hold(layout, steward_run(number), order="9")
    said = cli("claims", "release", one[0], "--reason", "r")
    assert (said.status, one in said.err, claim_id("iris", first[one[0]]) in said.err) == (2, True, True)


def test_a_target_without_claims_is_answered_with_those_that_are_there(cli: Cli, layout: Layout) -> None:
    said = cli("claims", "list", "--target", "lily")
    assert (said.status, "there are iris, rose" in said.err) == (2, True)
