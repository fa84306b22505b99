"""The benchmark kind: every seed once, then a verdict that its history agrees with."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import pytest

from outerloop_hpc.benchmark.plan import BenchmarkKind, history_point
from outerloop_hpc.benchmark.work import BenchmarkWork, Earlier, default_seeds, dump, work_of
from outerloop_hpc.documents import decode
from outerloop_hpc.engine import events as ev
from outerloop_hpc.engine.kind import Ask, Decision, End, Outcome, Submit, View, view_of
from outerloop_hpc.engine.spec import RunSpec
from outerloop_hpc.engine.state import RunState, Snapshot, StepWord
from outerloop_hpc.measure.history import Point
from tests.unit.benchmark.made import any_work
from tests.unit.engine.made import RUN, SPEC, T0, after, fold, intended

pytestmark = pytest.mark.unit

SEEDS = (11, 22, 33)
KIND = BenchmarkKind()
Payloads = Mapping[int, tuple[Literal["completed", "failed"], dict[str, Any]]]


def work(**more: Any) -> BenchmarkWork:
    return any_work(**{"seeds": SEEDS, **more})


def spec(**more: Any) -> RunSpec:
    return SPEC.model_copy(update={"work": dump(work(**more))})


def steps_of(made: RunSpec) -> Submit:
    (submit,) = KIND.plan(View(lambda: made, {}, {}, 0, T0))
    assert isinstance(submit, Submit)
    return submit


def outcome(word: StepWord, record_outcome: str = "", reason: str = "", **payload: Any) -> Outcome:
    return Outcome(word, record_outcome, payload, reason)


def decide(*outcomes: Outcome | None, made: RunSpec | None = None) -> tuple[Decision, ...]:
    made = made or spec()
    steps = steps_of(made).steps
    settled = {s.key: o for s, o in zip(steps, outcomes, strict=True) if o is not None}
    return KIND.plan(View(lambda: made, {s.key: s for s in steps}, settled, 0, T0))


def ended(*outcomes: Outcome) -> End:
    (end,) = decide(*outcomes)
    assert isinstance(end, End)
    return end


def value(number: float) -> Outcome:
    return outcome("record", "completed", value=number)


PENDING = None


def test_every_seed_is_one_step_and_all_are_wanted_at_once() -> None:
    submit = steps_of(spec())
    assert [s.parameters for s in submit.steps] == [{"seed": seed} for seed in SEEDS]
    assert len({s.key for s in submit.steps}) == 3
    assert {s.job for s in submit.steps} == {"measure"}
    assert {s.cause for s in submit.steps} == {"tree 7ree"}
    assert submit == steps_of(spec())
    assert "3 seeds" in submit.reason


def test_another_run_or_image_makes_other_steps() -> None:
    made = spec()
    others = [made.model_copy(update={"run": "other"}), spec(tree="another")]
    keys = {s.key for one in (made, *others) for s in steps_of(one).steps}
    assert len(keys) == 9


def test_nothing_is_decided_while_a_seed_is_under_way() -> None:
    assert decide(PENDING, PENDING, PENDING) == ()
    assert decide(value(1), outcome("tries exhausted"), PENDING) == ()


def test_all_seeds_measured() -> None:
    end = ended(value(0.5), value(0.7), value(0.6))
    assert end.ending == "measured"
    assert end.result == {"values": {"11": 0.5, "22": 0.7, "33": 0.6}, "failed": {}}
    assert "3 of 3 seeds measured: acc: median 0.6, from 0.5 to 0.7" in end.reason


@pytest.mark.parametrize(
    ("lacking", "why"),
    [
        (outcome("record", "failed", "exit status 1"), "exit status 1"),
        (outcome("record", "refused", "no image"), "no image"),
        (outcome("timed out", "timed_out", "walltime"), "walltime"),
        (outcome("out of memory"), "out of memory"),
        (outcome("tries exhausted", "infrastructure", "no scratch", value=3.0), "no scratch"),
        (outcome("withdrawn"), "withdrawn"),
        (outcome("record", "completed", "no number in it"), "no number in it"),
        (outcome("record", "completed", "a word", value="0.5"), "a word"),
        (outcome("record", "completed", "a truth", value=True), "a truth"),
        (outcome("record", "completed", "too much", value=float("inf")), "too much"),
    ],
)
def test_a_seed_without_a_number_makes_the_rest_partly_measured(lacking: Outcome, why: str) -> None:
    end = ended(value(0.5), lacking, value(0.6))
    assert end.ending == "partly measured"
    assert end.result == {"values": {"11": 0.5, "33": 0.6}, "failed": {"22": why}}


def test_no_seed_measured() -> None:
    failed = outcome("record", "failed", "exit status 1")
    refused = outcome("record", "refused", "no such commit")
    assert ended(failed, failed, refused).ending == "failed"
    assert ended(refused, refused, refused).ending == "refused"
    assert "no such commit" in ended(refused, refused, refused).reason
    assert ended(refused, refused, refused).result["values"] == {}


def test_a_person_who_cancels_is_asked_even_while_others_are_under_way() -> None:
    (ask,) = decide(value(1), outcome("cancelled by a person", reason="by uid 0"), PENDING)
    assert isinstance(ask, Ask)
    assert f"runs resume {RUN} --reason" in ask.question  # without one the command refuses
    assert f"runs end {RUN}" in ask.question
    assert ask.reason == "by uid 0"
    (ask,) = decide(*[outcome("cancelled by a person")] * 3)
    assert isinstance(ask, Ask)
    assert "3 measurements" in ask.question


# --- the history point ----------------------------------------------------------------------------------------------


def settled(made: RunSpec, payloads: Payloads) -> RunState:
    """A run whose steps all have a record, as the engine would leave it."""
    state = fold(RunState(run=RUN), ev.RunStarted(spec_digest="d"))
    submit = steps_of(made)
    state = fold(state, ev.StepsWanted(steps=submit.steps, reason=submit.reason))
    state = fold(state, intended("sub", *((s.key, 1) for s in submit.steps)))
    for one in submit.steps:
        word, payload = payloads[one.parameters["seed"]]
        done = ev.TryEnded(
            step=one.key,
            try_number=1,
            outcome="done",
            rule="record.final",
            reason="",
            record_outcome=word,
            payload=payload,
        )
        state = fold(state, done)
    (end,) = KIND.plan(view_of(lambda: made, state, T0))
    assert isinstance(end, End)
    return fold(state, ev.RunEnded(ending=end.ending, reason=end.reason, result=dict(end.result)), at=after(99))


def test_the_point_is_the_same_whoever_makes_it_and_whenever() -> None:
    made = spec(earlier=Earlier(run="r", commit="c", values={11: 0.4}))
    payloads: Payloads = {seed: ("completed", {"value": seed / 100, "node": "n1", "seconds": 2.0}) for seed in SEEDS}
    state = settled(made, payloads)
    (path, data), *others = KIND.documents(made, state).items()
    assert others == []
    assert path == f"results/iris/accuracy/{RUN}.json"
    again = decode(Snapshot, Snapshot(folded_by="x", state=state).encoded(), Path("x")).state
    assert KIND.documents(made, again) == {path: data}
    point = history_point(made, state)
    assert point is not None
    assert (point.median, point.minimum, point.maximum) == (0.22, 0.11, 0.33)
    assert point.values() == {11: 0.11, 22: 0.22, 33: 0.33}
    assert point.at == after(99)
    assert point.encoded() == data
    assert isinstance(point, Point)


def test_a_record_without_a_number_keeps_no_run_from_closing() -> None:
    made = spec()
    state = settled(made, {11: ("completed", {"value": 1}), 22: ("completed", {}), 33: ("failed", {"value": 9})})
    assert state.ended is not None
    assert state.ended.ending == "partly measured"
    point = history_point(made, state)
    assert point is not None
    assert point.values() == {11: 1.0}


def test_numbers_whose_differences_overflow_keep_no_run_from_closing() -> None:
    made = spec(earlier=Earlier(run="r", commit="0123456789abcdef", values=dict.fromkeys(SEEDS, -1.7e308)))
    state = settled(made, dict.fromkeys(SEEDS, ("completed", {"value": 1.7e308})))
    assert state.ended is not None
    assert state.ended.ending == "measured"
    (document,) = KIND.documents(made, state).values()
    assert b"Infinity" not in document
    assert "Against commit `0123456789ab`: **" in KIND.report(made, state)


def test_a_run_that_measured_nothing_or_goes_on_leaves_no_point() -> None:
    made = spec()
    assert KIND.documents(made, settled(made, dict.fromkeys(SEEDS, ("failed", {})))) == {}
    assert history_point(made, RunState(run=RUN)) is None


def test_the_report_says_every_seed_and_the_comparison() -> None:
    made = spec(earlier=Earlier(run="r", commit="0123456789abcdef", values={11: 0.4}))
    state = settled(made, {11: ("completed", {"value": 0.5}), 22: ("failed", {}), 33: ("completed", {"value": 0.75})})
    text = KIND.report(made, state)
    assert "| 11 | 0.5 |" in text
    assert "| 22 | record |" in text
    assert "| 33 | 0.75 |" in text
    assert "Against commit `0123456789ab`: **too few**" in text
    assert "no earlier commit" in KIND.report(spec(), state)


def test_the_report_keeps_a_metric_inside_its_line() -> None:
    made = spec(metric="acc`\n# Forged <b>")
    text = KIND.report(made, settled(made, dict.fromkeys(SEEDS, ("completed", {"value": 1.0}))))
    assert "\n# Forged" not in text
    assert "<b>" not in text


def test_the_work_survives_its_way_through_the_specification() -> None:
    made = work(earlier=Earlier(run="r", commit="c", values={11: 0.4}), seed_env="SEED")
    stored = decode(RunSpec, SPEC.model_copy(update={"work": dump(made)}).encoded(), Path("x"))
    assert work_of(stored) == made


def test_default_seeds_never_change() -> None:
    """Other seeds would end every comparison with the history; these values are part of the contract."""
    assert default_seeds("iris", "accuracy", 5) == (1041847411, 131945760, 456257618, 2049114839, 1126106024)
    assert default_seeds("iris", "accuracy", 3) == default_seeds("iris", "accuracy", 5)[:3]
    assert default_seeds("iris", "loss", 5) != default_seeds("iris", "accuracy", 5)
    assert default_seeds("rose", "accuracy", 5) != default_seeds("iris", "accuracy", 5)
    assert len(set(default_seeds("iris", "accuracy", 100))) == 100
    assert all(0 <= seed < 2**31 for seed in default_seeds("iris", "accuracy", 100))
