"""``changes`` where no git is needed: what is listed and shown, who may close, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from outerloop_hpc.engine.layout import Layout
from outerloop_hpc.forge.local import LocalForge
from outerloop_hpc.forge.port import Proposal
from outerloop_hpc.steward.work import branch_of
from tests.unit.cli.forged import forge_of, hold, new_state, steward_run
from tests.unit.cli.shell import Cli, tree

pytestmark = pytest.mark.unit

COMMIT = "c" * 40


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return new_state(tmp_path)


@pytest.fixture
def forge(layout: Layout) -> LocalForge:
    return forge_of(layout)


@pytest.fixture(autouse=True)
def _ann(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("getpass.getuser", lambda: "ann")


def proposed(forge: LocalForge, number: int = 1, title: str = "A fairer ruler", body: str = "because") -> str:
    proposal = Proposal(branch_of(steward_run(number)), "main", COMMIT, "7", title, body)
    return forge.propose(proposal).change_id


def test_open_changes_are_listed_and_the_others_when_all_are_asked_for(cli: Cli, forge: LocalForge) -> None:
    first, second = proposed(forge, 1), proposed(forge, 2, "Another")
    forge.close_change(first, author="ada", body="too small")
    (row,) = cli("changes", "list", "iris", "--json").rows
    assert (row["change"], row["state"], row["order"], row["title"]) == (second, "open", "7", "Another")
    assert (row["branch"], row["onto"], row["commit"]) == (branch_of(steward_run(2)), "main", COMMIT)
    rows = cli("changes", "list", "iris", "--all", "--json").rows
    assert [(row["change"], row["state"]) for row in rows] == [(first, "closed"), (second, "open")]
    assert (rows[0]["decided_by"], rows[0]["reason"]) == ("ada", "too small")


def test_a_change_that_cannot_be_read_is_a_row_and_hides_no_other(cli: Cli, forge: LocalForge) -> None:
    broken, whole = proposed(forge, 1), proposed(forge, 2)
    (forge.folder / "changes" / broken / "00000001.json").write_bytes(b"{")
    said = cli("changes", "list", "iris", "--json")
    assert said.status == 3
    assert [(row["change"], row["state"]) for row in said.rows] == [(whole, "open"), (broken, "unreadable")]


def test_a_change_is_shown_also_where_its_paths_are_not_known(cli: Cli, layout: Layout, forge: LocalForge) -> None:
    hold(layout, steward_run(1))
    change = proposed(forge)
    said = cli("changes", "show", "iris", change)
    assert said.status == 0
    for part in (f"change {change} of iris: open", "A fairer ruler", "    because", COMMIT, "its paths are not known"):
        assert part in said.out


def test_the_text_of_a_change_cannot_drive_the_terminal(cli: Cli, forge: LocalForge) -> None:
    """A session's report is in it."""
    hostile = "\x1b]0;owned\x07\r\n\x9b2J \u202eend\nchange 1 of iris: merged"
    change = proposed(forge, 1, hostile, hostile)
    forge.close_change(change, author="e\x1bve", body=hostile)
    said = cli("changes", "show", "iris", change)
    assert not {*said.out} & {*"\x1b\x07\x9b\r\u202e"}
    assert not [line for line in said.out.split("\n") if line.startswith("change 1 of")]
    assert not {*cli("changes", "list", "iris", "--all").out} & {*"\x1b\x07\x9b\r\u202e"}


def test_people_close_a_change_with_a_reason(cli: Cli, layout: Layout, forge: LocalForge) -> None:
    change = proposed(forge)
    before = tree(layout.root)
    assert cli("changes", "close", "iris", change).status == 2
    assert cli("changes", "close", "iris", change, "--reason", "r", "--author", "outerloop").status == 2
    dry = cli("changes", "close", "iris", change, "--reason", "r", "--dry-run")
    assert (dry.status, dry.err.startswith("would close")) == (0, True)
    assert tree(layout.root) == before
    assert cli("changes", "close", "iris", change, "--reason", "too small", "--json").rows[0]["state"] == "closed"
    assert [(said.author, said.body) for said in forge.change_events(change)[1:]] == [("ann", "too small")]
    again = cli("changes", "close", "iris", change, "--reason", "too small")
    assert (again.status, "was closed already" in again.err) == (0, True)
    assert len(forge.change_events(change)) == 2


def test_a_closed_change_is_not_merged(cli: Cli, forge: LocalForge) -> None:
    change = proposed(forge)
    forge.close_change(change, author="ada", body="no")
    said = cli("changes", "merge", "iris", change)
    assert (said.status, said.out, "is closed" in said.err) == (2, "", True)


@pytest.mark.parametrize("change", ["zzzzzzzz", "", "../../../x", "x" * 5000], ids=lambda c: c[:8])
@pytest.mark.parametrize("word", ["show", "merge", "close"])
def test_a_change_that_is_not_there_is_answered_with_those_that_are(
    cli: Cli, forge: LocalForge, word: str, change: str
) -> None:
    there = proposed(forge)
    said = cli("changes", word, "iris", change)
    assert (said.status, said.out) == (2, "")
    assert f"there are {there}" in said.err


@pytest.mark.parametrize("words", [("list",), ("show", "x"), ("merge", "x")], ids=lambda words: words[0])
def test_a_target_that_is_not_there_is_answered_with_those_that_are(
    cli: Cli, layout: Layout, words: tuple[str, ...]
) -> None:
    said = cli("changes", words[0], "lily", *words[1:])
    assert (said.status, "there are: iris, rose" in said.err) == (2, True)
