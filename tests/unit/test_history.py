"""What an ended benchmark run adds to the history."""

from __future__ import annotations

from typing import Any

import pytest

from outerloop_hpc.benchmark.plan import history_point
from outerloop_hpc.benchmark.work import BenchmarkWork, dump
from outerloop_hpc.engine import events as ev
from outerloop_hpc.engine.spec import ResourceAsk
from outerloop_hpc.engine.state import RunState
from tests.unit.engine.made import RUN, SPEC, fold, intended, step

pytestmark = pytest.mark.unit

WORK = BenchmarkWork(
    benchmark="accuracy",
    command="true",
    metric="accuracy",
    direction="max",
    eval_minutes=1,
    tree="t",
    contract_digest="d",
    seeds=(1, 2),
    resources=ResourceAsk(minutes=1),
)
BENCHMARK = SPEC.model_copy(update={"work": dump(WORK)})
STEPS = tuple(step(f"measure-{seed}", parameters={"seed": seed}) for seed in (1, 2))


def measured(seed: int) -> ev.TryEnded:
    payload: dict[str, Any] = {"value": 0.5 + seed}
    return ev.TryEnded(
        step=f"measure-{seed}",
        try_number=1,
        outcome="done",
        rule="record.final",
        reason="measured",
        record_outcome="completed",
        payload=payload,
    )


def started() -> RunState:
    wanted = ev.StepsWanted(steps=STEPS, reason="as told")
    return fold(RunState(run=RUN), wanted, intended("a", ("measure-1", 1), ("measure-2", 1)))


def test_a_record_after_the_ending_does_not_change_the_point_that_was_published() -> None:
    verdict = ev.RunEnded(ending="partly measured", reason="one of two", result={"values": {"1": 1.5}})
    ended = fold(started(), measured(1), verdict)
    published = history_point(BENCHMARK, ended)
    assert published is not None
    assert published.values() == {1: 1.5}
    assert history_point(BENCHMARK, fold(ended, measured(2))) == published


def test_a_run_that_a_person_ended_adds_nothing() -> None:
    ended = fold(started(), measured(1), ev.RunEnded(ending="operator", reason="ann: enough"))
    assert history_point(BENCHMARK, ended) is None
