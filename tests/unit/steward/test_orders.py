"""The book of orders: nothing said is missed, nothing is read twice for nothing, what fails is left a while."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outerloop_hpc.errors import ConfigError, Fault, TryLater
from outerloop_hpc.forge.markers import Marker
from outerloop_hpc.forge.port import Comment, NotThere, Order
from outerloop_hpc.steward.orders import NotYet, OrderBook
from tests.unit.engine.made import T0
from tests.unit.engine.memoryforge import MemoryForge
from tests.unit.steward.made import RUN, minutes, order

pytestmark = pytest.mark.unit

SECOND = timedelta(seconds=1)


@dataclass
class Talk(MemoryForge):
    """A forge with one order, whose times are whole seconds, as those of the web are."""

    words: list[Comment] = field(default_factory=list)
    error: Exception | None = None

    def say(self, body: str, at: datetime, author: str = "ada", *, trusted: bool = True) -> None:
        at = at.replace(microsecond=0)
        self.words.append(Comment(str(len(self.words)), author, at, body, trusted))

    @property
    def known(self) -> Order:
        return order(touched_at=max((said.at for said in self.words), default=T0))

    def comments(self, order_id: str, since: datetime | None = None) -> Sequence[Comment]:
        self._called("comments")
        if self.error is not None:
            raise self.error
        return list(self.words)


def book(folder: Path, forge: MemoryForge, now: datetime, authors: Sequence[str] = ()) -> OrderBook:
    return OrderBook(folder / "book.json", forge, authors, now)


def look(folder: Path, forge: Talk, now: datetime) -> int:
    """Read the order once, and return how many comments were known of."""
    one = book(folder, forge, now)
    found = one.standing(forge.known)
    one.close()
    return found.attempts


@settings(max_examples=60)
@given(st.lists(st.tuples(st.floats(0, 600), st.booleans()), min_size=1, max_size=12))
def test_a_comment_right_after_the_look_is_never_missed(
    tmp_path_factory: pytest.TempPathFactory, story: list[tuple[float, bool]]
) -> None:
    """Times of a forge are whole seconds: what is said in the second of the look has the time that was known then."""
    folder, forge, now, attempt = tmp_path_factory.mktemp("book"), Talk(), T0 + minutes(10), 0
    for seconds, speaks in story:
        now += timedelta(seconds=seconds)
        if speaks:
            attempt += 1
            forge.say(Marker(claim="a" * 16, run=RUN, attempt=attempt).line(), now, author="outerloop")
            forge.words = forge.words[-1:]
        assert look(folder, forge, now) == attempt


def test_what_has_settled_is_read_once(tmp_path: Path) -> None:
    forge = Talk()
    for minute in range(7, 12):
        look(tmp_path, forge, T0 + minutes(minute))
    assert forge.calls == ["comments"]


def test_what_was_touched_just_now_is_read_again(tmp_path: Path) -> None:
    forge = Talk()
    for second in (1, 30, 360, 361, 362, 390):
        look(tmp_path, forge, T0 + second * SECOND)
    assert len(forge.calls) == 4, "at 361 s it was settled, and so it holds from then on"


@pytest.mark.parametrize("error", [TryLater("502"), Fault("broken"), NotThere("gone"), ConfigError("odd")])
def test_an_order_that_fails_is_left_alone_for_longer_and_longer(tmp_path: Path, error: Exception) -> None:
    forge, asked = Talk(error=error), []
    for minute in range(400):
        one = book(tmp_path, forge, T0 + minutes(minute))
        try:
            one.standing(forge.known)
        except NotYet:
            pass
        except type(error):
            asked.append(minute)
        one.close()
    assert asked[:7] == [0, 1, 3, 7, 15, 31, 63]
    assert all(later - earlier == 60 for earlier, later in pairwise(asked[6:])), "an hour at most"


def test_one_success_ends_the_pauses(tmp_path: Path) -> None:
    forge = Talk(error=TryLater("502"))
    for minute in (0, 1, 3):
        one = book(tmp_path, forge, T0 + minutes(minute))
        with pytest.raises(TryLater):
            one.standing(forge.known)
        one.close()
    forge.error = None
    look(tmp_path, forge, T0 + minutes(7))
    forge.say("hello", T0 + minutes(8))
    forge.error = TryLater("502")
    one = book(tmp_path, forge, T0 + minutes(9))
    with pytest.raises(TryLater):
        one.standing(forge.known)
    one.close()
    forge.error = None
    assert look(tmp_path, forge, T0 + minutes(10)) == 0, "the next pause is a minute again"


@pytest.mark.parametrize("harm", ["deleted", "garbage", "empty", "newer"])
def test_a_book_that_is_lost_only_costs_reading(tmp_path: Path, harm: str) -> None:
    forge, path = Talk(), tmp_path / "book.json"
    look(tmp_path, forge, T0 + minutes(7))
    if harm == "deleted":
        path.unlink()
    else:
        path.write_bytes({"garbage": b"\xff{", "empty": b"", "newer": b'{"schema": "orders/9"}'}[harm])
    look(tmp_path, forge, T0 + minutes(8))
    look(tmp_path, forge, T0 + minutes(9))
    assert len(forge.calls) == 2


def test_a_book_of_another_identity_or_other_authors_is_not_believed(tmp_path: Path) -> None:
    forge = Talk()
    forge.say(Marker(claim="a" * 16, run=RUN, attempt=3).line(), T0, author="outerloop")
    assert look(tmp_path, forge, T0 + minutes(7)) == 3
    forge.identity = "renamed"
    assert look(tmp_path, forge, T0 + minutes(6)) == 0
    one = book(tmp_path, forge, T0 + minutes(7), authors=("ada",))
    one.standing(forge.known)
    assert len(forge.calls) == 3


def test_an_empty_identity_reads_nothing(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="identity is empty"):
        book(tmp_path, Talk(identity=""), T0).standing(order())


def test_a_pass_that_only_looks_keeps_nothing(tmp_path: Path) -> None:
    one = OrderBook(None, Talk(), (), T0)
    one.standing(order())
    one.close()
    assert list(tmp_path.iterdir()) == []


def test_orders_that_are_gone_are_forgotten_and_others_kept(tmp_path: Path) -> None:
    forge = Talk()
    one = book(tmp_path, forge, T0 + minutes(7))
    for name in ("7", "8"):
        one.standing(order(order_id=name))
    one.close()
    two = book(tmp_path, forge, T0 + minutes(8))
    two.forget_others([order(order_id="8")])
    two.standing(order(order_id="8"))
    two.standing(order(order_id="9"))
    two.close()
    assert '"7"' not in (tmp_path / "book.json").read_text().replace('"comment_id":"7"', "")
    assert len(forge.calls) == 3
