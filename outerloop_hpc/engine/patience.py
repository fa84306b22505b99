"""How often a scheduler is asked: not again just after it was, and ever later while it does not answer.

Passes are made by many users at the same minute. What one of them found out about a scheduler is kept for the next
ones in a small document; it is an estimate, and two passes that write it at once lose nothing else.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import ClassVar

from pydantic import AwareDatetime, Field

from outerloop_hpc import fsio
from outerloop_hpc.clock import Clock
from outerloop_hpc.documents import Document, Value, load
from outerloop_hpc.engine.spec import stamp
from outerloop_hpc.errors import Fault, TryLater
from outerloop_hpc.slurm.breaker import ACCOUNTING, Breaker, controller
from outerloop_hpc.slurm.port import Answer, Availability, Bound, Compute, JobRef, Observation, SubmissionWithheld, Work

_log = logging.getLogger(__name__)

LONGEST_PAUSE_S = 600.0
#: Part of a pause that chance decides, so that those who failed together do not come back together.
_JITTER = 0.5
_MOST_DOUBLINGS = 16
#: So far ahead another host's clock may be unnoticed.
_AHEAD = timedelta(seconds=10)


class Silent(Value):
    """A daemon that did not answer: in how many passes in a row, when last, and when it is asked again."""

    failures: int = Field(ge=1)
    at: AwareDatetime
    again_at: AwareDatetime


class Asked(Document):
    """``tick/patience-<compute>.json``: when the scheduler was asked last, and which daemons do not answer.

    ``whole_at`` is when a pass over all runs asked last: such a pass heeds that alone, or those who follow single runs
    would keep it from ever seeing the others.
    """

    name: ClassVar[str] = "patience"

    asked_at: AwareDatetime | None = None
    whole_at: AwareDatetime | None = None
    silent: dict[str, Silent] = Field(default_factory=dict)

    def ahead_of(self, now: datetime) -> bool:
        """Whether a clock that is wrong wrote this, so that nobody knows how long to wait."""
        times = [one.at for one in self.silent.values()]
        times += [at for at in (self.asked_at, self.whole_at) if at is not None]
        longest = timedelta(seconds=LONGEST_PAUSE_S)
        return any(at > now + _AHEAD for at in times) or any(s.again_at > s.at + longest for s in self.silent.values())


@dataclass
class Patience:
    """A compute port around a cluster's: the same answers, but asked with patience. ``begin`` and ``end`` frame a pass.

    Attributes:
        breaker: through which all commands of ``compute`` go.
        path: the document.
        cluster: where new submissions go; empty for the default one.
        interval_s: seconds between two questions. 0: no minimum.
        pause_s: seconds after a first failure, doubled with each up to ``LONGEST_PAUSE_S``. 0: no pause.
        chance: what a part of each pause is drawn from.
        backing_off: daemons that this pass does not ask, and why.
    """

    compute: Compute
    breaker: Breaker
    path: Path
    clock: Clock
    chance: random.Random
    cluster: str = ""
    interval_s: float = 10.0
    pause_s: float = 10.0
    backing_off: Mapping[str, str] = field(default_factory=dict)
    _known: Asked = field(default_factory=Asked)
    _keeps: bool = False
    _insists: bool = True
    _whole: bool = True

    @property
    def name(self) -> str:
        """The compute's."""
        return self.compute.name

    @property
    def user(self) -> str:
        """The compute's."""
        return self.compute.user

    def begin(self, *, asks_anyway: bool, insists: bool, whole: bool = True) -> None:
        """Begin a pass, over all runs (``whole``) or some.

        One that asks anyway (a person wants to know) heeds no document, and leaves none.
        """
        self._keeps, self._insists, self._whole = not asks_anyway, asks_anyway or insists, whole
        self._known = Asked() if asks_anyway else self._read()
        now = self.clock.now()
        self.backing_off = {
            daemon: f"{daemon} did not answer, {one.failures} times in a row; it is asked again after "
            f"{stamp(one.again_at)}"
            for daemon, one in self._known.silent.items()
            if one.again_at > now
        }
        self.breaker.reset(self.backing_off)

    def held(self) -> str:
        """Say why nothing can be submitted now; empty when something can."""
        return self.breaker.why_not(controller(self.cluster))

    def submit(self, work: Work) -> Bound:
        """Submit as the compute does.

        Raises:
            SubmissionWithheld: the controller is not asked now; nothing was enqueued.
        """
        if why := self.held():
            raise SubmissionWithheld(f"{work.name}: sbatch was not started: {why}")
        return self.compute.submit(work)

    def observe(self, jobs: Sequence[JobRef]) -> Observation:
        """Look as the compute does, unless somebody looked just before."""
        if spared_s := self._too_soon():
            return Observation(Answer(Availability.UNAVAILABLE), Answer(Availability.UNAVAILABLE), spared_s=spared_s)
        if self._keeps and self.interval_s and not {controller(self.cluster), ACCOUNTING} <= set(self.backing_off):
            now = self.clock.now()
            asked = {"asked_at": now, "whole_at": now} if self._whole else {"asked_at": now}
            self._write(self._read().model_copy(update=asked))
        return self.compute.observe(jobs)

    def cancel(self, jobs: Sequence[JobRef]) -> None:
        """Cancel as the compute does."""
        self.compute.cancel(jobs)

    def end(self) -> list[str]:
        """End the pass: keep for later ones who did not answer; returns what to say of that."""
        failed, answered = self.breaker.failed, self.breaker.answered - set(self.breaker.failed)
        if not (self._keeps and self.pause_s):
            return [f"{daemon}: {what}; not asked again in this pass" for daemon, what in failed.items()]
        now, latest = self.clock.now(), self._read() if failed or answered else self._known
        silent = {daemon: one for daemon, one in latest.silent.items() if daemon not in answered}
        silent |= {daemon: self._silent(latest.silent.get(daemon), now) for daemon in failed}
        if silent != latest.silent:
            self._write(latest.model_copy(update={"silent": silent}))
        return [
            f"{daemon}: {what}; not asked again in this pass, nor by others before {stamp(silent[daemon].again_at)}"
            for daemon, what in failed.items()
        ]

    def _silent(self, before: Silent | None, now: datetime) -> Silent:
        failures = 1 if before is None else before.failures + 1
        longest = min(self.pause_s * 2 ** min(failures - 1, _MOST_DOUBLINGS), LONGEST_PAUSE_S)
        pause = longest * (1 - _JITTER * self.chance.random())
        return Silent(failures=failures, at=now, again_at=now + timedelta(seconds=pause))

    def _too_soon(self) -> float:
        """Seconds until the scheduler may be asked again; 0 for now."""
        last = self._known.whole_at if self._whole else self._known.asked_at
        if self._insists or last is None:
            return 0.0
        ago = (self.clock.now() - last).total_seconds()
        return max(self.interval_s - ago, 0.0)

    def _read(self) -> Asked:
        try:
            known: Asked = load(Asked, self.path)
        except FileNotFoundError:
            return Asked()
        except Fault as fault:
            _log.warning("%s; it only says how long to wait, and is written anew", fault)
            return Asked()
        if known.ahead_of(self.clock.now()):
            _log.warning("%s is from the future; it only says how long to wait, and is written anew", self.path)
            return Asked()
        return known

    def _write(self, asked: Asked) -> None:
        try:
            fsio.make_folder(self.path.parent)
            fsio.replace(self.path, asked.encoded())
        except (TryLater, OSError) as error:
            _log.warning("%s cannot be written: %s; the next pass asks without it", self.path, error)


@dataclass(frozen=True, slots=True)
class Patients:
    """All the computes of a pass that are asked with patience."""

    computes: Mapping[str, Patience]

    @classmethod
    def among(cls, computes: Mapping[str, Compute]) -> Patients:
        """Find them; this machine's own processes are asked as often as one likes."""
        return cls({name: one for name, one in computes.items() if isinstance(one, Patience)})

    @contextmanager
    def during(
        self, tell: Callable[[Sequence[str]], None], *, asks_anyway: bool, insists: bool, whole: bool
    ) -> Iterator[None]:
        """Frame a pass; ``tell`` is told first who is not asked in it and until when, at last who did not answer."""
        for one in self.computes.values():
            one.begin(asks_anyway=asks_anyway, insists=insists, whole=whole)
        tell([f"{name}: {why}" for name, one in self.computes.items() for why in one.backing_off.values()])
        try:
            yield
        finally:
            tell([f"{name}: {said}" for name, one in self.computes.items() for said in one.end()])

    def held(self, name: str) -> str:
        """Say why nothing can be submitted to this compute now; empty when something can."""
        return self.computes[name].held() if name in self.computes else ""


def spared(name: str, seconds: float) -> str:
    """Say that a scheduler was not asked, since it was just before; ``seconds`` until it may be again."""
    return (
        f"{name}: was asked less than [reconcile] min_interval_s ago, so not now, but again in {seconds:.0f} s; "
        "nothing is concluded from that"
    )
