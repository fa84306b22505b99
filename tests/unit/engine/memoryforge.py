"""A forge in memory that keeps the port's promises, and falls silent when told to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from outerloop_hpc.errors import TryLater
from outerloop_hpc.forge.port import Change, Comment, NotThere, Order, Proposal
from tests.unit.engine.made import T0


@dataclass
class MemoryForge:
    identity: str = "outerloop"
    silent: bool = False
    gone: set[str] = field(default_factory=set)
    said: dict[tuple[str, str], str] = field(default_factory=dict)
    branches: dict[str, str] = field(default_factory=dict)
    opened: dict[str, Change] = field(default_factory=dict)
    alarms: dict[str, str] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)

    def _called(self, what: str) -> None:
        self.calls.append(what)
        if self.silent:
            raise TryLater("the forge does not answer")

    def orders(self, label: str) -> Sequence[Order]:
        self._called(f"orders {label}")
        return []

    def order(self, order_id: str) -> Order:
        self._called("order")
        raise NotThere(order_id)

    def comments(self, order_id: str, since: datetime | None = None) -> Sequence[Comment]:
        self._called("comments")
        return [
            Comment(key, self.identity, since or T0, text, key=key)
            for (on, key), text in self.said.items()
            if on == order_id
        ]

    def comment(self, order_id: str, key: str, body: str) -> str:
        self._called("comment")
        if order_id in self.gone:
            raise NotThere(f"order {order_id} was deleted")
        self.said.setdefault((order_id, key), body)
        return key

    def push(self, repository: Path, commit: str, branch: str) -> None:
        self._called("push")
        self.branches[branch] = commit

    def propose(self, proposal: Proposal) -> Change:
        self._called("propose")
        change = Change(f"c{len(self.opened) + 1}", proposal.branch, proposal.commit, "open", f"at {proposal.branch}")
        found = [known for known in self.opened.values() if known.branch == proposal.branch]
        if not found:
            self.opened[change.change_id] = change
        return found[0] if found else change

    def changes(self, change_ids: Sequence[str]) -> Mapping[str, Change]:
        self._called("changes")
        return {name: self.opened[name] for name in change_ids if name in self.opened}

    def merge(self, change_id: str, commit: str) -> None:
        self.opened[change_id] = replace(self.opened[change_id], status="merged", merged_as=commit)

    def raise_alarm(self, key: str, title: str, body: str) -> None:
        self._called("raise")
        self.alarms.setdefault(key, f"{title}\n{body}")

    def clear_alarm(self, key: str, body: str) -> None:
        self._called("clear")
        self.alarms.pop(key, None)
