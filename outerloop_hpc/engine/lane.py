"""The lane port: where new runs come from."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from outerloop_hpc.engine.spec import RunSpec
from outerloop_hpc.errors import ConfigError


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
class Trouble:
    """A target that a lane could not serve; the next one is served all the same."""

    target: str
    text: str
    later: bool


class Lane(Protocol):
    """A source of new runs. It isolates its own targets: one that fails yields trouble and the next is served."""

    @property
    def name(self) -> str:
        """Its word for people."""
        ...

    def orders(self) -> Iterable[Order | Trouble]:
        """Yield what is wanted now; orders that were carried out may come again."""
        ...
