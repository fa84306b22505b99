"""The port of a forge: orders, what is said on them, and proposed changes. One instance serves one target.

Every writing call can be made again without harm: what it wants is found by its key or its branch before it is made.
Each raises TryLater when the forge does not answer, and NotThere when what it is about has been removed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal, Protocol

from outerloop_hpc.errors import UsageError

ChangeStatus = Literal["open", "merged", "closed"]


class NotThere(UsageError):  # noqa: N818 - states the finding
    """The forge answered, and the order or change that was named is not there any more."""


@dataclass(frozen=True, slots=True)
class Order:
    """A work order as the forge shows it now. Title and body are foreign text.

    Attributes:
        order_id: what the forge calls it, unique within the target.
        trusted: whether the forge vouches for its author: an owner or a member; on a local forge, whoever can write.
        labels: in the order in which they were given.
        relabelled_at: when a label was last given or taken; None when never.
        touched_at: when anything about it last changed; as long as it stays, nothing has to be read again.
        fault: why it cannot be read; nothing else of it is known then, and it is nobody's to take.
    """

    order_id: str
    title: str
    body: str
    author: str
    trusted: bool
    labels: tuple[str, ...]
    opened_at: datetime
    touched_at: datetime
    relabelled_at: datetime | None = None
    open: bool = True
    fault: str = ""


@dataclass(frozen=True, slots=True)
class Comment:
    """Something said on an order. Foreign text, unless ``author`` is the tool's own identity.

    ``trusted``: the forge vouches for its author, as for an order's. ``key``: under which the tool said it once.
    """

    comment_id: str
    author: str
    at: datetime
    body: str
    trusted: bool = True
    key: str = ""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A change to open.

    Attributes:
        branch: its head, a branch that nobody else writes; a change is found again by this name.
        onto: branch that it is to be merged into.
        commit: full id of the head.
        order_id: the order that it answers; empty for none.
    """

    branch: str
    onto: str
    commit: str
    order_id: str
    title: str
    body: str


@dataclass(frozen=True, slots=True)
class Change:
    """A proposed change as the forge shows it now.

    Attributes:
        where: address or path for people.
        commit: its head.
        merged_as: the commit that brought it into the branch; empty until then.
    """

    change_id: str
    branch: str
    commit: str
    status: ChangeStatus
    where: str
    merged_as: str = ""


class Forge(Protocol):
    """What the engine and the lanes ask of a forge."""

    @property
    def identity(self) -> str:
        """The name under which this tool writes here. Empty: nothing may be scanned, or no claim would be seen."""
        ...

    def orders(self, label: str) -> Sequence[Order]:
        """Return every open order with a label, oldest first; and each one that cannot be read, with its fault."""
        ...

    def order(self, order_id: str) -> Order:
        """Return one order, open or not."""
        ...

    def comments(self, order_id: str, since: datetime | None = None) -> Sequence[Comment]:
        """Return what was said on an order, oldest first; only at or after ``since`` when given."""
        ...

    def comment(self, order_id: str, key: str, body: str) -> str:
        """Say something once: a comment of ours with this key is found and its id returned."""
        ...

    def push(self, repository: Path, commit: str, branch: str) -> None:
        """Bring a commit of a local repository to the forge as a branch; there already with this commit is fine.

        Raises:
            Fault: the branch is there with another commit.
        """
        ...

    def propose(self, proposal: Proposal) -> Change:
        """Open a change, or find the one that its branch has already."""
        ...

    def changes(self, change_ids: Sequence[str]) -> Mapping[str, Change]:
        """Return the named changes in as few calls as possible; those that are not there are left out."""
        ...

    def raise_alarm(self, key: str, title: str, body: str) -> None:
        """Open a notice for the people of the target; an open one with this key is found and left as it is."""
        ...

    def clear_alarm(self, key: str, body: str) -> None:
        """Close the open notice of this key with a last word; none is fine."""
        ...
