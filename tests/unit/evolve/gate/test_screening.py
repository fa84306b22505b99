"""Which of several candidates goes on, and why the others do not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from outerloop_hpc.documents import decode
from outerloop_hpc.errors import UsageError
from outerloop_hpc.evolve.gate.pairs import Pair
from outerloop_hpc.evolve.gate.policy import GatePolicy, Success
from outerloop_hpc.evolve.gate.screening import Screened, recompute, screen
from tests.unit.evolve.gate.made import (
    BETTER,
    EQUAL,
    FAILED,
    MISSING,
    SALT,
    TASKS,
    answers,
    everywhere,
    pair,
    policy,
    with_reading,
)

pytestmark = pytest.mark.unit

GOOD = everywhere(BETTER[:3])
YES, NO = True, False


def screened(
    given: Mapping[str, Iterable[Pair]],
    rules: GatePolicy | None = None,
    tasks: Iterable[str] = TASKS,
    generation: int = 0,
) -> Screened:
    return screen(rules or policy(), given, tasks=tasks, generation=generation, salt=SALT)


def reasons(found: Screened) -> dict[str, str]:
    return {one.digest: one.reason for one in found.candidates}


def test_the_best_of_those_that_pass_is_confirmed() -> None:
    found = screened({"d1": everywhere([90.0, 91.0, 89.0]), "d2": GOOD, "d3": everywhere(EQUAL[:3])})
    assert (found.decision, found.chosen) == ("confirm", "d2")
    assert found.reason == "d2 is the best of 2 that passed, of 3"
    assert [one.passed for one in found.candidates] == [True, True, False]
    assert reasons(found)["d3"] == "a gain of -0.9868 % is below 5 %, which is asked for"


def test_a_gain_that_may_be_chance_does_not_pass() -> None:
    found = screened({"d": everywhere([50.0, 160.0, 95.0])})
    assert (found.decision, found.chosen) == ("none", "")
    assert "may be chance: p = " in reasons(found)["d"]


def test_of_equal_candidates_the_first_digest_goes_whatever_the_order() -> None:
    assert screened({"b": GOOD, "a": GOOD}).encoded() == screened({"a": GOOD, "b": GOOD}).encoded()
    assert screened({"b": GOOD, "a": GOOD}).chosen == "a"


def test_a_candidate_that_fails_where_the_incumbent_does_not_is_out() -> None:
    found = screened({"d": with_reading(GOOD, "a", [0], candidate=FAILED)})
    assert (found.decision, reasons(found)["d"]) == (
        "none",
        "it failed 1 of 9 pairs that the incumbent solved; none may fail",
    )


def test_screening_bears_a_lost_pair_but_not_two_of_the_candidate_alone() -> None:
    assert screened({"d": with_reading(GOOD, "a", [0], candidate=MISSING)}).chosen == "d"
    lost = with_reading(with_reading(GOOD, "a", [0], candidate=MISSING), "b", [0], candidate=MISSING)
    assert "may cause the faults" in reasons(screened({"d": lost}))["d"]


def test_a_task_with_fewer_than_two_whole_pairs_stops_a_candidate() -> None:
    lost = with_reading(GOOD, "a", [0, 1], candidate=MISSING, incumbent=MISSING)
    assert reasons(screened({"d": lost}))["d"] == "fewer than 2 whole pairs of a"
    assert reasons(screened({"d": []}))["d"] == "fewer than 2 whole pairs of a, b, c"


def test_success_comes_before_the_metric() -> None:
    steady = answers("a", [YES, NO, NO, NO], [YES, YES, YES, YES])
    quick = answers("a", [YES, YES, NO, NO], [YES, YES, NO, NO], seconds=(100.0, 50.0))
    found = screened({"quick": quick, "steady": steady}, policy(success=Success()), tasks=["a"])
    assert (found.chosen, reasons(found)["steady"]) == ("steady", "it solved 3 pairs more, p = 0.125")


def test_an_incumbent_that_solves_nothing_beside_any_candidate_is_a_broken_harness() -> None:
    broken = [pair(task, n, FAILED, FAILED) for task in TASKS for n in range(3)]
    assert screened({"d": broken, "e": broken}).decision == "harness_broken"
    found = screened({"d": broken, "e": GOOD})
    assert (found.decision, found.chosen, "solved none of 9 pairs" in reasons(found)["d"]) == ("confirm", "e", True)


def test_a_single_candidate_that_is_out_has_its_reason_in_the_verdict() -> None:
    found = screened({"d": everywhere([130.0, 128.0, 132.0])})
    assert found.reason == f"none of 1 candidates passed: {reasons(found)['d']}"


def test_without_candidates_there_is_nothing_to_confirm() -> None:
    assert screened({}).decision == "none"


def test_a_screening_is_recomputed_byte_for_byte() -> None:
    written = screened({"d1": GOOD, "d2": everywhere(EQUAL[:3])}).encoded()
    assert recompute(decode(Screened, written, Path("screening.json"))).encoded() == written


def test_medians_screen_by_their_own_rule() -> None:
    found = screened({"d1": GOOD, "d2": everywhere([70.0] * 3), "d3": everywhere(EQUAL[:3])}, policy(kind="medians-v5"))
    assert (found.chosen, [one.passed for one in found.candidates]) == ("d2", [True, True, False])


def test_a_generation_beyond_the_plan_is_refused() -> None:
    with pytest.raises(UsageError, match="generation 1"):
        screened({"d": GOOD}, generation=1)
