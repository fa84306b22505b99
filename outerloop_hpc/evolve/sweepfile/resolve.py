"""A sweep file becomes work: names are looked up, commits pinned, files digested, before anything is submitted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from outerloop_hpc.engine.jobs import load_job
from outerloop_hpc.engine.targets import Sighted, Targets
from outerloop_hpc.errors import ConfigError, UsageError
from outerloop_hpc.evolve import work as works
from outerloop_hpc.evolve.gate import levels
from outerloop_hpc.evolve.gate.policy import GatePolicy
from outerloop_hpc.evolve.overlays.globs import denying
from outerloop_hpc.evolve.overlays.overlay import Overlay, place_problem
from outerloop_hpc.evolve.sweepfile.asks import cell_ask, policy, proposing_ask, unit_of
from outerloop_hpc.evolve.sweepfile.closed import closed_paths, contradictions, files_run
from outerloop_hpc.evolve.sweepfile.document import Sweep
from outerloop_hpc.evolve.sweepfile.prepared import Prepared, prepare
from outerloop_hpc.evolve.sweepfile.terms import Task
from outerloop_hpc.measure.command import split_command
from outerloop_hpc.target.mirror import Mirror
from outerloop_hpc.target.repository import NoSuchFile
from outerloop_hpc.target.terms import Benchmark
from outerloop_hpc.target.tree import FILE, PROGRAM, Entry

#: Of the files that candidates may change; all their digests are in the run's specification.
MOST_BASE = 2000
_ORACLE_FILE, _ORACLE_ALL = 512 * 1024, 2 * 1024 * 1024
_SHOWN = 20


@dataclass(frozen=True)
class Resolved:
    """What a sweep file means here and now.

    Attributes:
        seen: the target at the sweep's commit.
        work: the kind's part of the specification.
        overlays: prepared ones, in order; whoever makes the run freezes them.
        skipped: ids of expensive tasks that were left out.
        notices: what a person should know, one line each.
    """

    seen: Sighted
    work: works.EvolveWork
    overlays: tuple[Overlay, ...] = ()
    skipped: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()


def resolve(targets: Targets, sweep: Sweep, folder: Path, *, expensive: bool = False) -> Resolved:
    """Resolve a sweep against the configured targets; nothing is written but the target's mirror.

    Args:
        targets: where its target is.
        sweep: the file.
        folder: the one that the file lies in; prepared overlays and templates are found from there.
        expensive: whether tasks that are marked so are included.

    Raises:
        UsageError: with everything in it that cannot be: no such target, ref, benchmark or file; what breaks the
            rules. Nothing may be submitted.
        ConfigError: the contract, the image or a job definition does not say what it must.
        TryLater: the target's repository or the disk does not answer.
    """
    try:
        seen = targets.look(sweep.target, sweep.ref or "")
    except UsageError as error:
        raise UsageError(f"{sweep.name}: target {sweep.target!r}, ref {sweep.ref or 'head'!r}: {error}") from error
    return _Resolution(targets, sweep, folder, seen, include=expensive).resolved()


@dataclass
class _Resolution:
    """One look-up of everything; ``problems`` are collected, so that a person mends them all at once."""

    targets: Targets
    sweep: Sweep
    folder: Path
    seen: Sighted
    include: bool
    problems: list[str] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)

    def resolved(self) -> Resolved:
        tasks = [task for task in self.sweep.tasks if self.include or not task.expensive]
        skipped = tuple(task.id for task in self.sweep.tasks if task not in tasks)
        if not tasks:
            self._refuse([f"every task is expensive ({', '.join(skipped)}); include them to measure anything"])
        benchmarks = self._benchmarks(tasks)
        rules = self._rules(tasks, benchmarks)
        base = self._base(rules)
        self.problems += self._copies(base, rules)
        rules = self._apart(base, rules)
        prepared = prepare(self.sweep, self.folder, rules, base, self._further)
        self.problems += prepared.problems
        metric = policy(self.sweep, {task.id: benchmarks.get(task.id) for task in tasks})
        self.problems += metric.problems
        self.notices += (
            f"warning: {task}: its benchmark's metric is {one.metric!r} in the contract; the sweep asks it for "
            f"{metric.name!r}, without which a run has failed"
            for task, one in benchmarks.items()
            if metric.policy is not None and one.metric != metric.name
        )
        if metric.policy is not None:
            self.problems += levels.hopeless(metric.policy, len(tasks))
        pinned = [self._task(task, benchmarks.get(task.id), metric.name, base) for task in tasks]
        self._refuse(self.problems)
        assert metric.policy is not None, "without one there was a problem"  # noqa: S101 - for the type checker
        return Resolved(
            seen=self.seen,
            work=self._work(rules, base, prepared, tuple(task for task in pinned if task), metric.policy),
            overlays=prepared.overlays,
            skipped=skipped,
            notices=(*(f"{name}: expensive, skipped" for name in skipped), *self.notices),
        )

    @cached_property
    def _further(self) -> tuple[works.Copy, ...]:
        """Further places of what candidates may change."""
        return tuple(works.Copy(source=copy.source, to=copy.to) for copy in self.sweep.copies)

    @cached_property
    def _mirror(self) -> Mirror:
        return self.targets.mirror(self.sweep.target)

    @cached_property
    def _entries(self) -> tuple[Entry, ...]:
        return self._mirror.entries(self.seen.commit)

    def _refuse(self, problems: Sequence[str]) -> None:
        if problems:
            more = [f"and {len(problems) - _SHOWN} more"] if len(problems) > _SHOWN else []
            lines = [*problems[:_SHOWN], *more]
            raise UsageError(f"{self.sweep.name}: " + ("\n  ".join(["cannot be run:", *lines])))

    def _benchmarks(self, tasks: Sequence[Task]) -> dict[str, Benchmark]:
        found: dict[str, Benchmark] = {}
        for task in tasks:
            if task.benchmark is not None:
                try:
                    found[task.id] = self.seen.loaded.contract.benchmark(task.benchmark)
                except UsageError as error:
                    self.problems.append(f"task {task.id}: benchmark: {error}")
        return found

    def _argv(self, task: Task, benchmark: Benchmark | None) -> tuple[str, ...]:
        if task.command is not None:
            return task.command
        try:
            return split_command(benchmark.command) if benchmark else ()
        except ConfigError as error:
            self.problems.append(f"task {task.id}: the contract's benchmark {task.benchmark!r}: {error}")
            return ()

    def _rules(self, tasks: Sequence[Task], benchmarks: dict[str, Benchmark]) -> works.OverlayRules:
        """Return the sweep's rules with all that is closed to candidates in them."""
        given, contract = self.sweep.overlay, self.seen.loaded.contract
        commands: dict[str, list[Sequence[str]]] = {
            task.id: [
                self._argv(task, benchmarks.get(task.id)),
                *task.setup,
                *([task.oracle.command] if task.oracle else []),
            ]
            for task in tasks
        }
        # Benchmarks that are no task here judge the target, too.
        commands |= {f"benchmark {one.name}": [one.argv] for one in contract.benchmarks}
        run = files_run(commands, [entry.path for entry in self._entries])
        hidden = sorted(_oracle_files(self.sweep.tasks))
        closed = closed_paths(contract.territories(), hidden, run, given.allow)
        self.problems += contradictions(given.allow, closed)
        rules = works.OverlayRules(
            allow=given.allow, deny=(), may_add=given.may_add, max_files=given.max_files, max_bytes=given.max_bytes
        )
        for path, task in run.items():
            if path in closed and place_problem(path, rules) is None:
                self.notices.append(
                    f"{path!a} is run by {task}, so no candidate may change it; name it in overlay.allow to let them"
                )
        return rules.model_copy(update={"deny": tuple(dict.fromkeys((*given.deny, *closed)))})

    def _base(self, rules: works.OverlayRules) -> dict[str, str]:
        allowed = [
            entry.path
            for entry in self._entries
            if entry.mode in {FILE, PROGRAM} and place_problem(entry.path, rules) is None
        ]
        where = f"{self.sweep.target} at {self.seen.commit[:12]}"
        if not allowed:
            self.problems.append(
                f"overlay.allow: no file of {where} matches {', '.join(rules.allow)} and is not closed to candidates"
            )
        if len(allowed) > MOST_BASE:
            self.problems.append(f"overlay.allow: {len(allowed)} files of {where} match, at most {MOST_BASE} may")
            return {}
        return self._mirror.digests(self.seen.commit, allowed)

    def _copies(self, base: dict[str, str], rules: works.OverlayRules) -> Iterator[str]:
        for index, copy in enumerate(self._further):
            places = {path: to for path in base for to in works.copies_of(path, (copy,))}
            if not places:
                yield f"copies[{index}].from: {copy.source!r} is no file that candidates may change"
            for to in dict.fromkeys((copy.to, *places.values())):
                if (closed := denying(rules.deny, to)) is not None:
                    yield f"copies[{index}].to: {to!r} is closed to every candidate ({closed!r})"
                if to in base:
                    yield f"copies[{index}].to: {to!r} is itself allowed by overlay.allow; deny it there"
            there = self._mirror.digests(self.seen.commit, tuple(places.values()))
            for path, to in places.items():
                if there.get(to) != base[path]:
                    what = "is not there" if to not in there else f"differs from {path!r}"
                    yield f"copies[{index}].to: {to!r} {what} at {self.seen.commit[:12]}; mend the target first"

    def _apart(self, base: dict[str, str], rules: works.OverlayRules) -> works.OverlayRules:
        """Close the names at which a new file's copy would meet what is there already, and could never be applied."""
        if not rules.may_add:
            return rules
        met = [
            f"{copy.source}{entry.path.removeprefix(copy.to)}"
            for copy in self._further
            for entry in self._entries
            # What is closed already is looked at by its own name; the names of hidden files stay hidden.
            if entry.path.startswith(f"{copy.to}/") and denying(rules.deny, entry.path) is None
        ]
        new = (path for path in met if path not in base)
        return rules.model_copy(update={"deny": tuple(dict.fromkeys((*rules.deny, *new)))})

    def _task(self, task: Task, benchmark: Benchmark | None, metric: str, base: dict[str, str]) -> works.Task | None:
        """Pin one task; a problem is noted, and nothing returned."""
        try:
            commit = self._mirror.resolve(task.ref) if task.ref else self.seen.commit
            self.problems += (f"task {task.id}: {problem}" for problem in self._other_base(commit, base))
            if task.oracle:
                self.problems += (f"task {task.id}: {problem}" for problem in self._oracle(task, commit))
            ask = cell_ask(
                self.sweep, task, benchmark, load_job(self.targets.layout, "cell"), self.seen.allowed, metric
            )
        except UsageError as error:
            self.problems.append(f"task {task.id}: {error}")
            return None
        argv = self._argv(task, benchmark)
        if not argv:
            return None
        return works.Task(
            id=task.id,
            kind=task.kind,
            commit=commit,
            tree=self._mirror.tree(commit),
            command=argv,
            setup=task.setup,
            setup_timeout_s=task.setup_timeout_s,
            oracle=works.Oracle(**task.oracle.model_dump()) if task.oracle else None,
            success_key=task.success or "",
            seed_env=task.seed_env or (benchmark.seed_env if benchmark else None) or "",
            timeout_s=ask.timeout_s,
            resources=ask.resources,
        )

    def _other_base(self, commit: str, base: dict[str, str]) -> Iterator[str]:
        """At another commit the incumbent must be the same one, or there would be two."""
        if commit == self.seen.commit:
            return
        there = self._mirror.digests(commit, tuple(base))
        other = [path for path in base if there.get(path) != base[path]]
        if other:
            yield (
                f"ref {commit[:12]}: the incumbent's files are others there ({', '.join(map(ascii, other[:5]))}); "
                f"only tasks with the same ones as {self.seen.commit[:12]} can be compared"
            )

    def _oracle(self, task: Task, commit: str) -> Iterator[str]:
        total = 0
        for path in task.oracle.files if task.oracle else ():
            try:
                size = len(self._mirror.read(commit, path, limit=_ORACLE_FILE))
            except NoSuchFile:
                yield f"oracle: {path!r} is not there at {commit[:12]}"
            except UsageError as error:
                yield f"oracle: {error}"
            else:
                total += size
        if total > _ORACLE_ALL:
            yield f"oracle: its files hold {total} bytes, at most {_ORACLE_ALL} are mounted"

    def _work(
        self,
        rules: works.OverlayRules,
        base: dict[str, str],
        prepared: Prepared,
        tasks: tuple[works.Task, ...],
        gate: GatePolicy,
    ) -> works.EvolveWork:
        sweep, targets = self.sweep, self.targets
        cell, propose = (load_job(targets.layout, job) for job in ("cell", "propose"))
        assert prepared.proposer is not None, "without one there was a problem"  # noqa: S101 - for the type checker
        budget = sweep.budget
        return works.EvolveWork(
            name=sweep.name,
            document=sweep.digest,
            overlay=rules,
            copies=self._further,
            proposer=prepared.proposer,
            candidates=sweep.proposer.candidates,
            tasks=tasks,
            unit=unit_of(sweep, gate.primary.name),
            gate=gate,
            budget=works.Budget(**budget.model_dump(exclude={"generations"})),
            base=base,
            proposing=proposing_ask(sweep, propose),
            max_tries=cell.max_tries,
            proposing_tries=propose.max_tries,
            containment=targets.containment(network=cell.network),
            proposing_containment=targets.containment(network=getattr(sweep.proposer, "network", False)),
            expires_days=sweep.expires_days,
            skipped_oracles=tuple(sorted(_oracle_files(sweep.tasks) - _oracle_files(tasks))),
        )


def _oracle_files(tasks: Sequence[Task] | Sequence[works.Task]) -> set[str]:
    return {path for task in tasks if task.oracle for path in task.oracle.files}
