"""Where benchmark runs come from: a head that moved, a schedule, or somebody who asks for one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from outerloop_hpc.benchmark.work import KIND, BenchmarkWork, Earlier, default_seeds, dump
from outerloop_hpc.engine.jobs import load_job
from outerloop_hpc.engine.lane import Order, OverBudget
from outerloop_hpc.engine.spec import ResourceAsk, RunSpec
from outerloop_hpc.engine.submissions import gpu_hours
from outerloop_hpc.engine.targets import Sighted, Targets
from outerloop_hpc.errors import UsageError
from outerloop_hpc.measure import history, results
from outerloop_hpc.target.terms import Benchmark

_JOB = "measure"


@dataclass(frozen=True, slots=True)
class Asked:
    """What a person asks for beyond the defaults."""

    benchmarks: Sequence[str] = ()
    commit: str = ""
    seeds: Sequence[int] = ()


class BenchmarkLane:
    """Measures each benchmark of each target's contract at its head."""

    name = KIND

    def __init__(self, targets: Targets) -> None:
        self._targets, self.settings, self.layout, self.clock = targets, targets.settings, targets.layout, targets.clock

    def targets(self) -> Sequence[str]:
        """Return every configured target."""
        return self._targets.names

    def orders(self, target: str) -> Iterator[Order]:
        """Yield one order per benchmark."""
        seen = self._targets.look(target)
        for benchmark in self.wanted(seen, ()):
            yield self._order(seen, benchmark)

    def wanted(self, seen: Sighted, names: Sequence[str]) -> list[Benchmark]:
        """Return the benchmarks asked for: by name, else by the settings, else all.

        Raises:
            UsageError: the contract has none of that name.
        """
        known = {benchmark.name: benchmark for benchmark in seen.loaded.contract.benchmarks}
        chosen = list(dict.fromkeys(names or self._targets.settings_of(seen.target).benchmarks or known))
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
            **seen.ruler(benchmark).model_dump(),
            tree=seen.tree,
            contract_digest=seen.loaded.digest,
            seeds=chosen,
            resources=ask,
            max_tries=min(job.max_tries, settings.reconcile.max_tries),
            containment=self._targets.containment(network=job.network),
            earlier=self._earlier(seen, benchmark, chosen),
            head=seen.commit == seen.head,
            picked=bool(seeds),
        )
        return self._targets.run_spec(KIND, seen, cause=cause, work=dump(work))

    def _order(self, seen: Sighted, benchmark: Benchmark) -> Order:
        slot, why = self._slot(seen)

        def make() -> RunSpec:
            self._targets.check_week(KIND, seen)
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
