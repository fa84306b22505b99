"""What went wrong between the tool and its forge elsewhere: markers, calls that fail, ledgers, branches, names."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from outerloop_hpc.clock import SystemClock
from outerloop_hpc.errors import TryLater
from outerloop_hpc.forge.local import LocalForge
from outerloop_hpc.forge.port import Comment, Order
from outerloop_hpc.steward.orders import OrderBook
from tests.local.scratch import commit, git
from tests.local.site import wait_for
from tests.local.steward.lane import CONTRACT, MEND, NO_CHANGE, TARGET, Lane
from tests.unit.engine.made import T0

pytestmark = [pytest.mark.local, pytest.mark.timeout(600)]

#: Finds the marker of its own claim on its order, and reports it as ended in the way that gives attempts back.
QUOTE = """\
order = Path({folder!r})
first = json.loads((order / "00000002.json").read_text())["body"].splitlines()[0]
quoted = first.replace("claimed", "ended:outage")
report = quoted + "\\n\\n```\\n" + quoted + "\\n<!-- outerloop:claim-released -->\\n<!-- outerloop:outage-release -->"
"""


@pytest.mark.parametrize("ending", ["published", "failed"])
def test_a_report_that_quotes_the_marker_of_its_own_end_frees_nothing_and_refunds_nothing(
    swift: Lane, ending: str
) -> None:
    """Row 6: session text was posted under the tool's name as it was: the quoted marker freed the claim."""
    text = MEND.replace('"The bonus is gone."', "report") if ending == "published" else 'end(3, "failed", report)\n'
    order = swift.order()
    swift.script(QUOTE.format(folder=str(swift.folder(order))) + text)
    if ending == "published":
        swift.until_open()
        for _ in range(3):
            swift.tick()
        assert swift.markers(order) == ["claimed"]
        assert "ended:outage" in swift.comments(order)[1].body, "it is shown, as text"
    else:
        tale = ["claimed", "ended:failed"] * 3
        swift.until_told(order, *tale)
        swift.tick()
        assert (swift.standing(order).outages, swift.standing(order).failed) == (0, 3)
    assert len(swift.sessions()) == (1 if ending == "published" else 3)


def test_an_order_that_cannot_be_read_is_said_and_stops_no_other(swift: Lane) -> None:
    """Row 14: one failing call ended the lane for the tick, and the same order stayed first in line for ever."""
    swift.script(NO_CHANGE)
    broken, other = swift.order("Broken"), swift.order("Another")
    (swift.folder(broken) / "00000002.json").touch()
    ended = swift.site.cli("tick", expect=(4,))
    assert f"order {broken}" in ended.err
    assert "00000002.json" in ended.err
    swift.until_told(other, "claimed", "ended:answered")
    (swift.folder(broken) / "00000002.json").unlink()
    swift.until_told(broken, "claimed", "ended:answered")


def test_a_post_that_fails_holds_up_its_own_run_alone(swift: Lane) -> None:
    """Row 14: the same for what a run has to say."""
    swift.script(swift.gated(NO_CHANGE))
    broken = swift.order("Broken")
    swift.tick()
    swift.until_bought()
    (swift.folder(broken) / "00000003.json").touch()
    swift.gate().touch()
    other = swift.order("Another")
    swift.until_told(other, "claimed", "ended:answered")
    (swift.folder(broken) / "00000003.json").unlink()
    swift.until_told(broken, "claimed", "ended:answered")
    assert len(swift.sessions()) == 2


class Deaf(LocalForge):
    """A forge on which the thread of one order never comes, and which counts what it is asked."""

    deaf: str = ""
    calls: int = 0

    def orders(self, label: str) -> Sequence[Order]:
        self.calls += 1
        return super().orders(label)

    def comments(self, order_id: str, since: datetime | None = None) -> Sequence[Comment]:
        self.calls += 1
        if order_id == self.deaf:
            raise TryLater("502 Bad Gateway")
        return super().comments(order_id, since)


class Frozen(SystemClock):
    def now(self) -> datetime:
        return T0


def forge_with(folder: Path, count: int) -> Deaf:
    forge = Deaf(folder, identity="outerloop", clock=Frozen())
    for number in range(count):
        forge.open_order(author="ada", title=f"Order {number}", body="benchmark: score", labels=("x",))
    return forge


def read_all(book: OrderBook, orders: Sequence[Order]) -> list[str]:
    """Return the orders whose threads could not be read."""
    failed = []
    for order in orders:
        try:
            book.standing(order)
        except Exception:  # noqa: BLE001 - counted
            failed.append(order.order_id)
    book.close()
    return failed


def test_what_has_not_changed_is_not_read_again(tmp_path: Path) -> None:
    """Row 23: one listing of comments for each issue, twice a tick: 602 calls at 300 issues."""
    forge, path, now = forge_with(tmp_path / "forge", 300), tmp_path / "book.json", T0 + timedelta(hours=1)
    calls = []
    for tick in range(3):
        forge.calls = 0
        read_all(OrderBook(path, forge, (), now + timedelta(minutes=5 * tick)), forge.orders("x"))
        calls.append(forge.calls)
    assert calls == [301, 1, 1]
    forge.say("7", author="ada", body="hello")
    forge.calls = 0
    read_all(OrderBook(path, forge, (), now + timedelta(minutes=30)), forge.orders("x"))
    assert forge.calls == 2


def test_an_order_whose_thread_does_not_come_backs_off(tmp_path: Path) -> None:
    """Row 14: and it is not asked for in every tick."""
    forge, path, now = forge_with(tmp_path / "forge", 3), tmp_path / "book.json", T0 + timedelta(hours=1)
    forge.deaf = "1"
    asked = []
    for minute in range(20):
        forge.calls = 0
        assert read_all(OrderBook(path, forge, (), now + timedelta(minutes=minute)), forge.orders("x")) == ["1"]
        asked.append(forge.calls)
    assert asked[0] == 4
    assert sum(asked[1:]) - 19 == 4, "after 1, 2, 4 and 8 minutes"


def test_the_oldest_order_is_taken_first_however_many_newer_ones_there_are(swift: Lane) -> None:
    """Row 24: three pages, newest first: two old orders behind 498 newer items were never seen."""
    swift.script(swift.gated(NO_CHANGE))
    swift.order("Not for us", label="question")
    first = swift.order("The oldest")
    for number in range(12):
        swift.order(f"Newer {number}")
        swift.order(f"Noise {number}", label="question")
    swift.tick()
    assert swift.markers(first) == ["claimed"]
    wanted = [row["reason"] for row in swift.site.rows("tick", "--dry-run") if "order" in str(row["reason"])]
    assert len(swift.stewards()) == 1
    assert not any("order 1 " in str(reason) for reason in wanted)


def test_a_ledger_that_cannot_be_read_is_neither_emptied_nor_worked_on(swift: Lane) -> None:
    """Row 20: a corrupt ledger read as empty, and the next write dropped every other row."""
    source = swift.site.source()
    ledger = source / "results" / "leader.json"
    ledger.parent.mkdir()
    ledger.write_bytes(b'{"schema": "ledger/1", "rows": [')
    commit(source)
    order = swift.order()
    said = swift.site.cli("tick", expect=(4,)).err
    assert "results/leader.json" in said
    assert (swift.markers(order), swift.sessions()) == ([], [])
    ledger.rename(source / "results" / "elsewhere.json")
    ledger.symlink_to("elsewhere.json")
    commit(source)
    assert "not a regular file" in swift.site.cli("tick", expect=(4,)).err
    assert (swift.markers(order), swift.sessions()) == ([], [])
    ledger.unlink()
    row = {
        "benchmark": "other", "metric": "other", "direction": "max", "baseline": 0.5, "best": 0.75,
        "best_run": "long-ago", "updated": "2026-01-01T00:00:00+00:00", "run_seed": None,
    }  # fmt: skip
    ledger.write_text(json.dumps({"schema": "ledger/1", "rows": [row]}))
    commit(source)
    change = swift.until_open()
    swift.forge.merge(change.change_id, author="ada", repository=str(source))
    rows = {one["benchmark"]: one for one in json.loads(ledger.read_bytes())["rows"]}
    assert rows["other"] == row
    assert rows["score"]["best"] >= 1000


def test_a_change_that_was_pushed_and_not_opened_is_found_again(swift: Lane) -> None:
    """Row 21: the branch was orphaned, and a retry made another one."""
    assert swift.site.driver is not None
    order = swift.order()
    branches = swift.site.state / "forge" / TARGET / "repository.git"

    def died() -> bool:
        assert swift.site.driver is not None
        how = {"at": f"/forge/{TARGET}/changes/", "when": "before"}
        return swift.site.driver.order("--config", str(swift.site.config), "tick", **how).status < 0

    wait_for(died, "a pass died between the push and the change")
    pushed = git(branches, "for-each-ref", "refs/heads/feat")
    assert "feat/steward/" in pushed
    assert swift.changes() == []
    swift.until_open()
    assert git(branches, "for-each-ref", "refs/heads/feat") == pushed
    assert (len(swift.changes()), len(swift.sessions()), swift.markers(order)) == (1, 1, ["claimed"])


NAMES = {
    "tsp": "tsp is saturated",
    "tsp-large": "tsp-large is saturated, and that alone",
    "line": "reach a better score on tsp, and tsp-large too\n\nbenchmark: tsp-large\n",
}


def test_names_match_as_whole_words_a_line_wins_and_doubt_is_answered(swift: Lane) -> None:
    """Row 25: with ``tsp`` and ``tsp-large`` the second could never be ordered alone; prose selected ``reach``."""
    source = swift.site.source()
    lines = "".join(
        f"  - {{name: {name}, command: python3 other.py, metric: other, direction: max, eval_minutes: 1}}\n"
        for name in ("tsp", "tsp-large", "reach", "other")
    )
    head, _, tail = CONTRACT.partition("benchmarks:\n")
    rest = "".join(line for line in tail.splitlines(keepends=True) if not line.startswith("  - "))
    (source / ".outerloop.yaml").write_text(f"{head}benchmarks:\n{lines}{rest}")
    commit(source)
    swift.configure({"live": 10})
    orders = {name: swift.order("An order", body=body) for name, body in NAMES.items()}
    doubtful = swift.order("Please reach a better score on tsp-large", body="as the title says")
    rows = [str(row["reason"]) for row in swift.site.rows("tick", "--dry-run")]
    for name, order in orders.items():
        wanted = "tsp-large" if name == "line" else name
        assert f"order {order} on {wanted}, attempt 1" in rows
    assert not any(f"order {doubtful} on" in row for row in rows)
    swift.tick()
    (said,) = swift.comments(doubtful)
    assert all(f"`{name}`" in said.body for name in ("tsp-large", "reach", "tsp"))
    assert "benchmark: NAME" in said.body
    swift.tick()
    assert len(swift.comments(doubtful)) == 1
