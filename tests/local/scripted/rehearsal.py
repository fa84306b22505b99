"""A flow that was carried out once without disturbance: each of its commands can be begun again from where it began."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.local.driver import Ended
from tests.local.scripted import durable
from tests.local.scripted.flows import STEP_S, Flow, Stage

KILLED, STOPPED = -9, -19
#: A flow that needs more passes to one of its stages does not converge.
_MOST = 12
#: What is making a run and has no claim is believed to be dead after an hour, and temporary names after it too.
_GRACE_S = 3700.0

#: How many commands each flow has: a new one must be disturbed, too.
LENGTHS = {"benchmark": 2, "steward": 5, "two_orders": 6}


def moments_of(*names: str) -> list[tuple[str, int]]:
    """Name every command of these flows."""
    return [(name, number) for name in names for number in range(LENGTHS[name])]


@dataclass(frozen=True)
class Kept:
    """Everything as it was at one moment."""

    folder: Path
    slurm: str

    @classmethod
    def of(cls, flow: Flow, folder: Path) -> Kept:
        """Keep it."""
        for place in flow.places:
            if place.is_dir():
                shutil.copytree(place, folder / place.name, symlinks=True)
            elif place.exists():
                folder.mkdir(exist_ok=True)
                shutil.copy2(place, folder / place.name)
        return cls(folder, flow.slurm.snapshot())

    def restore(self, flow: Flow) -> None:
        """Put it back."""
        for place in flow.places:
            kept = self.folder / place.name
            if place.is_dir():
                shutil.rmtree(place)
            place.unlink(missing_ok=True)
            if kept.is_dir():
                shutil.copytree(kept, place, symlinks=True)
            elif kept.exists():
                shutil.copy2(kept, place)
        flow.slurm.restore(self.slurm)


@dataclass(frozen=True)
class Moment:
    """One command of the flow: what was there before it and after it, and what it did.

    Attributes:
        act: which act of a person it is, from 0; None for a pass.
    """

    words: tuple[str, ...]
    stage: int
    act: int | None
    before: Kept
    after: Kept
    effects: Sequence[tuple[str, str]]
    durable: Counter[str]
    outcome: dict[str, Any]


@dataclass
class Rehearsal:
    """A flow with its moments. ``grown``: how often a disturbed command took the long way to the end."""

    flow: Flow
    folder: Path
    moments: list[Moment] = field(default_factory=list)
    final: dict[str, Any] = field(default_factory=dict)
    grown: int = 0
    seen: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, flow: Flow, folder: Path) -> Rehearsal:
        """Carry the flow out."""
        made = cls(flow, folder)
        folder.mkdir()
        for number, stage in enumerate(flow.stages):
            for place, act in enumerate(stage.acts()):
                made._note(act, number, place)
            while not stage.until():
                made._note((stage.command,), number, None)
                if not stage.until():
                    flow.slurm.advance(STEP_S)
        made.final = flow.outcome()
        return made

    def _note(self, words: tuple[str, ...], stage: int, act: int | None) -> None:
        assert len(self.moments) < _MOST, f"the undisturbed flow does not end: {self.flow.outcome()}"
        number, flow = len(self.moments), self.flow
        before = Kept.of(flow, self.folder / f"{number}-before")
        ended = flow.order(*words)
        assert ended.status == 0, ended.err
        after = Kept.of(flow, self.folder / f"{number}-after")
        made = Moment(words, stage, act, before, after, ended.effects, flow.durable(), flow.outcome())
        self.moments.append(made)

    def again(self, moment: Moment, where: str) -> None:
        """Carry out a moment's command once more, as its author or the next pass would."""
        ended = self.flow.order(*moment.words)
        assert ended.status == 0, f"{where}: {ended.status}\n{ended.out}\n{ended.err}"

    def same(self, moment: Moment, where: str) -> bool:
        """Whether all is on disk, and in Slurm, as it was after the undisturbed command."""
        self._clears(where)
        return self.flow.durable() == moment.durable and self.flow.outcome() == moment.outcome

    def ends_well(self, moment: Moment, where: str) -> None:
        """Go on from a disturbed moment to the end, and demand that it is the undisturbed one."""
        if self.same(moment, where):
            return
        self.grown += 1
        self.finish(moment, where)
        self.demand(self.flow.outcome(), self.final, where)

    @staticmethod
    def demand(found: dict[str, Any], expected: dict[str, Any], where: str) -> None:
        """Fail with what differs."""
        differs = {key: (found[key], expected[key]) for key in expected if found[key] != expected[key]}
        assert not differs, f"{where}: found and expected: {differs}"

    def finish(self, moment: Moment, where: str) -> None:
        """Carry out what is left of the flow after a moment, until all is quiet."""
        self.through(moment, where)
        for stage in self.flow.stages[moment.stage + 1 :]:
            for words in stage.acts():
                assert self.flow.order(*words).status == 0, where
            self.settle(stage, where)
        if self.flow.outcome()["making"]:
            self.flow.slurm.advance(_GRACE_S)
            self.flow.order("reconcile")

    def through(self, moment: Moment, where: str) -> None:
        """Carry out what is left of a moment's own stage."""
        later = [one for one in self.moments if one.act is not None and moment.act is not None and one.act > moment.act]
        for one in later:
            self.again(one, where)
        self.settle(self.flow.stages[moment.stage], where)

    def settle(self, stage: Stage, where: str) -> None:
        """Make passes until the stage is over."""
        for _ in range(_MOST):
            if stage.until():
                return
            self.flow.slurm.advance(STEP_S)
            ended = self.flow.order(stage.command)
            assert ended.status in {0, 75}, f"{where}: {ended.status}\n{ended.out}\n{ended.err}"
        raise AssertionError(f"{where}: not quiet after {_MOST} passes: {self.flow.outcome()}")

    def _clears(self, where: str) -> None:
        """Temporary names go with the grace of housekeeping; each kind of them is waited for once."""
        new = set(durable.leftovers(self.flow.site.state)) - self.seen
        if not new:
            return
        self.seen |= new
        assert not any(name.endswith(".lock") for name in new), f"{where}: {new}"
        here = Kept.of(self.flow, self.folder / f"leftover-{len(self.seen)}")
        for _ in range(2):
            self.flow.order("tick")
            self.flow.slurm.advance(_GRACE_S + 24 * 3600)
        self.flow.order("tick")
        left = new & set(durable.leftovers(self.flow.site.state))
        assert not left, f"{where}: {left} stays"
        here.restore(self.flow)


def points(moment: Moment) -> Iterator[tuple[int, str]]:
    """Yield every place where a command can be killed: before each effect, and after the last.

    Nothing durable happens between two effects, so after one is before the next. What a program of Slurm did may be
    done without our having heard of it: those are also killed after, which is where only Slurm knows.
    """
    for number, (what, subject) in enumerate(moment.effects, 1):
        yield number, "before"
        if number == len(moment.effects) or (what == "command" and subject in _SLURM):
            yield number, "after"


_SLURM = {"sbatch", "squeue", "sacct", "scancel", "scontrol"}


def place(moment: Moment, number: int, ended: Ended | None = None) -> str:
    """Name a place in a command, for messages."""
    effects = moment.effects if ended is None else ended.effects
    named = f"{' '.join(effects[number - 1])}" if 0 < number <= len(effects) else ""
    return f"`{' '.join(moment.words)}` at effect {number} of {len(moment.effects)}: {named}"


def killed_everywhere(rehearsal: Rehearsal, number: int) -> int:
    """Kill one command of a flow at every place, let it be done again, and go on; returns how many places."""
    moment, flow, count = rehearsal.moments[number], rehearsal.flow, 0
    places = list(points(moment))
    for kill, when in places:
        moment.before.restore(flow)
        died = flow.order(*moment.words, kill=kill, when=when)
        where = f"killed {when} {place(moment, kill, died)}"
        assert died.status == KILLED or kill > len(died.effects), where
        rehearsal.again(moment, where)
        rehearsal.ends_well(moment, where)
        count += died.status == KILLED
    # A command may have an effect less than in the rehearsal, no more.
    assert count >= len(places) - 2, f"only {count} of {len(places)} places were reached"
    return count
