"""What holds for any evidence: order, losses, chance and rounding do not promote."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from outerloop_hpc.documents import decode
from outerloop_hpc.evolve.gate.decide import recompute
from outerloop_hpc.evolve.gate.decision import GateDecision
from outerloop_hpc.evolve.gate.pairs import Pair, Reading
from outerloop_hpc.evolve.gate.policy import GatePolicy, Guardrail, Metric, Success
from tests.unit.evolve.gate.made import BETTER, FAILED, MISSING, TASKS, decided, everywhere, measured, pair, policy

pytestmark = pytest.mark.unit

_FIVE: dict[str, Any] = {"repeats": {"screen": 3, "confirm": 5, "most": 5}}
_TEN: dict[str, Any] = {"repeats": {"screen": 3, "confirm": 5, "most": 10}}
_MEMORY = Guardrail(name="memory", direction="min", max_regression=0.1)
PAIRED = st.sampled_from(
    [
        policy(**_FIVE),
        policy(**_TEN, generations=2),
        policy(**_FIVE, success=Success()),
        policy(**_FIVE, success=Success(deterministic=False, margin=0.6)),
        policy(**_FIVE, guardrails=(_MEMORY,)),
        policy(**_FIVE, primary=Metric(name="seconds", direction="max", scale="linear", min_effect=1.0)),
    ]
)
RULES = PAIRED | st.just(policy(**_FIVE, kind="medians-v5"))
NUMBER = st.floats(1.0, 200.0)


@st.composite
def readings(draw: st.DrawFn, around: float) -> Reading:
    """Draw a reading; most of them measured, around a number."""
    word = draw(st.sampled_from(["measured"] * 20 + ["failed"] + ["missing"]))
    if word != "measured":
        return FAILED if word == "failed" else MISSING
    seconds = around * draw(st.floats(0.8, 1.25))
    success = draw(st.sampled_from([None, None, True, True, False]))
    return measured(seconds, success=success, memory=draw(st.floats(9.5, 10.0)))


@st.composite
def evidence(draw: st.DrawFn) -> list[Pair]:
    """Draw five pairs a task, at times one fewer or more."""
    candidate = draw(st.sampled_from([100.0, 100.0, 60.0, 140.0]))
    return [
        pair(task, repeat, draw(readings(100.0)), draw(readings(candidate)))
        for task in TASKS
        for repeat in range(draw(st.sampled_from([5, 5, 5, 4, 6])))
    ]


@settings(max_examples=60, deadline=None)
@given(RULES, evidence(), st.randoms(use_true_random=False))
def test_the_order_of_rows_changes_no_byte(rules: GatePolicy, rows: list[Pair], source: random.Random) -> None:
    shuffled = source.sample(rows, len(rows))
    tasks = source.sample(TASKS, len(TASKS))
    assert decided(shuffled, rules, tasks=tasks).encoded() == decided(rows, rules).encoded()


@settings(max_examples=60, deadline=None)
@given(RULES, evidence())
def test_a_document_that_was_written_is_recomputed_byte_for_byte(rules: GatePolicy, rows: list[Pair]) -> None:
    written = decided(rows, rules).encoded()
    assert recompute(decode(GateDecision, written, Path("decision.json"))).encoded() == written


def test_a_document_that_was_changed_is_not_what_is_recomputed() -> None:
    written = decided(everywhere(BETTER)).encoded()
    for old, new in ((b'"decision":"promote"', b'"decision":"extend"'), (b'"seconds":82.0', b'"seconds":82.5')):
        changed = decode(GateDecision, written.replace(old, new, 1), Path("decision.json"))
        assert recompute(changed).encoded() != changed.encoded()


@st.composite
def planned(draw: st.DrawFn) -> list[Pair]:
    """Draw whole pairs, as many as were planned, in which a loss may make the difference."""
    numbers = st.floats(55.0, 118.0)
    return [
        pair(task, repeat, measured(100.0, memory=10.0), measured(draw(numbers), memory=draw(st.floats(9.0, 11.5))))
        for task in TASKS
        for repeat in range(5)
    ]


@settings(max_examples=60, deadline=None)
@given(PAIRED, planned(), st.integers(0, 14), st.sampled_from(["gone", "incumbent", "candidate", "both"]))
def test_losing_a_cell_never_promotes(rules: GatePolicy, rows: list[Pair], index: int, how: str) -> None:
    if decided(rows, rules).decision == "promote":
        return
    arms = {"gone": [], "both": ["incumbent", "candidate"]}.get(how, [how])
    lost = [rows[index].model_copy(update=dict.fromkeys(arms, MISSING))] if arms else []
    assert decided([*rows[:index], *lost, *rows[index + 1 :]], rules).decision != "promote"


def test_the_pair_that_speaks_against_a_candidate_cannot_be_lost_to_its_good() -> None:
    rules = policy(**_FIVE, level=0.04)
    against = [pair(one.task, one.repeat, one.incumbent, measured(400.0)) for one in everywhere(BETTER[:1])]
    rows = [*against, *(one for one in everywhere(BETTER[:5]) if one.repeat)]
    assert decided(rows, rules).decision != "promote"
    assert decided([one for one in rows if one.repeat], rules).decision == "insufficient_evidence"


@settings(max_examples=60, deadline=None)
@given(planned(), st.sampled_from([0.0, 0.03, 0.05, 0.1, 0.2]))
def test_the_decision_follows_from_unrounded_numbers(rows: list[Pair], least: float) -> None:
    rules = policy(**_FIVE, primary=Metric(name="seconds", direction="min", min_effect=least))
    found = decided(rows, rules)
    tasks = {
        task: [math.log(100.0 / one.candidate.metrics["seconds"]) for one in rows if one.task == task] for task in TASKS
    }
    gain = 1 - math.exp(-sum(sum(values) / 5 for values in tasks.values()) / 3)
    assume(abs(gain - least) > 1e-9)
    assert found.p is not None
    harmless = all(one.harm == "none" for one in found.found)
    assert (found.decision == "promote") == (gain >= least and found.p <= 0.05 and harmless)


@pytest.mark.parametrize(("seconds", "word"), [(95.0 - 1e-9, "promote"), (95.0 + 1e-9, "keep_incumbent")])
def test_a_gain_that_is_shown_as_the_one_asked_for_need_not_be_it(seconds: float, word: str) -> None:
    found = decided(everywhere([seconds] * 10))
    assert (found.decision, "a gain of 5 %" in found.reasons[0]) == (word, True)


@pytest.mark.parametrize(("level", "word"), [(1 / 32, "promote"), (math.nextafter(1 / 32, 0), "insufficient_evidence")])
def test_a_p_that_is_shown_as_the_level_need_not_be_it(level: float, word: str) -> None:
    rows = [one for one in everywhere(BETTER[:5]) if one.task == "a"]
    assert decided(rows, policy(**_FIVE, level=level), tasks=["a"]).decision == word


@pytest.mark.parametrize(("level", "word"), [(0.0313, "promote"), (0.0312, "keep_incumbent")])
def test_a_p_just_above_the_level_is_above_it(level: float, word: str) -> None:
    # Two of 64 sign patterns are as good as five gains beside a small loss: p is 0.03125.
    rows = [pair("a", n, measured(100.0), measured(seconds)) for n, seconds in enumerate([*BETTER[:5], 101.0])]
    rules = policy(repeats={"screen": 3, "confirm": 6, "most": 6}, level=level)
    assert decided(rows, rules, tasks=["a"]).decision == word


def test_equal_arms_are_promoted_at_most_as_often_as_the_level_says() -> None:
    # 600 sweeps of two looks in which any gain would do; the margin is three standard errors of a share of 5 %.
    source, sweeps, promoted = random.Random(20_261_130), 600, 0
    rules = policy(
        repeats={"screen": 3, "confirm": 4, "most": 8}, primary=Metric(name="seconds", direction="min", min_effect=0)
    )
    for _ in range(sweeps):
        rows = [
            pair(task, n, measured(math.exp(source.gauss(0, 0.3))), measured(math.exp(source.gauss(0, 0.3))))
            for task in TASKS
            for n in range(8)
        ]
        first = decided([one for one in rows if one.repeat < 4], rules)
        last = decided(rows, rules, look=2) if first.decision == "extend" else first
        promoted += last.decision == "promote"
    assert 0 < promoted <= sweeps * (0.05 + 3 * math.sqrt(0.05 * 0.95 / sweeps))


def test_equal_arms_do_not_win_twice_by_metric_and_by_success() -> None:
    source, sweeps, promoted = random.Random(7), 600, 0
    rules = policy(
        repeats={"screen": 3, "confirm": 8, "most": 8},
        primary=Metric(name="seconds", direction="min", min_effect=0),
        success=Success(deterministic=False, margin=0.9),
    )
    for _ in range(sweeps):
        rows = [
            pair(task, n, *(measured(math.exp(source.gauss(0, 0.3)), success=source.random() < 0.6) for _ in range(2)))
            for task in TASKS
            for n in range(8)
        ]
        promoted += decided(rows, rules).decision == "promote"
    assert 0 < promoted <= sweeps * (0.05 + 3 * math.sqrt(0.05 * 0.95 / sweeps))
