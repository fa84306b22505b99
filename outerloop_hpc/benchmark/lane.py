"""Where benchmark runs come from: a head that moved, a schedule, or somebody who asks for one."""

from __future__ import annotations

import getpass
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from outerloop_hpc import fsio
from outerloop_hpc.benchmark.work import KIND, BenchmarkWork, Earlier, default_seeds, dump
from outerloop_hpc.clock import Clock
from outerloop_hpc.config.settings import Settings
from outerloop_hpc.config.settings import Target as TargetSettings
from outerloop_hpc.container.image import identify
from outerloop_hpc.engine import runs
from outerloop_hpc.engine.enclose import Containment
from outerloop_hpc.engine.jobs import load_job
from outerloop_hpc.engine.lane import Order, OverBudget
from outerloop_hpc.engine.layout import Layout, new_run_id, parse_run_id
from outerloop_hpc.engine.spec import Image, ResourceAsk, RunSpec
from outerloop_hpc.engine.submissions import gpu_hours
from outerloop_hpc.errors import UsageError
from outerloop_hpc.measure import history, results
from outerloop_hpc.target import contract as contracts
from outerloop_hpc.target.limits import Limits, Operator, limits
from outerloop_hpc.target.mirror import Mirror
from outerloop_hpc.target.terms import Benchmark

_log = logging.getLogger(__name__)
_WEEK = timedelta(days=7)
_JOB = "measure"


@dataclass(frozen=True, slots=True)
class Asked:
    """What a person asks for beyond the defaults."""

    benchmarks: Sequence[str] = ()
    commit: str = ""
    seeds: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class Sighted:
    """A target at one commit: its contract, and what it may spend."""

    target: str
    commit: str
    head: str
    tree: str
    loaded: contracts.Loaded
    allowed: Limits


class BenchmarkLane:
    """Measures each benchmark of each target's contract at its head."""

    name = KIND

    def __init__(self, settings: Settings, layout: Layout, clock: Clock, *, mirrors: Path, cache: Path) -> None:
        """Set the lane up; a dry run gives other ``mirrors``, since looking at a target updates its mirror."""
        self.settings, self.layout, self.clock = settings, layout, clock
        self.mirrors, self.cache = mirrors, cache

    def targets(self) -> Sequence[str]:
        """Return every configured target."""
        return sorted(self.settings.targets)

    def orders(self, target: str) -> Iterator[Order]:
        """Yield one order per benchmark."""
        seen = self.look(target)
        for benchmark in self.wanted(seen, ()):
            yield self._order(seen, benchmark)

    def look(self, name: str, commit: str = "") -> Sighted:
        """Bring the mirror up to date and read the contract at a commit, the head unless told.

        Raises:
            UsageError: no such target, repository, branch or commit.
            ConfigError: the contract does not say what it must.
            TryLater: the repository does not answer.
        """
        settings = self._target(name)
        mirror = Mirror(self.mirrors / f"{name}.git", clock=self.clock)
        fsio.make_folder(self.mirrors)
        head = mirror.sync(settings.repository, settings.branch)
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

    def wanted(self, seen: Sighted, names: Sequence[str]) -> list[Benchmark]:
        """Return the benchmarks asked for: by name, else by the settings, else all.

        Raises:
            UsageError: the contract has none of that name.
        """
        known = {benchmark.name: benchmark for benchmark in seen.loaded.contract.benchmarks}
        chosen = list(dict.fromkeys(names or self._target(seen.target).benchmarks or known))
        missing = [name for name in chosen if name not in known]
        if missing:
            raise UsageError(f"{seen.target}: no benchmark {missing[0]!r} in its contract; it has {', '.join(known)}")
        return [known[name] for name in chosen]

    def spec(self, seen: Sighted, benchmark: Benchmark, *, cause: str, seeds: Sequence[int] = ()) -> RunSpec:
        """Make the specification of one run.

        Raises:
            ConfigError: the image is not there, the job definition is wrong, or the budget does not cover the run.
        """
        settings, bench = self.settings, self.settings.bench
        job = load_job(self.layout, _JOB)
        minutes = seen.allowed.measurement_minutes(benchmark)
        chosen = tuple(seeds) or default_seeds(seen.target, benchmark.name, bench.seeds)
        ask = job.ask(minutes=minutes, gpus=benchmark.gpus, parallel=bench.parallel)
        self._check_gpu_budget(seen, benchmark, ask, len(chosen))
        work = BenchmarkWork(
            benchmark=benchmark.name,
            command=benchmark.command,
            metric=benchmark.metric,
            direction=benchmark.direction,
            seed_env=benchmark.seed_env,
            display_digits=benchmark.display_digits or 6,
            eval_minutes=minutes,
            min_delta=benchmark.min_delta or 0.0,
            min_delta_rel=benchmark.min_delta_rel or 0.0,
            tree=seen.tree,
            contract_digest=seen.loaded.digest,
            seeds=chosen,
            resources=ask,
            max_tries=min(job.max_tries, settings.reconcile.max_tries),
            containment=Containment(
                runtime=settings.container.runtime, uncontained=settings.container.uncontained, network=job.network
            ),
            earlier=self._earlier(seen, benchmark, chosen),
            head=seen.commit == seen.head,
            picked=bool(seeds),
        )
        now = self.clock.now()
        return RunSpec(
            run=new_run_id(KIND, seen.target, now, fsio.nonce()[:8]),
            kind=KIND,
            target=seen.target,
            commit=seen.commit,
            cause=cause,
            made_at=now,
            made_by=getpass.getuser(),
            image=self._image(seen.target),
            scratch=settings.container.scratch,
            gpu_hours=seen.allowed.gpu_hours_per_run,
            work=dump(work),
        )

    def _order(self, seen: Sighted, benchmark: Benchmark) -> Order:
        slot, why = self._slot(seen)

        def make() -> RunSpec:
            self.check_week(seen)
            return self.spec(seen, benchmark, cause=why)

        key = f"{KIND}/{benchmark.name}/{seen.commit}/{slot}"
        return Order(seen.target, key, f"{benchmark.name}: {why}", make)

    def _slot(self, seen: Sighted) -> tuple[str, str]:
        """Name the occasion: each head once, and again in every period when there is a schedule."""
        hours = self.settings.bench.every_hours
        if not hours:
            return "head", f"head is {seen.commit[:12]}"
        period = int(self.clock.now().timestamp() // (3600 * hours))
        return f"every-{hours}h-{period}", f"head is {seen.commit[:12]}, every {hours} h"

    def check_week(self, seen: Sighted, wanted: int = 1) -> None:
        """Make sure that the week's budget has room for so many more runs; raises OverBudget."""
        most = seen.allowed.runs_per_week
        if most is None:
            return
        count = recent_runs(self.layout, KIND, seen.target, self.clock.now())
        if count + wanted > most:
            raise OverBudget(
                f"{seen.target}: {count} runs in the last 7 days, the budget is {most} a week and {wanted} more are "
                "asked for; wait, or raise runs_per_week in the contract and in [limits]"
            )

    def _check_gpu_budget(self, seen: Sighted, benchmark: Benchmark, ask: ResourceAsk, seeds: int) -> None:
        most, asked = seen.allowed.gpu_hours_per_run, gpu_hours(ask, seeds)
        if most is not None and asked > most:
            raise OverBudget(
                f"{seen.target}: {benchmark.name} may use {asked:.1f} GPU hours ({ask.gpus} GPUs x {ask.minutes} min "
                f"x {seeds} seeds), the budget of a run is {most:g}; lower the seeds or raise gpu_hours_per_run"
            )

    def _earlier(self, seen: Sighted, benchmark: Benchmark, seeds: Sequence[int]) -> Earlier | None:
        found = history.previous(
            results.points(self.layout.results, seen.target, benchmark.name),
            seen.commit,
            metric=benchmark.metric,
            direction=benchmark.direction,
            seeds=seeds,
        )
        return None if found is None else Earlier(run=found.run, commit=found.commit, values=found.values())

    def _image(self, target: str) -> Image:
        path = self._target(target).image
        if not path:
            return Image()
        found = identify(Path(path), cache=self.cache / "images")
        return Image(path=str(found.path), sha256=found.sha256)

    def _target(self, name: str) -> TargetSettings:
        try:
            return self.settings.targets[name]
        except KeyError:
            known = ", ".join(sorted(self.settings.targets)) or "none"
            raise UsageError(f"{name!r} is not a configured target (there are: {known}); see [targets]") from None

    def _operator(self) -> Operator:
        given = self.settings.limits
        return Operator(
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
