"""Serve the lanes: targets and lanes take turns, one that fails stops no other, and what is wanted becomes runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

from outerloop_hpc import fsio
from outerloop_hpc.engine import alarm, runs
from outerloop_hpc.engine.changes import Forges
from outerloop_hpc.engine.lane import Lane, Order, OverBudget, Remark, Trouble
from outerloop_hpc.engine.layout import Layout
from outerloop_hpc.engine.spec import RunSpec
from outerloop_hpc.errors import ConfigError, TryLater

#: Does something about one order or target; whatever goes wrong is noted and stops no other.
Isolate = Callable[[str, Callable[[], None]], None]
Say = Callable[[str, Order | Remark, str, str, str], None]


@dataclass(frozen=True, slots=True)
class Counter:
    """Where the lanes are served: what a pass hands over.

    Attributes:
        held: says why nothing may be launched now; empty when something may.
        begin: starts the run of a specification.
    """

    layout: Layout
    forges: Forges
    now: datetime
    dry_run: bool
    held: Callable[[], str]
    begin: Callable[[RunSpec], None]
    isolate: Isolate
    say: Say


@dataclass
class _Queue:
    """What one lane wants for one target. ``unknown``: something else than the contract kept it from being asked."""

    lane: Lane
    target: str
    trouble: str = ""
    unknown: bool = False
    wanted: Iterator[Order | Remark | Trouble] | None = None
    done: bool = False

    @property
    def name(self) -> str:
        return f"{self.lane.name} {self.target}"

    def next(self) -> Order | Remark | Trouble | None:
        """Return the next wish; ``None`` when there is none. A lane that raises is asked no more in this pass."""
        self.done = True
        try:
            if self.wanted is None:
                self.wanted = iter(self.lane.orders(self.target))
            found = next(self.wanted, None)
        except ConfigError as error:
            self.trouble = str(error)
            raise
        except OSError as error:
            self.unknown = True
            raise TryLater(f"{error}; the next pass tries again") from error
        except Exception:
            self.unknown = True
            raise
        self.done = found is None
        return found


@dataclass
class Service:
    """One pass's service of all lanes.

    Attributes:
        troubles: contracts that do not say what they must, by target.
        healthy: targets for which a lane was served to its end, so that their contracts can be used.
    """

    counter: Counter
    lanes: Sequence[Lane]
    troubles: dict[str, str] = field(default_factory=dict)
    healthy: set[str] = field(default_factory=set)
    served: str = ""

    def run(self) -> None:
        """Take from each lane and target in turn, beginning after the one that was served last."""
        queues = self._in_turn()
        while queues:
            for queue in queues:
                self.counter.isolate(queue.name, partial(self._take, queue))
            self.troubles |= {queue.target: queue.trouble for queue in queues if queue.trouble}
            over = (queue for queue in queues if queue.done and not queue.trouble)
            self.healthy |= {queue.target for queue in over if not queue.unknown}
            queues = [queue for queue in queues if not queue.done]
        if not self.counter.dry_run:
            if self.served:
                _remember(self.counter.layout, self.served)
            for target in sorted({*self.troubles, *self.healthy}):
                trouble = self.troubles.get(target, "")
                self.counter.isolate(f"contract of {target}", partial(self._alarm, target, trouble))

    def _in_turn(self) -> list[_Queue]:
        found: list[_Queue] = []
        for lane in self.lanes:
            self.counter.isolate(lane.name, partial(self._open, lane, found))
        names = [queue.name for queue in found]
        with suppress(ValueError):
            start = names.index(_last_served(self.counter.layout)) + 1
            found = found[start:] + found[:start]
        return found

    def _open(self, lane: Lane, found: list[_Queue]) -> None:
        found.extend(_Queue(lane, target) for target in lane.targets())

    def _take(self, queue: _Queue) -> None:
        wish = queue.next()
        if isinstance(wish, Trouble):
            self.counter.isolate(f"{queue.lane.name} {wish.target} {wish.what}", partial(_raise, wish.error))
        elif isinstance(wish, Remark):
            self.counter.say(queue.lane.name, wish, "lane.remark", "remark", wish.reason)
            self._remark(wish)
        elif wish is not None:
            self._serve(queue, wish)

    def _serve(self, queue: _Queue, order: Order) -> None:
        counter, lane = self.counter, queue.lane.name
        held = runs.claimed(counter.layout, order.target, order.key)
        if held is not None:
            # Whoever claimed it may have died before the run was made; this is a no-op for all others.
            if not counter.dry_run and not counter.layout.run(held.spec.run).journal.exists():
                counter.begin(held.spec)
            return
        if why := counter.held():
            counter.say(lane, order, "lane.held", "wait", why)
            return
        try:
            spec = order.make()
        except OverBudget as over:
            counter.say(lane, order, "lane.budget", "wait", str(over))
            return
        counter.say(lane, order, "lane.run", "run", order.reason)
        if not counter.dry_run:
            self.served = queue.name
            counter.begin(runs.claim(counter.layout, order.key, spec).spec)

    def _remark(self, remark: Remark) -> None:
        forge = None if self.counter.dry_run else self.counter.forges(remark.target)
        if forge is not None:
            forge.comment(remark.order, remark.key, remark.text)

    def _alarm(self, target: str, trouble: str) -> None:
        alarm.note(self.counter.layout, self.counter.forges, target, trouble, self.counter.now)


def _raise(error: Exception) -> None:
    raise error


def _last_served(layout: Layout) -> str:
    """Return who was served last; what cannot be read costs nobody more than a turn."""
    with suppress(OSError, ValueError):
        said: Any = json.loads(fsio.read(layout.tick / "turns.json"))
        if isinstance(said, dict):
            return str(said.get("served", ""))
    return ""


def _remember(layout: Layout, served: str) -> None:
    fsio.replace(layout.tick / "turns.json", json.dumps({"schema": "turns/1", "served": served}).encode() + b"\n")
