"""What a whole pass asks of Slurm, counted where every command starts: when all is well, and when nobody answers."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

from outerloop_hpc.engine import inbox, runs
from outerloop_hpc.engine.evidence import ref_of
from outerloop_hpc.engine.lane import Order
from outerloop_hpc.engine.passresult import PassResult
from outerloop_hpc.engine.patience import Patience
from outerloop_hpc.engine.rules import Policy
from outerloop_hpc.engine.state import RunState
from outerloop_hpc.engine.submissions import due_at
from outerloop_hpc.engine.tick import Engine, Pass
from outerloop_hpc.engine.watch import load
from outerloop_hpc.process import Finished
from outerloop_hpc.slurm.breaker import Breaker
from outerloop_hpc.slurm.parse import SEPARATOR
from outerloop_hpc.slurm.query import WANTED_COLUMNS, SlurmQuery
from outerloop_hpc.slurm.sbatch import SiteOptions
from outerloop_hpc.slurm.submit import SlurmCompute
from tests.bench.queue import ELEMENTS
from tests.bench.statefolder import StateFolder, engine, spec_of
from tests.bench.stubs import queue_lines

pytestmark = pytest.mark.unit

AWAY = "sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)"


@dataclass
class Commands:
    """Slurm's commands: squeue lists ``queue``, sacct knows no job, takes all submissions; some ``hang``."""

    hang: set[str] = field(default_factory=set)
    away: set[str] = field(default_factory=set)
    started: list[str] = field(default_factory=list)
    jobs: int = 5000
    queue: str = ""

    def __call__(self, argv: Sequence[str], **_: object) -> Finished:
        self.started.append(argv[0])
        if argv[0] in self.hang:
            return Finished(tuple(argv), None, "", "", timed_out=True, seconds=60)
        if argv[0] in self.away:
            return Finished(tuple(argv), 1, "", AWAY, timed_out=False, seconds=9)
        return Finished(tuple(argv), 0, self._answer(argv), "", timed_out=False, seconds=0.1)

    def _answer(self, argv: Sequence[str]) -> str:
        if argv[0] == "sbatch":
            self.jobs += 1
            return f"{self.jobs}\n"
        if argv[0] == "scontrol":
            return "MaxArraySize = 1001\n"
        if "--helpformat" in argv:
            return WANTED_COLUMNS
        return "|".join(argv[argv.index("-o") + 1].split(",")) if argv[0] == "sacct" else self.queue

    def counted(self) -> Mapping[str, int]:
        """How many were started since this was asked last."""
        found, self.started = Counter(self.started), []
        return found


@dataclass
class Clock:
    """The passes' clock; jobs of the state folder were submitted just before it begins."""

    at: datetime

    def now(self) -> datetime:
        return self.at

    def steady(self) -> float:
        return 0.0

    def sleep(self, seconds: float) -> None:
        raise AssertionError(f"a pass does not wait {seconds} s")


@dataclass
class Lane:
    """Wants so many new runs."""

    count: int
    at: datetime
    name: str = "benchmark"

    def targets(self) -> list[str]:
        return ["bench"]

    def orders(self, target: str) -> Iterator[Order]:
        for number in range(self.count):
            yield Order(target, f"order {number}", "head moved", partial(spec_of, 900 + number, self.at))


class Site:
    """A state folder with live runs, a cluster, and passes over it."""

    def __init__(self, root: Path, live: int) -> None:
        self.folder = StateFolder(root)
        self.folder.add_live(live)
        changed = [at for run in self.runs() if (at := self.state(run).changed_at)]
        self.clock = Clock(max(changed))
        self.commands = Commands()
        self.lane = Lane(0, self.clock.at)
        breaker = Breaker(self.commands)
        query = SlurmQuery(breaker, {}, separator="|", clock=self.clock)
        slurm = SlurmCompute(query, python="python3", site=SiteOptions(), environ={}, run=breaker)
        path = self.folder.layout.patience("slurm")
        self.patience = Patience(slurm, breaker, path, self.clock, random.Random(3))
        made = engine(root, self.patience)
        self.engine: Engine = replace(made, hands=replace(made.hands, clock=self.clock), largest=slurm.max_array_size)

    def runs(self) -> list[str]:
        return list(runs.live(self.folder.layout))

    def state(self, run: str) -> RunState:
        return load(self.folder.layout, run).state

    def make_pass(self, *, dry_run: bool = False, insists: bool = False) -> PassResult:
        return Pass(self.engine, launch=True, lanes=[self.lane], dry_run=dry_run, insists=insists).run()

    def list(self, runs_listed: Sequence[str]) -> None:
        """Let squeue list these runs' jobs; of the others it knows nothing."""
        refs = [ref_of(one) for run in runs_listed for one in self.state(run).submissions.values()]
        self.commands.queue = "".join(queue_lines(refs)).replace(SEPARATOR, "|")

    def end(self, run: str) -> None:
        inbox.put(self.folder.layout.run(run), "end", who="ann", reason="enough", at=self.clock.at)


def rules_of(result: PassResult) -> set[str]:
    return {line.rule for _, line in result.lines}


def test_a_pass_over_many_runs_asks_once_whatever_there_is_to_do(tmp_path: Path) -> None:
    """Twelve live runs, three of them ended by a person, and four new ones from a lane."""
    site = Site(tmp_path / "state", live=12)
    site.list(site.runs()[:3])
    for run in site.runs()[:3]:
        site.end(run)
    site.lane.count = 4
    result = site.make_pass()
    counted = site.commands.counted()
    assert counted == {"squeue": 1, "sacct": 2, "scancel": 1, "scontrol": 1, "sbatch": 4}, "one sacct is --helpformat"
    assert (result.faults, result.problems, result.unavailable, result.submitted) == ([], [], False, 4)

    site.clock.at += timedelta(seconds=60)
    result = site.make_pass()
    assert site.commands.counted() == {"squeue": 1, "sacct": 1, "scancel": 1}
    assert (result.live, result.calls, result.notes) == (16, 2, [])


def test_a_controller_that_hangs_costs_a_pass_one_command_and_nothing_is_begun(tmp_path: Path) -> None:
    site = Site(tmp_path / "state", live=12)
    first, *rest = site.runs()
    site.list([first])
    site.end(first)
    site.lane.count = 4
    site.commands.hang = {"squeue", "sbatch", "scancel", "scontrol"}
    before = {run: site.state(run) for run in rest}
    result = site.make_pass()
    assert site.commands.counted() == {"squeue": 1, "sacct": 2}
    assert {run: site.state(run) for run in site.runs() if run != first} == before, "silence was taken for news"
    ended = site.state(first).ended
    assert ended is not None, "a person's word needs no scheduler"
    assert (result.unavailable, result.submitted, result.faults) == (True, 0, [])
    assert "slurmctld did not answer in this pass (squeue: did not answer in time)" in result.held
    assert [line.verdict for _, line in result.lines if line.rule == "lane.held"] == ["wait"] * 4
    assert any("not cancelled yet" in problem and "a later pass asks" in problem for problem in result.problems)

    result = site.make_pass()
    assert site.commands.counted() == {}, "neither in the pause nor just after the question"
    assert result.unavailable
    assert any("it is asked again after" in problem for problem in result.problems)
    assert {run: site.state(run) for run in site.runs() if run != first} == before

    site.commands.hang, site.clock.at = set(), site.clock.at + timedelta(seconds=11)
    result = site.make_pass()
    assert site.commands.counted() == {"squeue": 1, "sacct": 1, "scancel": 1, "scontrol": 1, "sbatch": 4}
    assert (result.unavailable, result.problems, result.held) == (False, [], "")


def test_accounting_that_hangs_costs_a_pass_one_command_and_launches_go_on(tmp_path: Path) -> None:
    site = Site(tmp_path / "state", live=3)
    site.lane.count = 2
    site.commands.hang = {"sacct"}
    result = site.make_pass()
    assert site.commands.counted() == {"squeue": 1, "sacct": 1, "scontrol": 1, "sbatch": 2}
    assert (result.unavailable, result.submitted, result.held) == (True, 2, "")


def test_a_pass_just_after_another_begins_runs_and_concludes_nothing(tmp_path: Path) -> None:
    site = Site(tmp_path / "state", live=3)
    old = site.runs()
    site.make_pass()
    site.commands.counted()
    before = {run: site.state(run) for run in old}
    site.lane.count, site.clock.at = 2, site.clock.at + timedelta(seconds=3)
    result = site.make_pass()
    assert site.commands.counted() == {"scontrol": 1, "sbatch": 2}
    assert {run: site.state(run) for run in old} == before
    assert (result.unavailable, result.problems, result.spared_s) == (False, [], 7.0)
    assert [note for note in result.notes if "min_interval_s" in note and "again in 7 s" in note]
    assert not list(site.folder.layout.tick.glob("silent-*")), "who was not asked was not silent"
    assert site.make_pass(insists=True).calls == 2


@pytest.mark.parametrize("how", ["hang", "away"])
def test_an_sbatch_that_never_started_is_not_looked_for_and_made_anew(tmp_path: Path, how: str) -> None:
    """One run's plan has two submissions, and the first one's sbatch finds nobody: the second is known not to be."""
    site = Site(tmp_path / "state", live=1)
    site.engine = replace(site.engine, largest=lambda: ELEMENTS - 2)
    site.lane.count = 2
    setattr(site.commands, how, {"sbatch"})
    (old,) = site.runs()
    result = site.make_pass()
    assert site.commands.counted()["sbatch"] == 1
    (new,) = (run for run in site.runs() if run != old)
    asked, never = site.state(new).submissions.values()
    assert (asked.status, never.status) == ("intended", "abandoned")
    assert "lane.held" in rules_of(result), "no other run was begun"
    assert any(f"{never.name}: not submitted yet: " in problem for problem in result.problems)
    steps = [step for step in site.state(new).steps.values() if step.last and step.last.submission == never.name]
    assert {step.last.rule for step in steps if step.last} == {"submit.withheld"}
    assert {(step.refusals(), step.counted(), due_at(step, Policy())) for step in steps} == {(0, 0, None)}
    folder = site.folder.layout.run(new).submission(never.name)
    assert not list(folder.glob("*.claim.json")), "there is no job that could take notice"

    setattr(site.commands, how, set())
    site.clock.at += timedelta(seconds=11)
    site.make_pass()
    counted = site.commands.counted()
    assert (counted["squeue"], counted["sbatch"]) == (1, 3), "the two steps at once, and the run that was held"
    states = [one.status for one in site.state(new).submissions.values()]
    assert states == ["intended", "abandoned", "bound"], "the ambiguous one still waits to be found"


def test_a_scontrol_that_hangs_keeps_every_intent_from_being_written(tmp_path: Path) -> None:
    site = Site(tmp_path / "state", live=1)
    site.lane.count = 2
    site.commands.hang = {"scontrol"}
    (old,) = site.runs()
    result = site.make_pass()
    assert site.commands.counted() == {"squeue": 1, "sacct": 2, "scontrol": 1}
    (new,) = (run for run in site.runs() if run != old)
    assert site.state(new).submissions == {}
    assert {"launch.held", "lane.held"} <= rules_of(result)


def test_a_dry_run_asks_always_and_leaves_no_document(tmp_path: Path) -> None:
    site = Site(tmp_path / "state", live=2)
    for _ in range(2):
        assert site.make_pass(dry_run=True).calls >= 2
    assert not site.folder.layout.patience("slurm").exists()
