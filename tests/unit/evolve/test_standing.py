"""How a sweep stands, from its fold alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from outerloop_hpc.cli.sweeprows import said, sweep_rows, verdict_status
from outerloop_hpc.engine import events as ev
from outerloop_hpc.engine import runs
from outerloop_hpc.engine.layout import Layout
from outerloop_hpc.engine.spec import ResourceAsk, RunSpec, step_spec
from outerloop_hpc.engine.state import RunState
from outerloop_hpc.errors import Exit
from outerloop_hpc.evolve.cells import Stage, cells_of, steps_of
from outerloop_hpc.evolve.gate.policy import GatePolicy, Metric
from outerloop_hpc.evolve.standing import standing
from outerloop_hpc.evolve.work import Dirs, EvolveWork, OverlayRules, Task, dump
from tests.unit.engine.made import T0, fold, intended

pytestmark = pytest.mark.unit

A, B = "a" * 64, "b" * 64
ASK = ResourceAsk(minutes=6)


def work(unit: str = "cell") -> EvolveWork:
    return EvolveWork(
        name="rates",
        document="d",
        overlay=OverlayRules(allow=("solver",)),
        proposer=Dirs(digests=(A, B)),
        candidates=2,
        tasks=tuple(
            Task(id=name, commit="c", tree="t", command=("true",), timeout_s=1, resources=ASK)
            for name in ("one", "two")
        ),
        unit=unit,
        gate=GatePolicy(primary=Metric(name="cost", direction="min")),
        base={"solver": "0"},
        proposing=ASK,
    )


def spec_of(given: EvolveWork) -> RunSpec:
    return RunSpec(
        run="evolve-t-20261129T120000Z-0123abcd",
        kind="evolve",
        target="t",
        commit="c",
        cause="sweep",
        made_at=T0,
        made_by="ann",
        work=dump(given),
    )


class Sweep:
    """A sweep in its screening stage."""

    def __init__(self, unit: str = "cell") -> None:
        self.work = work(unit)
        self.spec = spec_of(self.work)
        self.stage = Stage(0, "screen", (A, B), {"one": 2, "two": 2})
        self.steps = steps_of(self.spec, self.work, self.stage)
        self.cells = cells_of(self.work, self.stage)
        self.state = fold(
            RunState(run=self.spec.run),
            ev.RunStarted(spec_digest="x"),
            ev.StepsWanted(steps=self.steps, reason="screen"),
            intended("ol.t.cell.00", *((step.key, 1) for step in self.steps[:-1])),
            ev.SubmissionBound(name="ol.t.cell.00", job_id="7"),
        )

    def found(self, place: int, costs: dict[str, float], **more: Any) -> None:
        """A cell's record: the cost of each arm; one without a cost failed."""
        cell = self.cells[place]
        arms = [
            {"arm": arm, "word": "measured", "metrics": {"cost": costs[arm]}}
            if arm in costs
            else {"arm": arm, "word": "failed"}
            for arm in cell.arms
        ]
        payload = {"cell": cell.cell, "task": cell.task, "seed": cell.seed, "arms": arms}
        self.ended(place, "done", record_outcome="completed", payload=payload, **more)

    def ended(self, place: int, outcome: ev.TryOutcome, **more: Any) -> None:
        key = self.steps[place].key
        self.state = fold(
            self.state, ev.TryEnded(step=key, try_number=1, outcome=outcome, rule="r", reason="why", **more)
        )


def place_of(sweep: Sweep, task: str, repeat: int, overlay: str) -> int:
    return next(i for i, c in enumerate(sweep.cells) if (c.task, c.repeat, c.overlay) == (task, repeat, overlay))


def test_a_sweep_that_has_not_begun_says_so() -> None:
    given = work()
    found = standing(spec_of(given), RunState(run="r"), T0)
    assert (found.stage, found.cells, found.gain) == ("", 0, None)
    assert said(spec_of(given), found).startswith("generation 0, not begun, 0 of 0 cells done")


def test_cells_are_counted_by_what_became_of_them() -> None:
    sweep = Sweep()
    sweep.found(0, {"incumbent": 10.0})
    sweep.found(1, {})
    sweep.ended(2, "cancelled")
    found = standing(sweep.spec, sweep.state, T0)
    assert (found.done, found.failed, found.lost, found.running, found.waiting) == (2, 1, 1, 8, 1)
    assert found.cells == len(sweep.cells) == 12
    assert "2 of 12 cells done, 8 running, 1 to be submitted, 1 with a failed arm, 1 lost" in said(sweep.spec, found)


@pytest.mark.parametrize("unit", ["cell", "pair"])
def test_the_estimate_so_far_is_of_whole_pairs_and_of_the_best_candidate(unit: str) -> None:
    sweep = Sweep(unit)
    for digest, cost in ((A, 12.0), (B, 8.0)):
        if unit == "pair":
            sweep.found(place_of(sweep, "one", 0, digest), {"incumbent": 10.0, "candidate": cost})
        else:
            sweep.found(place_of(sweep, "one", 0, digest), {"candidate": cost})
            sweep.found(place_of(sweep, "two", 0, digest), {"candidate": 1.0})
    if unit == "cell":
        assert standing(sweep.spec, sweep.state, T0).gain is None, "no incumbent to compare with"
        sweep.found(place_of(sweep, "one", 0, ""), {"incumbent": 10.0})
    found = standing(sweep.spec, sweep.state, T0)
    assert (found.best, found.pairs) == (B, 1)
    assert found.gain == pytest.approx(0.2)
    assert f"best {B[:12]}: a gain of 20 % over 1 pairs" in said(sweep.spec, found)


def test_a_pilot_shows_no_gain_of_the_incumbent_beside_itself() -> None:
    sweep = Sweep()
    found = replace(standing(sweep.spec, sweep.state, T0), best="", gain=0.0, pairs=3)
    assert "best" not in said(sweep.spec, found)


def test_a_proposal_that_follows_is_the_newest_stage_and_has_no_estimate() -> None:
    sweep = Sweep("pair")
    sweep.found(0, {"incumbent": 10.0, "candidate": 8.0})
    step = step_spec(
        sweep.spec, job="propose", cause="g", body="x", resources=ASK, parameters={}, max_tries=1, round_=1
    )
    state = fold(sweep.state, ev.StepsWanted(steps=(step,), reason="propose"))
    found = standing(sweep.spec, state, T0)
    assert (found.generation, found.stage, found.gain) == (1, "propose", None)
    assert found.cells == len(sweep.cells)


@pytest.mark.parametrize(
    ("ending", "status"),
    [
        ("promoted", Exit.DONE),
        ("piloted", Exit.DONE),
        ("kept", Exit.FINDINGS),
        ("insufficient", Exit.FINDINGS),
        ("out of budget", Exit.FINDINGS),
        ("operator", Exit.FINDINGS),
        ("proposer gave up", Exit.PARTLY_FAILED),
        ("harness broken", Exit.HARNESS_BROKEN),
        ("halted", Exit.HALTED),
    ],
)
def test_every_verdict_has_its_exit_status(ending: str, status: Exit) -> None:
    state = fold(RunState(run="r"), ev.RunEnded(ending=ending, reason="why"))
    assert verdict_status(state) is status


def test_a_sweep_without_a_verdict_is_in_progress_or_waits_for_a_person() -> None:
    state = RunState(run="r")
    assert verdict_status(state) is Exit.IN_PROGRESS
    assert verdict_status(fold(state, ev.RunParked(question="?", reason="!"))) is Exit.WAITS_FOR_PERSON


def test_a_record_that_cannot_be_read_keeps_nobody_from_seeing_how_the_sweep_stands() -> None:
    sweep = Sweep()
    sweep.found(0, {"incumbent": 10.0})
    sweep.ended(1, "done", record_outcome="completed", payload={"arms": "?"})
    found = standing(sweep.spec, sweep.state, T0)
    assert (found.done, found.lost) == (1, 1)


def test_a_damaged_sweep_hides_no_other_from_a_list(tmp_path: Path) -> None:
    layout, given = Layout(tmp_path), spec_of(work())
    for name, spec in (("1", given), ("2", given.model_copy(update={"work": {"name": 7}}))):
        runs.ensure(layout, spec.model_copy(update={"run": f"{given.run[:-1]}{name}"}))
    rows = {str(row["run"]): row for row in sweep_rows(layout, T0, everything=False)}
    assert [str(rows[run]["phase"]) for run in sorted(rows)] == ["new", "faulty"]
    assert "work.name" in str(rows[f"{given.run[:-1]}2"]["reason"])


def test_a_candidate_whose_answers_are_wrong_has_no_gain() -> None:
    sweep = Sweep("pair")
    cell = sweep.cells[0]
    arms = [
        {"arm": "incumbent", "word": "measured", "metrics": {"cost": 10.0}, "success": True},
        {"arm": "candidate", "word": "measured", "metrics": {"cost": 1.0}, "success": False, "overlay": cell.overlay},
    ]
    payload = {"cell": cell.cell, "task": cell.task, "seed": cell.seed, "arms": arms}
    sweep.ended(0, "done", record_outcome="completed", payload=payload)
    found = standing(sweep.spec, sweep.state, T0)
    assert (found.done, found.gain, found.pairs) == (1, None, 0)
