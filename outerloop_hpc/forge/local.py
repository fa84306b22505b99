"""The local forge: orders and changes as threads of files under the state folder, branches in a bare repository.

For a target without any other forge, and for trying things out: everything that a forge does is there, and people use
it from the command line.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

from outerloop_hpc import fsio
from outerloop_hpc.clock import Clock
from outerloop_hpc.errors import Fault, UsageError
from outerloop_hpc.forge.port import Change, Comment, NotThere, Order, Proposal
from outerloop_hpc.forge.thread import Said, Thread
from outerloop_hpc.target.merge import Branches

ALARM = "outerloop:alarm"
_TICK = timedelta(microseconds=1)


class LocalForge:
    """The forge of one target.

    Args:
        folder: ``STATE/forge/<target>``; made when something is first written.
        identity: the name under which the tool itself writes.
        clock: for the times of events.
    """

    def __init__(self, folder: Path, *, identity: str, clock: Clock) -> None:
        self.folder, self._identity, self._clock = folder, identity, clock

    @property
    def identity(self) -> str:
        """The tool's name here."""
        return self._identity

    @property
    def branches(self) -> Branches:
        """The bare repository with the proposed branches."""
        return Branches(self.folder / "repository.git")

    # --- orders

    def open_order(self, *, author: str, title: str, body: str, labels: Sequence[str]) -> str:
        """Open an order as a person and return its number.

        Raises:
            UsageError: the title is empty, or ``author`` is the tool's own name.
        """
        if not title.strip():
            raise UsageError("an order needs a title")
        return self._open(self._person(author), title, body, labels)

    def _open(self, author: str, title: str, body: str, labels: Sequence[str], key: str = "") -> str:
        first = self._said("opened", author, title=title, body=body, added=tuple(dict.fromkeys(labels)), key=key)
        while True:
            number = max((int(name) for name in fsio.names(self.folder / "orders") if name.isdigit()), default=0) + 1
            if self._thread(str(number)).open(first):
                return str(number)

    def order_ids(self) -> Sequence[str]:
        """Return the numbers of all orders, open or not, oldest first."""
        numbers = sorted(int(name) for name in fsio.names(self.folder / "orders") if name.isascii() and name.isdigit())
        return [str(number) for number in numbers if self._thread(str(number)).exists()]

    def every_order(self) -> Sequence[Order]:
        """Return all orders, open or not, oldest first; of one that cannot be read its number and the fault."""
        return [self._order_or_fault(number) for number in self.order_ids()]

    def orders(self, label: str) -> Sequence[Order]:
        """Return every open order with a label, oldest first; and each one that cannot be read."""
        return [order for order in self.every_order() if order.fault or (order.open and label in order.labels)]

    def _order_or_fault(self, order_id: str) -> Order:
        try:
            return self.order(order_id)
        except Fault as fault:
            now, why = self._clock.now(), str(fault)
            return Order(order_id, "", "", "", trusted=False, labels=(), opened_at=now, touched_at=now, fault=why)

    def order(self, order_id: str) -> Order:
        """Return one order as its events make it."""
        events = list(_timed(self._thread(order_id)))
        first, labels, relabelled, is_open = events[0][1], dict.fromkeys(events[0][1].added), None, True
        for _, said, at in events[1:]:
            if said.kind == "labels":
                labels |= dict.fromkeys(said.added)
                labels = {label: None for label in labels if label not in said.removed}
                relabelled = at
            elif said.kind in {"closed", "reopened"}:
                is_open = said.kind == "reopened"
        return Order(
            order_id=order_id,
            title=first.title,
            body=first.body,
            author=first.author,
            trusted=True,
            labels=tuple(labels),
            opened_at=first.at,
            touched_at=events[-1][2],
            relabelled_at=relabelled,
            open=is_open,
        )

    def order_events(self, order_id: str) -> Sequence[Said]:
        """Return everything that happened on an order, oldest first; the first opened it."""
        return [said for _, said in self._thread(order_id).events()]

    def comments(self, order_id: str, since: datetime | None = None) -> Sequence[Comment]:
        """Return what was said on an order, oldest first."""
        return [
            Comment(str(number), said.author, at, said.body, key=said.key if said.author == self.identity else "")
            for number, said, at in _timed(self._thread(order_id))
            if said.kind == "comment" and (since is None or at >= since)
        ]

    def comment(self, order_id: str, key: str, body: str) -> str:
        """Say something as the tool, once for each key."""
        said = self._said("comment", self.identity, body=body, key=key)
        return str(self._thread(order_id).add(said, partial(_ours, key, self.identity)))

    def say(self, order_id: str, *, author: str, body: str) -> str:
        """Say something as a person."""
        return str(self._thread(order_id).add(self._said("comment", self._person(author), body=body)))

    def relabel(self, order_id: str, *, author: str, added: Sequence[str], removed: Sequence[str]) -> None:
        """Give and take labels."""
        said = self._said("labels", self._person(author), added=tuple(added), removed=tuple(removed))
        self._thread(order_id).add(said)

    def close_order(self, order_id: str, *, author: str, body: str = "") -> None:
        """Close an order as a person; closed already is fine."""
        self._close(order_id, self._person(author), body)

    def _close(self, order_id: str, author: str, body: str = "") -> None:
        thread = self._thread(order_id)
        last = max(number for number, _ in thread.events())
        if self.order(order_id).open:
            # Whoever closed it since that look has closed it.
            thread.add(self._said("closed", author, body=body), lambda known: known.kind == "closed", since=last)

    def raise_alarm(self, key: str, title: str, body: str) -> None:
        """Open a notice unless one with this key is open."""
        if not self._alarms(key):
            self._open(self.identity, title, body, (ALARM,), key)

    def clear_alarm(self, key: str, body: str) -> None:
        """Close the open notices of this key."""
        for order_id in self._alarms(key):
            self._close(order_id, self.identity, body)

    def _alarms(self, key: str) -> list[str]:
        return [
            order.order_id
            for order in self.orders(ALARM)
            if order.author == self.identity and self._opened_with(order.order_id) == key
        ]

    def _opened_with(self, order_id: str) -> str:
        return next(self._thread(order_id).events())[1].key

    # --- changes

    def push(self, repository: Path, commit: str, branch: str) -> None:
        """Bring a commit here as a branch."""
        known = self.branches.head(branch)
        if known is None:
            self.branches.bring(repository, commit, branch)
        elif known != commit:
            raise Fault(f"{branch} is there with another commit ({known[:12]}, not {commit[:12]}); nothing was changed")

    def propose(self, proposal: Proposal) -> Change:
        """Open a change under an id that follows from its branch, or find it."""
        change_id = hashlib.sha256(proposal.branch.encode()).hexdigest()[:8]
        first = self._said(
            "opened",
            self.identity,
            title=proposal.title,
            body=proposal.body,
            branch=proposal.branch,
            onto=proposal.onto,
            commit=proposal.commit,
            order=proposal.order_id,
        )
        self._change(change_id).open(first)
        return self.change(change_id)

    def changes(self, change_ids: Sequence[str]) -> Mapping[str, Change]:
        """Return the named changes that are there."""
        return {name: self.change(name) for name in change_ids if self._change(name).exists()}

    def change_ids(self) -> Sequence[str]:
        """Return the ids of all changes, whatever became of them."""
        folder = self.folder / "changes"
        return [name for name in fsio.names(folder) if Thread(folder / name).exists()]

    def every_change(self) -> Sequence[Change]:
        """Return all changes by their ids."""
        return [self.change(name) for name in self.change_ids()]

    def change(self, change_id: str) -> Change:
        """Return one change as its events make it."""
        events = [said for _, said in self._change(change_id).events()]
        first, merged = events[0], next((said for said in events if said.kind == "merged"), None)
        closed = any(said.kind == "closed" for said in events)
        return Change(
            change_id=change_id,
            branch=first.branch,
            commit=first.commit,
            status="merged" if merged else "closed" if closed else "open",
            where=f"change {change_id}",
            merged_as=merged.commit if merged else "",
        )

    def change_events(self, change_id: str) -> Sequence[Said]:
        """Return everything that happened to a change, oldest first; the first opened it."""
        return [said for _, said in self._change(change_id).events()]

    def opening(self, change_id: str) -> Said:
        """Return what a change was opened with: title, body, branches, order."""
        return next(self._change(change_id).events())[1]

    def merge(self, change_id: str, *, author: str, repository: str) -> Change:
        """Merge an open change into the branch of ``repository`` that it is meant for, and close its order.

        Done again after a crash it finds what is merged already.

        Raises:
            UsageError: it is closed, the two sides changed the same lines, or ``author`` is the tool's own name.
            TryLater: the repository does not answer, or its branch moved meanwhile.
        """
        self._person(author)
        change, opening = self.change(change_id), self.opening(change_id)
        if change.status == "closed":
            raise UsageError(f"change {change_id} is closed; nothing was merged")
        if change.status == "open":
            message = f"Merge {opening.branch}\n\n{opening.title}\n"
            commit = self.branches.merge_into(
                repository, opening.onto, opening.branch, message=message, author=author, at=self._clock.now()
            )
            # Also when somebody closed it just now: the branch has it, and that is what counts.
            said = self._said("merged", author, commit=commit)
            self._change(change_id).add(said, lambda known: known.kind == "merged")
        if opening.order:
            with suppress(NotThere):
                self._close(opening.order, author)
        return self.change(change_id)

    def close_change(self, change_id: str, *, author: str, body: str) -> Change:
        """Close a change without merging it; raises UsageError when it is merged."""
        said = self._said("closed", self._person(author), body=body)
        self._change(change_id).add(said, lambda known: known.kind in {"merged", "closed"})
        change = self.change(change_id)
        if change.status == "merged":
            raise UsageError(f"change {change_id} is merged already, as {change.merged_as[:12]}")
        return change

    def _said(self, kind: str, author: str, **more: object) -> Said:
        given = {"kind": kind, "author": author, "at": self._clock.now(), "nonce": fsio.nonce(), **more}
        return Said.model_validate(given)

    def _person(self, author: str) -> str:
        if not author or author == self.identity:
            raise UsageError(f"{author!r} is the tool's own name on this forge; people write under their own")
        return author

    def _thread(self, order_id: str) -> Thread:
        if not (order_id.isascii() and order_id.isdigit()):
            raise NotThere(f"{order_id!a} is not the number of an order; `outerloop-hpc orders list` shows them")
        return Thread(self.folder / "orders" / str(int(order_id)))

    def _change(self, change_id: str) -> Thread:
        if not (len(change_id) == 8 and change_id.isascii() and change_id.isalnum()):  # noqa: PLR2004 - as in propose
            raise NotThere(f"{change_id!a} is not the id of a change; `outerloop-hpc changes list` shows them")
        return Thread(self.folder / "changes" / change_id)


def _ours(key: str, identity: str, said: Said) -> bool:
    return said.kind == "comment" and said.author == identity and said.key == key


def _timed(thread: Thread) -> Iterator[tuple[int, Said, datetime]]:
    """Yield the events of a thread with times that never go back.

    People write on several hosts, and one whose clock is behind would seem to have spoken before what it answers.
    """
    latest: datetime | None = None
    for number, said in thread.events():
        latest = said.at if latest is None else max(said.at, latest + _TICK)
        yield number, said, latest
