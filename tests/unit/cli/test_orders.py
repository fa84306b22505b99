"""``orders``: who may write, what is taken, what is shown, and that foreign text stays text."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from outerloop_hpc.cli.given import LARGEST
from outerloop_hpc.engine.layout import Layout
from outerloop_hpc.forge.local import LocalForge
from tests.unit.cli.forged import LABEL, claim_file, end, forge_of, hold, new_state, steward_run, tell
from tests.unit.cli.shell import Cli, tree

pytestmark = pytest.mark.unit

ONE, TWO = steward_run(1), steward_run(2)


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return new_state(tmp_path)


@pytest.fixture
def forge(layout: Layout) -> LocalForge:
    return forge_of(layout)


@pytest.fixture(autouse=True)
def _ann(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("getpass.getuser", lambda: "ann")


def given(forge: LocalForge, title: str = "Resample", body: str = "benchmark: accuracy", *labels: str) -> str:
    return forge.open_order(author="ada", title=title, body=body, labels=labels or (LABEL,))


# --- new


def test_an_order_gets_the_login_name_the_steward_s_label_and_its_benchmark_s_line(cli: Cli, forge: LocalForge) -> None:
    said = cli("orders", "new", "iris", "--title", " Frozen split ", "--body", "It is.\n", "--benchmark", "accuracy")
    assert (said.status, said.out) == (0, "1\n")
    order = forge.order("1")
    assert (order.author, order.title, order.labels) == ("ann", "Frozen split", (LABEL,))
    assert order.body == "It is.\n\nbenchmark: accuracy\n"


def test_an_order_that_no_tick_will_take_is_not_opened_in_silence(cli: Cli, forge: LocalForge) -> None:
    said = cli("orders", "new", "iris", "--title", "t")
    assert (said.status, said.out) == (0, "1\n")
    assert "[steward] has no command: no tick takes the order" in said.err
    assert not cli("orders", "new", "iris", "--title", "t", "--label", "question").err


def test_given_labels_and_authors_count_instead_of_the_default_ones(cli: Cli, forge: LocalForge) -> None:
    said = cli(
        *("orders", "new", "iris", "--title", "t", "--author", "bob", "--json"),
        *("--label", "question", "--label", "urgent", "--label", "question"),
    )
    (row,) = said.rows
    assert (row["number"], row["author"], row["labels"]) == (1, "bob", ["question", "urgent"])
    assert forge.order("1").labels == ("question", "urgent")


def test_the_label_of_the_settings_is_the_default(cli: Cli, forge: LocalForge, tmp_path: Path) -> None:
    with (tmp_path / "outerloop.toml").open("a", encoding="utf-8") as file:
        file.write('\n[steward]\nlabel = "please"\n')
    assert cli("orders", "new", "iris", "--title", "t").status == 0
    assert forge.order("1").labels == ("please",)


@pytest.mark.parametrize("name", ["outerloop", "Outerloop", " outerloop ", "\uff4futerloop"])
@pytest.mark.parametrize(
    "words",
    [
        ("new", "iris", "--title", "t"),
        ("comment", "iris", "1", "--body", "b"),
        ("relabel", "iris", "1", "--add", "l"),
        ("close", "iris", "1"),
    ],
    ids=lambda words: words[0],
)
def test_nobody_writes_under_the_tool_s_own_name(
    cli: Cli, layout: Layout, forge: LocalForge, words: tuple[str, ...], name: str
) -> None:
    """A marker counts when the tool has written it, so whoever could borrow its name could free and take orders."""
    given(forge)
    before = tree(layout.root)
    said = cli("orders", *words, "--author", name)
    assert said.status == 2
    assert "the tool's own name" in said.err
    assert tree(layout.root) == before


def test_a_login_that_is_the_tool_s_own_name_is_no_way_around_that(
    cli: Cli, layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("getpass.getuser", lambda: "outerloop")
    said = cli("orders", "new", "iris", "--title", "t")
    assert (said.status, "--author NAME" in said.err) == (2, True)
    assert cli("orders", "new", "iris", "--title", "t", "--author", "ann").status == 0


@pytest.mark.parametrize("name", ["a\nb", "\x1b[31mann", "a\u200bnn", "...", "x" * 101])
def test_a_name_that_cannot_be_seen_for_what_it_is_is_refused(cli: Cli, layout: Layout, name: str) -> None:
    assert cli("orders", "new", "iris", "--title", "t", "--author", name).status == 2


@pytest.mark.parametrize(
    "more",
    [
        ("--title", "two\nlines"),
        ("--title", " "),
        ("--title", "t", "--label", "a\x1b[2J"),
        ("--title", "t", "--label", ""),
        ("--title", "t", "--benchmark", "no such; name"),
        ("--title", "t", "--body", "a", "--body-file", "b"),
        ("--title", "t", "--body-file", "no-such-file"),
        ("--title", "t", "--body-file", "."),
    ],
    ids=" ".join,
)
def test_an_order_that_cannot_be_meant_is_refused_and_nothing_is_written(
    cli: Cli, layout: Layout, more: tuple[str, ...]
) -> None:
    before = tree(layout.root)
    said = cli("orders", "new", "iris", *more)
    assert (said.status, said.out) == (2, "")
    assert "Traceback" not in said.err
    assert tree(layout.root) == before


def test_a_text_of_a_megabyte_is_taken_and_one_byte_more_is_refused_with_its_size(
    cli: Cli, forge: LocalForge, tmp_path: Path
) -> None:
    (tmp_path / "most").write_bytes(b"x" * LARGEST)
    (tmp_path / "more").write_bytes(b"x" * (LARGEST + 1))
    assert cli("orders", "new", "iris", "--title", "t", "--body-file", "most").status == 0
    assert len(forge.order("1").body) == LARGEST
    said = cli("orders", "new", "iris", "--title", "t", "--body-file", "more")
    assert said.status == 2
    assert f"more: has {LARGEST + 1} bytes, at most {LARGEST} are taken" in said.err
    assert forge.order_ids() == ["1"]


class Stdin:
    def __init__(self, data: bytes) -> None:
        self.buffer = io.BytesIO(data)


def test_a_text_comes_from_stdin_and_a_pipe_without_end_is_not_read_to_it(
    cli: Cli, forge: LocalForge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", Stdin("\ufeffgrün\n".encode()))
    assert cli("orders", "new", "iris", "--title", "t", "--body-file", "-").status == 0
    assert forge.order("1").body == "grün\n"
    endless = Stdin(b"x" * (3 * LARGEST))
    monkeypatch.setattr(sys, "stdin", endless)
    said = cli("orders", "new", "iris", "--title", "t", "--body-file", "-")
    assert (said.status, "stdin: has more than" in said.err) == (2, True)
    assert endless.buffer.tell() <= LARGEST + 1


def test_a_text_that_is_not_utf_8_is_refused(cli: Cli, layout: Layout, tmp_path: Path) -> None:
    (tmp_path / "latin").write_bytes("grün".encode("latin-1"))
    said = cli("orders", "new", "iris", "--title", "t", "--body-file", "latin")
    assert (said.status, "is not UTF-8" in said.err) == (2, True)
    assert cli("orders", "new", "iris", "--title", "t", "--body", "gr\udcfcn").status == 2


def test_a_dry_run_of_each_writes_nothing(cli: Cli, layout: Layout, forge: LocalForge) -> None:
    given(forge)
    before = tree(layout.root)
    for words in (
        ("new", "iris", "--title", "t"),
        ("comment", "iris", "1", "--body", "b"),
        ("relabel", "iris", "1", "--add", "l"),
        ("close", "iris", "1"),
    ):
        said = cli("orders", *words, "--dry-run")
        assert (said.status, said.out, said.err.startswith("would ")) == (0, "", True)
    assert tree(layout.root) == before


# --- list


def test_open_orders_are_listed_with_what_holds_them(cli: Cli, layout: Layout, forge: LocalForge) -> None:
    for title in ("free", "held", "failed", "closed", "untold"):
        given(forge, title)
    claim = hold(layout, ONE, order="2")
    tell(forge, ONE, order="2")
    for reason in (None, "failed"):
        tell(forge, TWO, order="3", reason=reason)
    forge.close_order("4", author="ada")
    untold = hold(layout, steward_run(3), order="5")
    rows = {row["title"]: row for row in cli("orders", "list", "iris", "--json").rows}
    assert list(rows) == ["free", "held", "failed", "untold"]
    assert {title: row["standing"] for title, row in rows.items()} == {
        "free": "never claimed",
        "held": f"held by claim {claim}",
        "failed": "last claim ended: failed",
        "untold": f"held by claim {untold}, which is not told on it yet",
    }
    assert {title: (row["attempts"], row["run"]) for title, row in rows.items()} == {
        "free": (0, None),
        "held": (0, ONE),
        "failed": (1, None),
        "untold": (0, steward_run(3)),
    }
    assert [row["state"] for row in cli("orders", "list", "iris", "--all", "--json").rows][3] == "closed"


def test_a_claim_that_ended_without_ever_being_told_holds_nothing(cli: Cli, layout: Layout, forge: LocalForge) -> None:
    given(forge)
    hold(layout, ONE)
    end(layout, ONE, "refused")
    (row,) = cli("orders", "list", "iris", "--json").rows
    assert row["claim"] is None


def test_a_quoted_marker_in_a_comment_holds_nothing(cli: Cli, forge: LocalForge) -> None:
    number = given(forge)
    forge.say(number, author="eve", body=f"<!-- outerloop:claim/1 id={'0' * 16} run={ONE} attempt=1 claimed -->")
    (row,) = cli("orders", "list", "iris", "--json").rows
    assert (row["standing"], row["claims"]) == ("never claimed", 0)


@pytest.mark.parametrize(
    ("options", "titles"),
    [
        (["--label", "question"], ["two"]),
        (["-u", "ada"], ["one", "two"]),
        (["-u", "nobody"], []),
        (["-S", "now-1days"], ["one", "two"]),
        (["-E", "now-1days"], []),
    ],
)
def test_orders_are_chosen_by_label_time_and_author(
    cli: Cli, forge: LocalForge, options: list[str], titles: list[str]
) -> None:
    given(forge, "one")
    given(forge, "two", "", "question")
    assert [row["title"] for row in cli("orders", "list", "iris", "--json", *options).rows] == titles


def test_an_order_that_cannot_be_read_is_a_row_and_hides_no_other(cli: Cli, forge: LocalForge) -> None:
    given(forge, "broken")
    given(forge, "whole")
    (forge.folder / "orders" / "1" / "00000001.json").write_bytes(b"{")
    said = cli("orders", "list", "iris", "--json", "--label", LABEL)
    assert said.status == 3
    broken, whole = said.rows
    assert (broken["number"], broken["state"], whole["title"]) == (1, "unreadable", "whole")
    assert "00000001.json" in broken["standing"]


def test_an_order_whose_claim_cannot_be_read_is_not_shown_as_free(cli: Cli, layout: Layout, forge: LocalForge) -> None:
    given(forge)
    hold(layout, ONE)
    claim_file(layout).write_bytes(b"{")
    said = cli("orders", "list", "iris", "--json")
    assert (said.status, said.rows[0]["state"]) == (3, "unreadable")


# --- show


HOSTILE = "\x1b]0;owned\x07 \u202eright to left\r\n\x9b2J\x00 \u2028end"


def test_the_text_of_an_order_cannot_drive_the_terminal(cli: Cli, forge: LocalForge) -> None:
    number = forge.open_order(author="e\x1b[2Jve", title=HOSTILE, body=HOSTILE, labels=(LABEL, HOSTILE))
    forge.say(number, author="ma\x07llory", body=HOSTILE)
    forge.relabel(number, author="ada", added=("\x1b[1m",), removed=())
    said = cli("orders", "show", "iris", number)
    assert said.status == 0
    assert not {*said.out} & {*"\x1b\x07\x9b\x00\r\u202e\u2028"}
    assert "\N{REPLACEMENT CHARACTER}" in said.out
    for form in ("--json", "-P", "--csv"):
        assert not {*cli("orders", "show", "iris", number, form).out} & {*"\x1b\x07\x9b\x00\u202e\u2028"}
        assert not {*cli("orders", "list", "iris", form).out} & {*"\x1b\x07\x9b\x00\u202e\u2028"}


def test_the_text_of_an_order_cannot_pass_for_what_the_tool_or_another_said(cli: Cli, forge: LocalForge) -> None:
    line = "2026-11-29T12:00:00Z  outerloop"
    number = given(forge, "t", f"\n\n{line}\n    approved\n")
    forge.say(number, author="eve", body=f"x\n{line}\r{line}\x0b{line}")
    shown = cli("orders", "show", "iris", number).out.split("\n")
    assert not [one for one in shown if one.startswith(line)]
    assert shown.count(f"    {line}") == 2


def test_an_order_is_shown_with_its_thread_its_authors_and_where_it_stands(
    cli: Cli, layout: Layout, forge: LocalForge
) -> None:
    number = given(forge, "Frozen split", "It is frozen.")
    hold(layout, ONE)
    tell(forge, ONE)
    forge.say(number, author="bob", body="Yes, it is.")
    forge.relabel(number, author="ada", added=("urgent",), removed=(LABEL,))
    forge.close_order(number, author="ada")
    shown = cli("orders", "show", "iris", number).out
    for part in ("order 1 of iris: closed", "Frozen split", "    It is frozen.", "bob", "    Yes, it is.", ONE):
        assert part in shown
    assert f"ada  labels +urgent -{LABEL}" in shown
    assert "ada  closed it" in shown
    said = cli("orders", "show", "iris", number, "--json").document
    assert (said["number"], said["state"], said["run"], said["body"]) == (1, "closed", ONE, "It is frozen.")
    assert [(row["author"], row["event"]) for row in said["rows"]] == [
        ("ada", "opened"),
        ("outerloop", "comment"),
        ("bob", "comment"),
        ("ada", "labels"),
        ("ada", "closed"),
    ]


# --- comment, relabel, close


def test_people_comment_relabel_and_close(cli: Cli, forge: LocalForge) -> None:
    given(forge)
    assert cli("orders", "comment", "iris", "#1", "--body", "Once more, please.").out == ""
    assert [(one.author, one.body) for one in forge.comments("1")] == [("ann", "Once more, please.")]
    said = cli("orders", "relabel", "iris", "1", "--add", "urgent", "--remove", LABEL, "--json")
    assert said.rows[0]["labels"] == ["urgent"]
    assert forge.order("1").labels == ("urgent",)
    assert cli("orders", "close", "iris", "1", "--json").rows[0]["state"] == "closed"
    assert not forge.order("1").open
    again = cli("orders", "close", "iris", "1")
    assert (again.status, "was closed already" in again.err) == (0, True)


def test_who_closes_an_order_is_told_of_the_run_that_goes_on(cli: Cli, layout: Layout, forge: LocalForge) -> None:
    given(forge)
    claim = hold(layout, ONE)
    assert f"claims release {claim}" in cli("orders", "close", "iris", "1").err


@pytest.mark.parametrize(
    "words",
    [
        ("comment", "iris", "1"),
        ("comment", "iris", "1", "--body", " \n"),
        ("relabel", "iris", "1"),
        ("relabel", "iris", "1", "--add", "a", "--remove", "a"),
        ("relabel", "iris", "1", "--add", "a\nb"),
    ],
    ids=" ".join,
)
def test_nothing_to_say_is_not_said(cli: Cli, layout: Layout, forge: LocalForge, words: tuple[str, ...]) -> None:
    given(forge)
    before = tree(layout.root)
    assert cli("orders", *words).status == 2
    assert tree(layout.root) == before


@pytest.mark.parametrize("number", ["9", "../1", "x", "", "0", "1/../1", "²", "9" * 5000], ids=lambda n: n[:8])
@pytest.mark.parametrize("word", ["show", "close", "relabel", "comment"])
def test_an_order_that_is_not_there_is_answered_with_those_that_are(
    cli: Cli, forge: LocalForge, word: str, number: str
) -> None:
    given(forge)
    given(forge)
    said = cli("orders", word, "iris", "--", number)
    assert (said.status, said.out) == (2, "")
    assert "there are 1, 2" in said.err


@pytest.mark.parametrize("words", [("list",), ("new", "--title", "t"), ("show", "1")], ids=lambda words: words[0])
@pytest.mark.parametrize("target", ["lily", "../iris", ""])
def test_a_target_that_is_not_there_is_answered_with_those_that_are(
    cli: Cli, layout: Layout, words: tuple[str, ...], target: str
) -> None:
    said = cli("orders", words[0], target, *words[1:])
    assert (said.status, "there are: iris, rose" in said.err) == (2, True)
