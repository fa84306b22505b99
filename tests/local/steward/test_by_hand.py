"""What people do with orders, changes and claims at the command line, on a lane that works."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.local.scratch import git
from tests.local.site import wait_for
from tests.local.steward.lane import BODY, MEND, NO_CHANGE, TARGET, Lane, new_lane

pytestmark = pytest.mark.local

SLEEP = "time.sleep(600)\n"


@pytest.fixture
def lane(tmp_path: Path) -> Iterator[Lane]:
    made = new_lane(tmp_path)
    yield made
    made.site.stop_jobs()


def claims(lane: Lane, *more: str) -> dict[str, str]:
    """Return the states of the steward's claims, by their ids."""
    rows = lane.site.rows("claims", "list", *more)
    return {row["claim"]: row["state"] for row in rows if row["order"].startswith("steward/")}


def test_an_order_from_the_command_line_becomes_a_change_that_is_shown_and_merged(lane: Lane, tmp_path: Path) -> None:
    text = tmp_path / "why.md"
    text.write_text("The evaluation always adds the same bonus.\n", encoding="utf-8")
    opened = ("orders", "new", TARGET, "--title", "The score can be gamed", "--author", "ada")
    number = lane.site.cli(*opened, "--body-file", str(text), "--benchmark", "score").out.strip()
    change_id = lane.until_open().change_id
    (claim,) = claims(lane)
    assert claims(lane) == {claim: "held"}
    assert f"held by claim {claim}" in lane.site.cli("orders", "show", TARGET, number).out
    shown = json.loads(lane.site.cli("changes", "show", TARGET, change_id, "--json").out)
    assert (shown["order"], shown["state"], shown["onto"]) == (number, "open", "main")
    assert {row["path"]: row["what"] for row in shown["rows"]} == {
        "BENCHMARKS.md": "added",
        "evaluate.py": "changed",
        "results/leader.json": "added",
    }
    before = git(lane.site.source(), "rev-parse", "main")
    assert lane.site.cli("changes", "merge", TARGET, change_id, "--author", "ada", "--dry-run").out == ""
    assert git(lane.site.source(), "rev-parse", "main") == before
    merged = lane.site.cli("changes", "merge", TARGET, change_id, "--author", "ada").out.strip()
    assert merged == git(lane.site.source(), "rev-parse", "main") == shown["commit"]
    assert lane.site.cli("changes", "merge", TARGET, change_id, "--author", "ada").out.strip() == merged
    lane.until_ended()
    assert lane.endings() == ["merged"]
    assert (claims(lane), claims(lane, "--all")) == ({}, {claim: "ended: published"})
    (order,) = lane.site.rows("orders", "list", TARGET, "--all")
    assert (order["state"], order["standing"], order["attempts"]) == ("closed", "last claim ended: published", 0)
    (change,) = lane.site.rows("changes", "list", TARGET, "--all")
    assert (change["state"], change["merged_as"], change["decided_by"]) == ("merged", merged, "ada")
    paths = [row["path"] for row in lane.site.rows("changes", "show", TARGET, change_id)]
    assert paths == [row["path"] for row in shown["rows"]], "what is merged still says what it changed"


def test_what_both_sides_changed_is_not_merged_and_the_way_by_hand_is_told(lane: Lane) -> None:
    lane.order()
    change_id = lane.until_open().change_id
    head = lane.site.change("# rewritten\n")
    said = lane.site.cli("changes", "merge", TARGET, change_id, "--author", "ada", expect=(2,))
    assert "changed the same lines" in said.err
    assert "git fetch" in said.err
    assert said.out == ""
    assert git(lane.site.source(), "rev-parse", "main") == head
    assert lane.changes()[0].status == "open"


def test_what_a_repository_s_hook_says_cannot_drive_the_terminal(lane: Lane) -> None:
    lane.order()
    change_id = lane.until_open().change_id
    hook = lane.site.source() / ".git" / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nprintf 'no \\033]0;owned\\007 today\\n' >&2\nexit 1\n", encoding="utf-8")
    hook.chmod(0o755)
    said = lane.site.cli("changes", "merge", TARGET, change_id, "--author", "ada", expect=(2,))
    assert "takes no push of main" in said.err
    assert "owned" in said.err
    assert "\x1b" not in said.err
    assert "\x07" not in said.err
    assert lane.changes()[0].status == "open"


def test_a_released_claim_ends_its_session_and_its_order_waits_for_a_person(lane: Lane) -> None:
    lane.script(SLEEP)
    number = lane.site.cli("orders", "new", TARGET, "--title", "t", "--body", BODY, "--author", "ada").out.strip()
    wait_for(lambda: bool(lane.tick()) and bool(lane.sessions()), "the session has begun")
    (claim,) = claims(lane)
    lane.site.cli("claims", "release", claim[:8], "--reason", "a mistake")
    lane.script(NO_CHANGE)
    lane.until_ended()
    assert (lane.endings(), lane.markers(number)) == (["operator"], ["claimed", "ended:answered"])
    assert claims(lane, "--all") == {claim: "ended: answered"}
    again = lane.site.cli("claims", "release", claim, "--reason", "twice", expect=(2,))
    assert "has ended: answered" in again.err
    lane.tick()
    assert (len(lane.stewards()), len(lane.sessions())) == (1, 1)
    lane.script(MEND)
    lane.site.cli("orders", "comment", TARGET, number, "--body", "Do it after all.", "--author", "ada")
    lane.until_open()
    assert len(lane.sessions()) == 2
