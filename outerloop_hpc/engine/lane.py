"""The lane port: where new runs come from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from outerloop_hpc.engine.spec import RunSpec
from outerloop_hpc.errors import ConfigError, OuterloopError


class OverBudget(ConfigError):  # noqa: N818 - states the finding
    """A run would cost more than the contract or the operator allows; a later pass may find room."""


@dataclass(frozen=True, slots=True)
class Order:
    """Something a lane wants done.

    Attributes:
        key: names the order; a claim on it is exclusive.
        reason: why now.
        make: makes the run's specification, once nobody holds the order; raises ConfigError when it cannot be made.
    """

    target: str
    key: str
    reason: str
    make: Callable[[], RunSpec]


@dataclass(frozen=True, slots=True)
class Remark:
    """What a lane has to say on an order of the forge that it does not take. It is said once for each ``key``."""

    target: str
    order: str
    key: str
    text: str
    reason: str


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something that cannot be judged now, such as one order whose thread cannot be read; all others still can."""

    target: str
    what: str
    error: OuterloopError


class Lane(Protocol):
    """A source of new runs."""

    @property
    def name(self) -> str:
        """Its word for people."""
        ...

    def targets(self) -> Sequence[str]:
        """Return the targets that it serves."""
        ...

    def orders(self, target: str) -> Iterable[Order | Remark | Trouble]:
        """Yield what is wanted now, most urgent first; orders that were carried out may come again.

        Raises:
            ConfigError: the target's contract does not say what it must.
            UsageError: the target or its repository is not there.
            TryLater: repository or forge do not answer.
        """
        ...
