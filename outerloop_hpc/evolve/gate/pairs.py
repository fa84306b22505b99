"""What a gate decides on: pairs of readings, one of each arm, of the same task and seed. Pure."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from outerloop_hpc.documents import Value

Arm = Literal["incumbent", "candidate"]

#: ``measured``: it ended well and printed its numbers. ``failed``: the arm's own fault. ``missing``: the machines'
#: fault, or nobody knows, and no tries are left; nothing is ever put in its place.
ReadingWord = Literal["measured", "failed", "missing"]


class Reading(Value):
    """One arm of a pair. ``metrics`` are finite numbers by name; empty unless measured.

    ``success``: what the task's own success flag or hidden oracle said; ``None`` where the task has neither.
    ``beside``: of a missing one, that it was lost only because the other arm, in the same cell, was.
    """

    word: ReadingWord
    metrics: dict[str, float] = Field(default_factory=dict)
    success: bool | None = None
    reason: str = ""
    node: str = ""
    cell: str = ""
    beside: bool = False


class Pair(Value):
    """Both arms of one task with one seed; ``repeat`` counts within its stage, refills included."""

    task: str
    repeat: int
    seed: int
    incumbent: Reading
    candidate: Reading
