"""Where steward runs come from: the oldest order on a target's forge that can be taken now."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial

from outerloop_hpc.agents.pauses import paused_until
from outerloop_hpc.agents.refusals import Outage
from outerloop_hpc.documents import load
from outerloop_hpc.engine import runs
from outerloop_hpc.engine.changes import Forges
from outerloop_hpc.engine.claims import ClaimEnded, ended_path
from outerloop_hpc.engine.lane import Order, Remark, Trouble
from outerloop_hpc.engine.layout import parse_run_id
from outerloop_hpc.engine.targets import Sighted, Targets
from outerloop_hpc.errors import ConfigError, Fault, OuterloopError, TryLater, UsageError
from outerloop_hpc.forge import port
from outerloop_hpc.forge.markers import Standing, counts
from outerloop_hpc.forge.markers import standing as read_standing
from outerloop_hpc.steward import commission
from outerloop_hpc.steward.orders import NotYet, OrderBook
from outerloop_hpc.steward.qualify import Decline, Pass, Rules, Take, Verdict, qualify
from outerloop_hpc.steward.work import KIND, ROLE, order_key

_log = logging.getLogger(__name__)

#: One order whose thread does not come is that order's trouble; after so many the forge itself is away.
_UNANSWERED = 2
_NOBODY = Decline(
    "no-steward",
    "This order cannot be taken: the target's contract has no `steward` section, so nobody may change its evaluation.",
    "the contract has no steward section",
)
#: Ends after which an order is taken again only when a person wants it.
_SETTLED = frozenset({"published", "answered"})


class StewardLane:
    """Takes orders, oldest first, while the role can work and the target has room.

    Args:
        keep: whether what is known of orders is kept for the next pass; a dry run changes nothing.
    """

    name = KIND

    def __init__(self, targets: Targets, forges: Forges, *, keep: bool = True) -> None:
        self._targets, self._forges, self._keep = targets, forges, keep
        self._settings, self._layout = targets.settings, targets.layout
        #: Orders that a dry run would take: nothing of them can be seen in the state folder.
        self._imagined = 0

    def targets(self) -> Sequence[str]:
        """Return every configured target; none without a steward's command."""
        return self._targets.names if self._settings.steward.command else ()

    def orders(self, target: str) -> Iterator[Order | Remark | Trouble]:
        """Yield the orders that can be taken, and what is to be said on those that cannot.

        Raises:
            ConfigError: the forge's identity is empty, or the contract does not say what it must.
            UsageError: the target or its repository is not there.
            TryLater: repository or forge do not answer.
        """
        forge = self._forges(target)
        if forge is None:
            return
        if not forge.identity:
            raise ConfigError(f"{target}: the forge's identity is empty; with that no order would seem held")
        now, self._imagined = self._targets.clock.now(), 0
        # Looked at under a pause too: a contract that nobody looks at would pass for a healthy one.
        seen = self._targets.look(target)
        if until := self._paused(now):
            _log.info("%s: the %s role pauses until %s", target, ROLE, until)
            return
        path = self._layout.tick / f"orders-{target}.json"
        book = OrderBook(path if self._keep else None, forge, self._settings.steward.authors, now)
        try:
            yield from self._judged(forge, seen, book, now)
        finally:
            book.close()

    def _judged(
        self, forge: port.Forge, seen: Sighted, book: OrderBook, now: datetime
    ) -> Iterator[Order | Remark | Trouble]:
        given, target = self._settings.steward, seen.target
        rules = Rules(forge.identity, given.authors, given.attempts, given.outages)
        names = [benchmark.name for benchmark in seen.loaded.contract.benchmarks]
        there = forge.orders(given.label)
        book.forget_others(there)
        ready, unanswered = False, 0
        for order in there:
            if order.fault:
                yield Trouble(target, f"order {order.order_id}", Fault(order.fault))
                continue
            try:
                verdict = qualify(order, book.standing(order), names, rules, now)
                if seen.loaded.contract.steward is None and isinstance(verdict, Take):
                    verdict = _NOBODY
                wish = self._wish(verdict, seen, forge, order, book)
            except NotYet as pause:
                _log.info("%s: %s", target, pause)
                continue
            except OuterloopError as error:
                unanswered += isinstance(error, TryLater)
                if unanswered >= _UNANSWERED:
                    raise
                yield Trouble(target, f"order {order.order_id}", error)
                continue
            if isinstance(wish, Order) and not ready:
                try:
                    commission.check_role(self._settings.steward)
                except ConfigError as error:
                    # The same for every order, so it is said once; and none is claimed for it.
                    yield Trouble(target, f"{ROLE} role", error)
                    return
                ready = True
            if wish is not None:
                yield wish

    def _wish(
        self, verdict: Verdict, seen: Sighted, forge: port.Forge, order: port.Order, book: OrderBook
    ) -> Order | Remark | None:
        target, standing = seen.target, book.standing(order)
        match verdict:
            case Take(benchmark):
                if (live := self._live(target)) >= self._settings.steward.live:
                    _log.info("%s: order %s waits; %d steward runs are live", target, order.order_id, live)
                    return None
                if (attempt := self._attempt(target, order, standing, forge)) is None:
                    return None
                why = f"order {order.order_id} on {benchmark}, attempt {attempt}"
                make = partial(commission.spec, self._targets, seen, forge, order, attempt, benchmark)
                self._imagined += not self._keep
                return Order(target, order_key(order.order_id, attempt), why, make)
            case Decline(key, text, reason):
                said = f"{ROLE}/{key}" in standing.said
                return None if said else Remark(target, order.order_id, f"{ROLE}/{key}", text, reason)
            case Pass(reason):
                _log.info("%s: order %s: %s", target, order.order_id, reason)
        return None

    def _attempt(self, target: str, order: port.Order, standing: Standing, forge: port.Forge) -> int | None:
        """Number the next attempt; None while the end of an earlier one has not been told on the order.

        An attempt whose claim never got onto the order is counted by its end here. Mostly it means that this pass has
        been asleep since it read the order, so that is read again: what happened meanwhile is the next pass's to judge.

        Raises:
            Fault: that cannot be read; the order stays held.
            TryLater: the forge does not answer.
        """
        order_id, live = order.order_id, set(runs.live(self._layout))
        attempt, last = standing.attempts + 1, None
        while (ended := self._ended(target, order_id, attempt)) is not None:
            if ended.run in live:
                _log.info("%s: order %s: run %s has not told its end yet", target, order_id, ended.run)
                return None
            attempt, last = attempt + 1, ended
        if last is None or self._goes_on(forge, order, standing, last):
            return attempt
        _log.info("%s: order %s: its thread does not show yet how attempt %d ended", target, order_id, attempt - 1)
        return None

    def _ended(self, target: str, order_id: str, attempt: int) -> ClaimEnded | None:
        try:
            ended: ClaimEnded = load(ClaimEnded, self._layout.root / ended_path(target, order_key(order_id, attempt)))
        except FileNotFoundError:
            return None
        return ended

    def _goes_on(self, forge: port.Forge, order: port.Order, standing: Standing, last: ClaimEnded) -> bool:
        """Whether an order may be taken though its thread lacks how its last attempt ended.

        Not while the thread goes on, and not when that attempt settled the order and nobody has spoken or relabelled
        since: what the tool said there may have been removed, or be of another name of its own.
        """
        authors, comments = self._settings.steward.authors, forge.comments(order.order_id)
        if read_standing(comments, forge.identity, authors) != standing:
            return False
        if last.reason not in _SETTLED:
            return True
        spoken = any(one.at > last.at and counts(one, forge.identity, authors) for one in comments)
        return spoken or (order.relabelled_at is not None and order.relabelled_at > last.at)

    def _live(self, target: str) -> int:
        """Count the steward runs of a target that are under way, or claimed and in the making.

        One that has its report has ended: what it still waits for (its order cannot be written, accounting is late)
        is nobody else's trouble.
        """
        count = self._imagined
        # In the order in which a maker goes on: one that gets from here to there meanwhile is seen in one of them.
        for name in {*runs.claimed_unmade(self._layout, KIND, target), *runs.live(self._layout)}:
            with suppress(UsageError):
                parsed = parse_run_id(name)
                ours = (parsed.kind, parsed.target) == (KIND, target)
                count += ours and not self._layout.run(name).report.exists()
        return count

    def _paused(self, now: datetime) -> datetime | None:
        given = self._settings.steward
        pauses: dict[Outage, timedelta] = {
            "refused": timedelta(minutes=given.outage_minutes),
            "throttled": timedelta(minutes=given.throttle_minutes),
        }
        return paused_until(self._layout.outages / ROLE, pauses, now, tidy=self._keep)
