"""The configured targets: their mirrors, their contracts at a commit, and what may be spent on them."""

from __future__ import annotations

import getpass
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from outerloop_hpc import fsio
from outerloop_hpc.clock import Clock
from outerloop_hpc.config.settings import Settings
from outerloop_hpc.config.settings import Target as TargetSettings
from outerloop_hpc.container.image import identify
from outerloop_hpc.engine import runs
from outerloop_hpc.engine.enclose import Containment
from outerloop_hpc.engine.lane import OverBudget
from outerloop_hpc.engine.layout import Layout, new_run_id, parse_run_id
from outerloop_hpc.engine.ruler import Ruler
from outerloop_hpc.engine.spec import Image, KindName, RunSpec
from outerloop_hpc.errors import UsageError
from outerloop_hpc.target import contract as contracts
from outerloop_hpc.target.limits import Limits, Operator, limits
from outerloop_hpc.target.mirror import Mirror
from outerloop_hpc.target.terms import Benchmark

_log = logging.getLogger(__name__)
_WEEK = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class Sighted:
    """A target at one commit: its contract, and what it may spend. ``head`` is the branch's newest commit."""

    target: str
    commit: str
    head: str
    tree: str
    loaded: contracts.Loaded
    allowed: Limits

    def ruler(self, benchmark: Benchmark) -> Ruler:
        """Return how one of its benchmarks is measured."""
        return Ruler(
            benchmark=benchmark.name,
            command=benchmark.command,
            metric=benchmark.metric,
            direction=benchmark.direction,
            seed_env=benchmark.seed_env,
            display_digits=benchmark.display_digits or 6,
            eval_minutes=self.allowed.measurement_minutes(benchmark),
            min_delta=benchmark.min_delta or 0.0,
            min_delta_rel=benchmark.min_delta_rel or 0.0,
        )


@dataclass
class Targets:
    """Looks at targets; each one's head is looked up once, so that all lanes of a pass see the same.

    Attributes:
        mirrors: where the mirrors are; a dry run gives others, since looking at a target updates its mirror.
        cache: where digests of images are kept.
    """

    settings: Settings
    layout: Layout
    clock: Clock
    mirrors: Path
    cache: Path
    _heads: dict[str, str] = field(default_factory=dict)

    @property
    def names(self) -> Sequence[str]:
        """Every configured target."""
        return sorted(self.settings.targets)

    def settings_of(self, name: str) -> TargetSettings:
        """Return what is configured for a target; raises UsageError for an unknown one."""
        try:
            return self.settings.targets[name]
        except KeyError:
            known = ", ".join(self.names) or "none"
            raise UsageError(f"{name!r} is not a configured target (there are: {known}); see [targets]") from None

    def mirror(self, name: str) -> Mirror:
        """Return a target's mirror."""
        return Mirror(self.mirrors / f"{name}.git", clock=self.clock)

    def look(self, name: str, commit: str = "") -> Sighted:
        """Bring the mirror up to date and read the contract at a commit, the head unless told.

        Raises:
            UsageError: no such target, repository, branch or commit.
            ConfigError: the contract does not say what it must.
            TryLater: the repository does not answer.
        """
        settings, mirror = self.settings_of(name), self.mirror(name)
        if name not in self._heads:
            fsio.make_folder(self.mirrors)
            self._heads[name] = mirror.sync(settings.repository, settings.branch)
        head = self._heads[name]
        at = mirror.resolve(commit) if commit else head

        def read(path: str) -> bytes | None:
            try:
                return mirror.read(at, path)
            except UsageError:
                return None

        path, data = contracts.find(read)
        loaded = contracts.load(data, name=f"{name}:{path}", target=settings.repository)
        for notice in loaded.notices:
            _log.info("%s: %s", name, notice)
        return Sighted(name, at, head, mirror.tree(at), loaded, limits(loaded.contract, self._operator()))

    def image(self, name: str) -> Image:
        """Return the container image of a target's work by its digest; empty where none is configured.

        Raises:
            ConfigError: it is not there.
        """
        path = self.settings_of(name).image
        if not path:
            return Image()
        found = identify(Path(path), cache=self.cache / "images")
        return Image(path=str(found.path), sha256=found.sha256)

    def containment(self, *, network: bool) -> Containment:
        """Return how a step of a target's work is contained here."""
        given = self.settings.container
        return Containment(runtime=given.runtime, uncontained=given.uncontained, network=network)

    def run_spec(self, kind: KindName, seen: Sighted, *, cause: str, work: dict[str, Any]) -> RunSpec:
        """Make the specification of one run.

        Raises:
            ConfigError: the image is not there.
        """
        now = self.clock.now()
        return RunSpec(
            run=new_run_id(kind, seen.target, now, fsio.nonce()[:8]),
            kind=kind,
            target=seen.target,
            commit=seen.commit,
            cause=cause,
            made_at=now,
            made_by=getpass.getuser(),
            image=self.image(seen.target),
            scratch=self.settings.container.scratch,
            gpu_hours=seen.allowed.gpu_hours_per_run,
            work=work,
        )

    def check_week(self, kind: str, seen: Sighted, wanted: int = 1) -> None:
        """Make sure that the week's budget has room for so many more runs; raises OverBudget."""
        most = seen.allowed.runs_per_week
        if most is None:
            return
        count = recent_runs(self.layout, kind, seen.target, self.clock.now())
        if count + wanted > most:
            raise OverBudget(
                f"{seen.target}: {count} runs in the last 7 days, the budget is {most} a week and {wanted} more are "
                "asked for; wait, or raise runs_per_week in the contract and in [limits]"
            )

    def _operator(self) -> Operator:
        given, steward = self.settings.limits, self.settings.steward
        return Operator(
            session_max_turns=steward.turns,
            session_minutes=steward.minutes,
            eval_minutes=given.eval_minutes,
            runs_per_week=given.runs_per_week or None,
            gpu_hours_per_run=given.gpu_hours_per_run or None,
        )


def recent_runs(layout: Layout, kind: str, target: str, now: datetime) -> int:
    """Count the runs of the last seven days, those in the making too, by their names alone; reads no run."""
    since = now - _WEEK
    months: Mapping[str, None] = dict.fromkeys((f"{since:%Y-%m}", f"{now:%Y-%m}"))
    made = (name for month in months for name in fsio.names(layout.runs / month))
    count = 0
    for name in {*made, *runs.unmade(layout)}:
        if name.startswith(f"{kind}-{target}-"):
            with suppress(UsageError):  # somebody's copy of a run beside it is none
                parsed = parse_run_id(name)
                count += parsed.target == target and parsed.at >= since
    return count
