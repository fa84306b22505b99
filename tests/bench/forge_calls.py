"""How often a tick asks a forge about its orders: counted where every question goes through, not timed."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from outerloop_hpc.config.settings import Settings, State, Steward, Target
from outerloop_hpc.engine.layout import Layout
from outerloop_hpc.engine.targets import Sighted, Targets
from outerloop_hpc.forge.port import Comment, Order
from outerloop_hpc.steward.lane import StewardLane
from outerloop_hpc.target import contract
from outerloop_hpc.target.limits import Operator, limits
from tests.bench.figure import Figure, Peer
from tests.unit.engine.memoryforge import MemoryForge

_COUNTS = (10, 300)
#: What the reference asks in a tick for 300 orders: one listing of comments for each of them, twice, and two lists.
_REFERENCE_300 = 602
_AT = datetime(2026, 1, 1, tzinfo=UTC)
_LATER = timedelta(minutes=10)
_CONTRACT = b"""\
benchmarks:
  - {name: score, command: "true", metric: score, direction: max}
budgets: {gpu_hours_per_run: 0, runs_per_week: 100}
scope: {allowed: [solver.py]}
steward: {allowed: [evaluate.py]}
"""


class CountedForge(MemoryForge):
    """A forge with so many open orders that all wait for their authors."""

    def __init__(self, count: int) -> None:
        super().__init__()
        order = Order("", "no benchmark", "", "ada", trusted=True, labels=(), opened_at=_AT, touched_at=_AT)
        self.every = [replace(order, order_id=str(number)) for number in range(count)]

    def orders(self, label: str) -> Sequence[Order]:
        """Return them all; one call, however many pages."""
        self._called(f"orders {label}")
        return self.every

    def comments(self, order_id: str, since: datetime | None = None) -> Sequence[Comment]:
        """Return the reason that was said on each."""
        self._called(f"comments {order_id} {since}")
        return [Comment("1", self.identity, _AT, "It names no benchmark.", key="steward/benchmark-0-0")]


class FixedClock:
    """Stands still until it is told otherwise."""

    at = _AT + _LATER

    def now(self) -> datetime:
        """Return the time it stands at."""
        return self.at

    def steady(self) -> float:
        """Return seconds since it was set."""
        return (self.at - _AT).total_seconds()

    def sleep(self, seconds: float) -> None:
        """Go on by so much."""
        self.at += timedelta(seconds=seconds)


class FixedTargets(Targets):
    """Targets whose head never moves: what is counted is the forge alone."""

    def look(self, name: str, commit: str = "") -> Sighted:
        """Return the same commit and contract each time."""
        loaded = contract.load(_CONTRACT)
        return Sighted(name, commit or "c", "c", "t", loaded, limits(loaded.contract, Operator()))


def measure() -> list[Figure]:
    """Count a first tick, which knows nothing, a quiet one, and one after a single order was touched."""
    return [figure for count in _COUNTS for figure in _figures(count)]


def calls(count: int) -> tuple[int, int, int]:
    """Return the questions of these three ticks for so many orders."""
    with tempfile.TemporaryDirectory() as folder:
        clock, forge = FixedClock(), CountedForge(count)
        settings = Settings(
            state=State(root=Path(folder)), steward=Steward(command=("true",)), targets={"t": Target(repository="r")}
        )
        layout = Layout(Path(folder))
        targets = FixedTargets(settings, layout, clock, mirrors=layout.mirrors, cache=Path(folder))
        lane = StewardLane(targets, lambda _target: forge)
        first = _tick(lane, forge)
        clock.at += _LATER
        quiet = _tick(lane, forge)
        forge.every[-1] = replace(forge.every[-1], touched_at=clock.at)
        return first, quiet, _tick(lane, forge)


def _tick(lane: StewardLane, forge: CountedForge) -> int:
    before = len(forge.calls)
    list(lane.orders("t"))
    return len(forge.calls) - before


def _figures(count: int) -> list[Figure]:
    first, quiet, touched = calls(count)
    peer = Peer("the reference", _REFERENCE_300, quiet / _REFERENCE_300) if count == 300 else None
    return [
        Figure(f"forge_calls_per_tick.orders_{count}.first", first, "calls", None, f"{count + 1}"),
        Figure(f"forge_calls_per_tick.orders_{count}.quiet", quiet, "calls", peer, "1"),
        Figure(f"forge_calls_per_tick.orders_{count}.one_touched", touched, "calls", None, "2"),
    ]
