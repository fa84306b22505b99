"""What is known of a target's orders: read again only when the forge says that something about one has changed."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import ClassVar

from pydantic import AwareDatetime, Field

from outerloop_hpc import fsio
from outerloop_hpc.documents import Document, Value, load
from outerloop_hpc.errors import Fault, OuterloopError
from outerloop_hpc.forge.markers import Standing, standing
from outerloop_hpc.forge.port import Forge, Order

_log = logging.getLogger(__name__)

#: Times of a forge may be of whole seconds, and its clock is not ours (by 5 min at most, as everywhere): what was
#: touched just now is read again.
_SETTLED = timedelta(minutes=6)
_FIRST_PAUSE = timedelta(minutes=1)
_LONGEST_PAUSE = timedelta(hours=1)


class Known(Value):
    """One order as it was when it was last read.

    Attributes:
        touched_at: what the forge said of it then. looked_at: when that was.
        failures: how often in a row it could not be read. again: when that is tried next.
    """

    touched_at: AwareDatetime
    looked_at: AwareDatetime
    standing: Standing | None = None
    failures: int = 0
    again: AwareDatetime | None = None


class Book(Document):
    """``tick/orders-<target>.json``: a cache, which may be deleted at any time; of one identity and list of authors."""

    name: ClassVar[str] = "orders"

    identity: str
    authors: tuple[str, ...] = ()
    orders: dict[str, Known] = Field(default_factory=dict)


class NotYet(OuterloopError):  # noqa: N818 - states the finding
    """An order that could not be read is left alone for a while."""


class OrderBook:
    """Reads orders through the cache; ``close`` keeps it for the next pass.

    Args:
        path: the cache; None to keep nothing.
        authors: whose word counts; empty for all that the forge vouches for.
    """

    def __init__(self, path: Path | None, forge: Forge, authors: Sequence[str], now: datetime) -> None:
        self._path, self._forge, self._now = path, forge, now
        self._authors = tuple(authors)
        self._before = _read(path, forge.identity, self._authors)
        self._seen: dict[str, Known] = {}

    def standing(self, order: Order) -> Standing:
        """Return what an order's thread says about it; within one pass it is read once.

        Raises:
            NotYet: it could not be read a while ago, and the pause after that is not over.
            OuterloopError: it cannot be read now.
        """
        now = self._seen.get(order.order_id)
        if now is not None and now.standing is not None:
            return now.standing
        known = self._before.get(order.order_id)
        if known is not None and known.again is not None and known.again > self._now:
            self._seen[order.order_id] = known
            raise NotYet(f"order {order.order_id} could not be read {known.failures} times; next at {known.again}")
        if known is not None and known.standing is not None and self._holds(order, known):
            self._seen[order.order_id] = known
            return known.standing
        try:
            found = standing(self._forge.comments(order.order_id), self._forge.identity, self._authors)
        except OuterloopError:
            failures = 1 if known is None else known.failures + 1
            pause = min(_FIRST_PAUSE * 2 ** min(failures - 1, 10), _LONGEST_PAUSE)
            self._seen[order.order_id] = Known(
                touched_at=order.touched_at, looked_at=self._now, failures=failures, again=self._now + pause
            )
            raise
        self._seen[order.order_id] = Known(touched_at=order.touched_at, looked_at=self._now, standing=found)
        return found

    def close(self) -> None:
        """Keep what is known of the orders that were asked for, and of those that this pass did not come to."""
        every = {**self._before, **self._seen}
        if self._path is not None and every != self._before:
            fsio.make_folder(self._path.parent)
            book = Book(identity=self._forge.identity, authors=self._authors, orders=every)
            fsio.replace(self._path, book.encoded())

    def forget_others(self, orders: Sequence[Order]) -> None:
        """Drop what is known of orders that are not there any more."""
        there = {order.order_id for order in orders}
        self._before = {order_id: known for order_id, known in self._before.items() if order_id in there}

    @staticmethod
    def _holds(order: Order, known: Known) -> bool:
        return known.touched_at == order.touched_at and known.looked_at - known.touched_at > _SETTLED


def _read(path: Path | None, identity: str, authors: tuple[str, ...]) -> dict[str, Known]:
    if path is None:
        return {}
    try:
        book: Book = load(Book, path)
    except FileNotFoundError:
        return {}
    except (Fault, OSError) as fault:
        _log.warning("%s; every order is read again", fault)
        return {}
    return dict(book.orders) if (book.identity, book.authors) == (identity, authors) else {}
