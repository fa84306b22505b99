"""How far a sweep has come: what a proposal brought, and refills that every pass finds again."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outerloop_hpc.engine.kind import Outcome, View
from outerloop_hpc.engine.spec import StepSpec
from outerloop_hpc.evolve.cells import Stage
from outerloop_hpc.evolve.course import Filled, filled, lacking, proposed, stage_of
from outerloop_hpc.evolve.gate.screening import Screened, screen
from outerloop_hpc.evolve.given import CellGiven
from tests.unit.engine.made import T0
from tests.unit.evolve.played import A, B, done, measured, policy, proposal, spec_of, work

pytestmark = pytest.mark.unit

NONE: frozenset[str] = frozenset()
Loses = Callable[[CellGiven], bool]


def outcome(told: dict[str, object]) -> Outcome:
    return Outcome("record", str(told["record_outcome"]), told["payload"], str(told["reason"]))  # type: ignore[arg-type]


def test_new_candidates_are_told_from_known_ones() -> None:
    found = proposed(outcome(proposal(A, B)), frozenset({A}))
    assert [one.digest for one in found.candidates] == [B]
    assert not found.failed


def test_only_known_candidates_are_a_failure_that_says_so() -> None:
    assert "was measured before" in proposed(outcome(proposal(A)), frozenset({A})).failed


def test_known_candidates_of_a_proposer_that_has_no_more_are_its_end() -> None:
    found = proposed(outcome(proposal(A, exhausted=True)), frozenset({A}))
    assert (found.candidates, found.failed, found.exhausted) == ((), "", True)


@pytest.mark.parametrize(
    ("told", "why"),
    [
        (Outcome("tries exhausted", reason="NODE_FAIL"), "tries exhausted: NODE_FAIL"),
        (outcome(done({}, "failed", "exit 3")), "exit 3"),
        (outcome(proposal(because="b: denied")), "b: denied"),
        (outcome(proposal()), "it proposed nothing"),
        (outcome(done({"candidates": 3})), "its record cannot be read"),
    ],
)
def test_what_brings_no_candidate_says_why(told: Outcome, why: str) -> None:
    assert why in proposed(told, NONE).failed


def test_a_second_look_has_the_first_one_s_pairs_and_more() -> None:
    made = work()
    assert stage_of(made, 0, "confirm", [A]).repeats == {"t0": 4, "t1": 4}
    assert stage_of(made, 0, "confirm", [A], 2).repeats == {"t0": 8, "t1": 8}
    assert stage_of(made, 0, "screen", [A]).repeats == {"t0": 2, "t1": 2}


def fill(stage: Stage, loses: Loses) -> tuple[Filled, int]:
    """Settle all that is wanted until nothing more is; returns how often more was."""
    made, known, rounds = work(), dict[str, Outcome](), 0
    steps: dict[str, StepSpec] = {}
    while True:
        seen = filled(spec_of(made), made, stage, View(lambda: spec_of(made), steps, known, 0, T0))
        if seen.found is not None:
            return seen, rounds
        rounds += 1
        for step in seen.steps:
            lost = loses(CellGiven.model_validate(step.parameters))
            steps[step.key] = step
            known[step.key] = Outcome("tries exhausted") if lost else outcome(measured(step))


@given(st.sets(st.tuples(st.sampled_from(["t0", "t1"]), st.integers(0, 11), st.booleans())), st.integers(1, 8))
@settings(max_examples=40, deadline=None)
def test_refills_end_stay_within_half_of_the_plan_and_leave_no_gap_that_may_be_filled(
    losses: set[tuple[str, int, bool]], planned: int
) -> None:
    stage = Stage(0, "confirm", (A,), {"t0": planned, "t1": planned})
    seen, rounds = fill(stage, lambda cell: (cell.task, cell.repeat, bool(cell.overlay)) in losses)
    assert seen.found is not None
    most = planned + max(1, planned // 2)
    for task, count in seen.stage.repeats.items():
        whole = sum(
            one.task == task and one.incumbent.word == "measured" == one.candidate.word for one in seen.found.pairs[A]
        )
        assert planned <= count <= most
        assert whole == planned or count == most
    assert rounds <= 1 + most


def test_a_whole_stage_wants_no_refills() -> None:
    seen, rounds = fill(Stage(0, "screen", (A,), {"t0": 2, "t1": 2}), lambda _: False)
    assert (rounds, dict(seen.stage.repeats)) == (1, {"t0": 2, "t1": 2})


def test_refills_are_as_many_as_the_candidate_that_lacks_most_wants() -> None:
    seen, _ = fill(
        Stage(0, "screen", (A, B), {"t0": 4}), lambda cell: (cell.overlay, cell.repeat) in {(A, 0), (B, 1), (B, 2)}
    )
    assert seen.stage.repeats == {"t0": 6}


def screened(loses: Loses) -> Screened:
    seen, _ = fill(Stage(0, "screen", (A,), {"t0": 2, "t1": 2}), loses)
    assert seen.found is not None
    return screen(policy(), seen.found.pairs, tasks=["t0", "t1"], generation=0, salt="d")


@pytest.mark.parametrize(
    ("loses", "lacks"),
    [
        (lambda _: False, False),
        (lambda cell: cell.repeat == 0, False),
        (lambda cell: cell.task == "t1" and cell.repeat != 1, True),
        (lambda cell: bool(cell.overlay) and cell.repeat == 0, True),
    ],
)
def test_a_screening_without_whole_pairs_or_with_lopsided_losses_is_no_verdict(loses: Loses, lacks: bool) -> None:
    assert lacking(screened(loses)) is lacks
