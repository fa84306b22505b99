"""Play a scenario: do its steps on a site, and compare what came of it with what it expects."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.fakeslurm import life
from tests.fakeslurm.model import Element, Fate, Fault, Job
from tests.fakeslurm.options import Call
from tests.fakeslurm.scenario import Act, Calls, Check, Foreign, Past, Scenario, Step
from tests.local.scripted.scripted import Scripted
from tests.local.scripted.story import Told, story
from tests.local.site import CHECKOUT, Done

_MOST_PASSES = 60
_EVERY_S = 30.0
_ANY_STATUS = (0, 4, 20, 75)


@dataclass
class Play:
    """One scenario under way.

    Attributes:
        last: the rows of the last pass; seen: names of all rulings so far; told: all that was said to people.
        asked: ids of the runs that were asked for, in order; two of the same second have no other.
    """

    scripted: Scripted
    last: list[dict[str, Any]] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)
    told: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def perform(self, scenario: Scenario) -> None:
        """Do every step."""
        if scenario.memory_mb:
            self._ask_for(scenario.memory_mb)
        for step in scenario.steps:
            self.do(step)

    def _ask_for(self, memory_mb: int) -> None:
        """As a site does that edits its copy of the job's definition."""
        definition = self.scripted.site.state / "jobs" / "measure.toml"
        definition.parent.mkdir(parents=True, exist_ok=True)
        shipped = (CHECKOUT / "jobs" / "measure.toml").read_text(encoding="utf-8")
        definition.write_text(f"memory_mb = {memory_mb}\n{shipped}", encoding="utf-8")

    def do(self, step: Step) -> None:
        """Do one step."""
        slurm = self.scripted.slurm
        match step:
            case Act():
                verbs: dict[str, Callable[[Act], None]] = {
                    name.removeprefix("do_").replace("_", "-"): getattr(self, name)
                    for name in dir(self)
                    if name.startswith("do_")
                }
                verbs[step.verb](step)
            case Check():
                self._check(step)
            case Calls():
                made = [call for call in slurm.calls(step.calls) if step.holding in " ".join(call)]
                assert len(made) == step.are, f"{step}: {len(made)}: {made}"
            case Fault():
                slurm.fault(step)
            case Fate():
                slurm.fate(step)
            case Past():
                slurm.past(step.id, step.name, _me(step.user), step.state, ago_s=step.ago_s)
            case Foreign():
                slurm.foreign(step.id, step.name, _me(step.user), step.state, step.offset, step.tasks)

    def runs(self) -> list[Path]:
        """Folders of all runs, first those that were asked for."""
        made = self.scripted.site.runs()
        return sorted(
            made, key=lambda folder: self.asked.index(folder.name) if folder.name in self.asked else len(made)
        )

    # --- the tool

    def do_tick(self, act: Act) -> None:
        self._pass("tick", (act.status,))

    def do_reconcile(self, act: Act) -> None:
        self._pass("reconcile", (act.status,))

    def do_run(self, act: Act) -> None:
        arguments = ("bench", "run", "tiny", "-b", "score", "--seeds", ",".join(act.words))
        done = self.scripted.cli(*arguments, expect=(act.status,))
        self._said(done)
        self.asked.append(done.out.strip())

    def do_settle(self, act: Act) -> None:
        """Make passes until every run is closed or waits for a person."""
        every = float(act.words[1]) if act.words else _EVERY_S
        for _ in range(_MOST_PASSES):
            status, meta = self._pass("reconcile", _ANY_STATUS)
            if not self.scripted.site.live() or (meta["live"] == meta["parked"] and status != 75):
                assert status == act.status, (status, self.last, meta)
                return
            self.scripted.advance(every)
        raise AssertionError(f"not quiet after {_MOST_PASSES} passes: {self.last}\n{self.told[-1]}")

    def do_resume(self, act: Act) -> None:
        self._person("resume", act)

    def do_end(self, act: Act) -> None:
        self._person("end", act)

    def _person(self, word: str, act: Act) -> None:
        run = self.runs()[act.of].name
        self._said(self.scripted.cli("runs", word, run, "--reason", "as the scenario says", expect=(act.status,)))

    def _pass(self, command: str, expect: tuple[int, ...]) -> tuple[int, dict[str, Any]]:
        done = self.scripted.cli(command, "--json", expect=expect)
        self._said(done)
        answer = json.loads(done.out)
        self.last = answer["rows"]
        self.seen |= {row["rule"] for row in self.last}
        return done.status, answer

    def _said(self, done: Done) -> None:
        self.told += [done.out, done.err]

    def _check(self, check: Check) -> None:
        run = self.runs()[check.run]
        rows = [row for row in self.last if row["run"] == run.name]
        if check.of is not None:
            key = story(self.scripted.site, run).keys[check.of]
            rows = [row for row in rows if row["subject"].partition(" ")[0] == key]
        assert check.rule in {row["rule"] for row in rows}, f"{check}: {rows or self.last}"

    # --- the cluster

    def do_advance(self, act: Act) -> None:
        self.scripted.advance(float(act.words[0]))

    def do_down(self, act: Act) -> None:
        self.scripted.slurm.down(act.words[0])

    def do_up(self, act: Act) -> None:
        self.scripted.slurm.up(act.words[0])

    def do_scancel(self, act: Act) -> None:
        def cancel(job: Job, element: Element) -> None:
            by = 0 if act.words[-1] == "root" else job.uid
            with self.scripted.slurm.changed() as cluster:
                ours, one = _again(cluster.jobs, job, element)
                life.cancel(cluster, ours, one, by)

        self._each(act, cancel)

    def do_requeue(self, act: Act) -> None:
        """As an administrator does: these jobs are submitted with --no-requeue, which has to be lifted first."""

        def requeue(job: Job, element: Element) -> None:
            self._scontrol("update", f"job={job.id}", "requeue=1")
            self._scontrol("requeue", str(job.id) if element.task is None else f"{job.id}_{element.task}")

        self._each(act, requeue)

    def do_hold(self, act: Act) -> None:
        self._scontrol("hold", str(self._jobs(act)[0].id))

    def do_release(self, act: Act) -> None:
        self._scontrol("release", str(self._jobs(act)[0].id))

    def do_begin(self, act: Act) -> None:
        self._scontrol("update", f"job={self._jobs(act)[0].id}", f"starttime=now+{act.words[1]}")

    def do_move(self, act: Act) -> None:
        self._scontrol("update", f"job={self._jobs(act)[0].id}", f"partition={act.words[1]}")

    def do_expire(self, act: Act) -> None:
        """Let the deadline of queued jobs pass."""

        def expire(job: Job, element: Element) -> None:
            with self.scripted.slurm.changed() as cluster:
                life.end(cluster, *_again(cluster.jobs, job, element), "DEADLINE", (1, 0))

        self._each(act, expire)

    def do_reset_ids(self, act: Act) -> None:
        with self.scripted.slurm.changed() as cluster:
            cluster.next_id = int(act.words[0])

    def do_hide(self, act: Act) -> None:
        """Let a record not have arrived yet at this host."""
        record = self._record(act)
        shutil.move(record, self._hidden(record))

    def do_show(self, act: Act) -> None:
        record = self._record(act)
        shutil.move(self._hidden(record), record)

    def _hidden(self, record: Path) -> Path:
        return self.scripted.site.root / f"{record.parent.name}.{record.name}"

    def _record(self, act: Act) -> Path:
        """The record of a step's first try."""
        run = self.runs()[act.of]
        first = story(self.scripted.site, run).tries[int(act.words[0])][0]
        return run / "tries" / first.submission / f"e{first.index:04d}.record.json"

    def _scontrol(self, *words: str) -> None:
        done = self.scripted.slurm.run("scontrol", *words)
        assert done.returncode == 0, done.stderr

    def _each(self, act: Act, do: Callable[[Job, Element], None]) -> None:
        told = story(self.scripted.site, self.runs()[act.of])
        steps = range(len(told.keys)) if act.words[0] == "all" else [int(act.words[0])]
        for number in steps:
            do(*told.tries[number][-1].on(self.scripted.slurm.cluster().jobs))

    def _jobs(self, act: Act) -> list[Job]:
        told = story(self.scripted.site, self.runs()[act.of])
        return [tries[-1].on(self.scripted.slurm.cluster().jobs)[0] for tries in told.tries]

    # --- what came of it

    def everything_told(self) -> str:
        """All that people were told, and what they are told when they ask."""
        texts = list(self.told)
        for run in self.runs():
            texts.append(self.scripted.cli("explain", run.name).out)
            report = run / "report.md"
            texts.append(report.read_text(encoding="utf-8") if report.exists() else "")
        return "\n".join(texts)

    def verify(self, scenario: Scenario) -> None:
        """Compare with what is expected."""
        expect, site, slurm = scenario.expect, self.scripted.site, self.scripted.slurm
        found = [story(site, run) for run in self.runs()]
        assert [one.ran() for one in found] == list(expect.runs)
        assert len(slurm.calls("sbatch")) == expect.sbatch, slurm.calls("sbatch")
        taken = Told.ours(slurm.cluster())
        assert len(taken) == expect.jobs, taken
        assert sum(bool(job.exclude) for job in slurm.cluster().jobs) == expect.excluding
        lacking = set(expect.rules) - self.seen
        assert not lacking, f"not seen: {lacking}; seen: {sorted(self.seen)}"
        assert not set(expect.never) & self.seen
        told = self.everything_told()
        for words in expect.words:
            assert words in told, f"nobody was told {words!r}:\n{told}"
        for words in expect.unsaid:
            assert words not in told, f"somebody was told {words!r}:\n{told}"
        for one in found:
            one.nothing_doubled(slurm.cluster())
        idle = [fault for fault in slurm.cluster().faults if fault.used < max(fault.times, 1)]
        assert not idle, f"never struck, or not so often: {idle}"


def _me(user: str) -> str:
    return Call((), {}, uid=os.geteuid()).user if user == "me" else user


def _again(jobs: list[Job], job: Job, element: Element) -> tuple[Job, Element]:
    """The same two in another copy of the state."""
    ours = next(one for one in jobs if one.name == job.name and not one.past)
    return ours, next(one for one in ours.elements if one.task == element.task)
