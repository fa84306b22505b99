"""A state folder with many runs: live ones made by the engine's own passes, ended ones as copies of one that it ended.

A copy has its own folders, specification and snapshot; the files that no pass opens are hard links to the original's,
so that fifty thousand of them are there in seconds.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from outerloop_hpc.benchmark.plan import BenchmarkKind
from outerloop_hpc.benchmark.work import BenchmarkWork, dump
from outerloop_hpc.clock import SystemClock
from outerloop_hpc.engine import records, runs
from outerloop_hpc.engine.carry import Hands
from outerloop_hpc.engine.events import Author
from outerloop_hpc.engine.layout import Layout, RunFolder, element_file, new_run_id
from outerloop_hpc.engine.rules import Policy
from outerloop_hpc.engine.spec import ResourceAsk, RunSpec
from outerloop_hpc.engine.state import RunState
from outerloop_hpc.engine.tick import Engine, Limits, Pass
from outerloop_hpc.engine.watch import load
from outerloop_hpc.slurm.port import Compute
from tests.bench.queue import ELEMENTS, MemoryCompute

TARGET = "bench"
PER_MONTH = 5000
_FIRST = datetime(2020, 1, 1, tzinfo=UTC)
_TREE = "b" * 40


def engine(root: Path, compute: Compute) -> Engine:
    """Wire an engine to a compute; no limit on launches."""
    author = Author(host="login1", pid=os.getpid(), user=compute.user, version="bench")
    hands = Hands(Layout(root), {compute.name: compute}, author, SystemClock())
    kind = BenchmarkKind()
    return Engine(hands, {kind.name: kind}, compute.name, Policy(), Limits(submissions=1_000_000, live_runs=0))


def spec_of(number: int, at: datetime, elements: int = ELEMENTS) -> RunSpec:
    """Make the specification of one benchmark run with so many seeds."""
    work = BenchmarkWork(
        benchmark="score",
        command="python3 evaluate.py",
        metric="score",
        direction="max",
        eval_minutes=5,
        tree=_TREE,
        contract_digest="c" * 64,
        seeds=tuple(range(1, elements + 1)),
        resources=ResourceAsk(minutes=10),
    )
    return RunSpec(
        run=new_run_id("benchmark", TARGET, at, f"{number:08x}"),
        kind="benchmark",
        target=TARGET,
        commit=f"{number:040x}",
        cause="head moved",
        made_at=at,
        made_by="alice",
        work=dump(work),
    )


@dataclass(frozen=True, slots=True)
class StateFolder:
    """A state folder under construction; ended runs can be put aside and back, month by month."""

    root: Path

    @property
    def layout(self) -> Layout:
        """The folder's layout."""
        return Layout(self.root)

    @property
    def aside(self) -> Path:
        """Where months wait that are not to be seen."""
        return self.root.with_name(f"{self.root.name}.aside")

    def add_live(self, count: int, elements: int = ELEMENTS) -> None:
        """Make runs whose jobs are all under way: submitted and bound by a pass, each element claimed by its job."""
        compute, now = MemoryCompute(), datetime.now(UTC)
        specs = [spec_of(number, now, elements) for number in range(count)]
        for spec in specs:
            runs.ensure(self.layout, spec)
        Pass(engine(self.root, compute), launch=False).run()
        for spec in specs:
            self._start_elements(load(self.layout, spec.run).state)

    def add_ended(self, count: int) -> None:
        """Make runs that were closed long ago, a few thousand a month."""
        original = self._end_one()
        text = {path: path.read_bytes() for path in (original.spec, original.snapshot)}
        rest = [path for path in sorted(original.path.rglob("*")) if path.is_file() and path not in text]
        for number in range(1, count):
            at = _FIRST + timedelta(days=31 * (number // PER_MONTH))
            copy(original, self.layout.run(spec_of(number, at).run), text, rest)

    def show_ended(self, months: int) -> None:
        """Leave so many months of ended runs in place and put the others aside."""
        self.aside.mkdir(exist_ok=True)
        every = sorted({*self._ended_months(self.layout.runs), *self._ended_months(self.aside)})
        for number, month in enumerate(every):
            here, there = self.layout.runs / month, self.aside / month
            source, target = (there, here) if number < months else (here, there)
            if source.exists():
                source.rename(target)

    def _ended_months(self, folder: Path) -> list[str]:
        last = f"{_FIRST.year + 5}"
        return [path.name for path in folder.iterdir() if path.name < last] if folder.exists() else []

    def _end_one(self) -> RunFolder:
        """Take one run through its whole life, by the engine's own passes."""
        spec, compute = spec_of(0, _FIRST), MemoryCompute()
        runs.ensure(self.layout, spec)
        wired = engine(self.root, compute)
        Pass(wired, launch=False, only=[spec.run]).run()
        self._start_elements(load(self.layout, spec.run).state)
        self._end_elements(spec, load(self.layout, spec.run).state)
        compute.ended = True
        Pass(wired, launch=False, only=[spec.run]).run()
        found = load(self.layout, spec.run).state
        if not found.closed:
            raise RuntimeError(f"{spec.run} should be closed, it is {found.phase}")
        return self.layout.run(spec.run)

    def _start_elements(self, state: RunState) -> None:
        for name, submission in state.submissions.items():
            for index in range(len(submission.elements)):
                holder = records.Holder(host=f"node{index}", pid=4711, job_id=f"{submission.job_id}_{index}")
                claim = records.Claim(nonce=f"{index:016x}", at=submission.intended_at, holder=holder)
                path = self.layout.run(state.run).submission(name) / element_file(index, records.CLAIM)
                path.write_bytes(claim.encoded())

    def _end_elements(self, spec: RunSpec, state: RunState) -> None:
        for step, current, submission in state.open_tries():
            seed = step.spec.parameters["seed"]
            record = records.Record(
                run=spec.run,
                submission=submission.name,
                index=current.index,
                step=step.spec.key,
                try_number=current.number,
                nonce=f"{current.index:016x}",
                outcome="completed",
                started_at=submission.intended_at,
                ended_at=submission.intended_at,
                holder=records.Holder(host="node1", pid=4711, job_id=f"{submission.job_id}_{current.index}"),
                payload={"value": 0.5 + seed / 100, "benchmark": "score", "seconds": 1.5, "node": "node1"},
            )
            path = self.layout.run(spec.run).submission(submission.name) / element_file(current.index, records.RECORD)
            path.write_bytes(record.encoded())


def copy(original: RunFolder, new: RunFolder, text: Mapping[Path, bytes], rest: Sequence[Path]) -> None:
    """Copy a run under another id."""
    old_id, new_id = original.run_id.encode(), new.run_id.encode()
    for folder in (original.path, *(path for path in original.path.rglob("*") if path.is_dir())):
        (new.path / folder.relative_to(original.path)).mkdir(parents=True, exist_ok=True)
    for path, data in text.items():
        (new.path / path.relative_to(original.path)).write_bytes(data.replace(old_id, new_id))
    for path in rest:
        os.link(path, new.path / path.relative_to(original.path))
