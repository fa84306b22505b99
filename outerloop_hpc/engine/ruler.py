"""A ruler: one benchmark of a contract, resolved: nothing of it changes with the target or the settings. Pure."""

from __future__ import annotations

import hashlib
from typing import Literal

from outerloop_hpc.documents import Value


class Ruler(Value):
    """How one number is measured.

    Attributes:
        metric: the key that the command prints it under.
        seed_env: variable that carries the seed; None when the benchmark draws nothing.
        display_digits: significant digits for people.
        eval_minutes: wall limit of the command, already clamped by the operator.
        min_delta: noise floor in units of the metric. min_delta_rel: as a fraction of the level.
    """

    benchmark: str
    command: str
    metric: str
    direction: Literal["min", "max"]
    seed_env: str | None = None
    display_digits: int = 6
    eval_minutes: int
    min_delta: float = 0.0
    min_delta_rel: float = 0.0


def seeds_of(count: int, *parts: str) -> tuple[int, ...]:
    """Return so many seeds that follow from ``parts`` alone, each of 31 bits."""
    return tuple(_seed(index, *parts) for index in range(count))


def _seed(index: int, *parts: str) -> int:
    digest = hashlib.sha256("\0".join((*parts, str(index))).encode()).digest()
    return int.from_bytes(digest[:4], "big") & 0x7FFFFFFF
