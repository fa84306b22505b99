"""``medians-v5`` decides as the reference does, its faults included."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from outerloop_hpc.evolve.gate.decide import recompute
from tests.unit.evolve.gate.made import FAILED, MISSING, TASKS, answers, decided, pair, pairs, policy, why, with_reading

pytestmark = pytest.mark.unit

RULES = policy(kind="medians-v5")
YES, NO = True, False


@pytest.mark.parametrize(
    ("candidate", "word"),
    [
        ((80.0, 200.0, 90.0), "promote"),
        ((95.0, 95.0, 95.0), "promote"),
        ((96.0, 96.0, 96.0), "keep_incumbent"),
        # 4.96 % is rounded to 5.0 before it is compared.
        ((95.04, 95.04, 95.04), "promote"),
        ((121.0, 121.0, 90.0), "keep_incumbent"),
    ],
)
def test_medians_against_fixed_bars(candidate: Sequence[float], word: str) -> None:
    assert decided(pairs(dict.fromkeys(TASKS, candidate)), RULES).decision == word


def test_one_task_beyond_the_cap_vetoes() -> None:
    found = decided(pairs({"a": [50.0] * 3, "b": [50.0] * 3, "c": [121.0] * 3}), RULES)
    assert (found.decision, why(found)) == ("keep_incumbent", "task c: -21 % is worse than the cap")


def test_the_candidate_must_resolve_every_run() -> None:
    given = [*answers("a", [YES, YES, NO], [YES, YES, NO]), *answers("b", [YES] * 3, [YES] * 3, seconds=(100.0, 50.0))]
    found = decided(given, RULES, tasks=["a", "b"])
    assert (found.decision, "did not resolve every run" in why(found)) == ("keep_incumbent", True)


def test_two_resolved_runs_more_win_without_a_gain() -> None:
    given = [*answers("a", [YES, NO, NO], [YES] * 3), *answers("b", [YES] * 3, [YES] * 3)]
    assert decided(given, RULES, tasks=["a", "b"]).decision == "promote"
    one = [*answers("a", [YES, YES, NO], [YES] * 3), *answers("b", [YES] * 3, [YES] * 3)]
    assert decided(one, RULES, tasks=["a", "b"]).decision == "keep_incumbent"


def test_a_task_that_both_failed_is_not_gated_unless_it_got_twice_as_dear() -> None:
    failed = answers("a", [NO] * 3, [NO] * 3, seconds=(100.0, 190.0))
    good = pairs({"b": [50.0] * 3})
    found = decided([*failed, *good], RULES, tasks=["a", "b"])
    assert (found.decision, found.found[0].gated) == ("promote", False)
    dear = answers("a", [NO] * 3, [NO] * 3, seconds=(100.0, 210.0))
    assert decided([*dear, *good], RULES, tasks=["a", "b"]).decision == "keep_incumbent"


def test_a_lost_run_or_an_unmeasured_one_is_too_little() -> None:
    given = pairs(dict.fromkeys(TASKS, [50.0] * 3))
    assert decided(with_reading(given, "a", [0], candidate=MISSING), RULES).decision == "insufficient_evidence"
    assert decided(with_reading(given, "a", [0], candidate=FAILED), RULES).decision == "insufficient_evidence"
    assert decided(pairs(dict.fromkeys(TASKS, [50.0] * 2)), RULES).decision == "insufficient_evidence"


def test_an_incumbent_that_solved_nothing_is_a_broken_harness() -> None:
    given = [pair(task, n, FAILED, FAILED) for task in TASKS for n in range(3)]
    assert decided(given, RULES).decision == "harness_broken"


def test_it_promotes_when_the_pair_that_speaks_against_the_candidate_is_gone() -> None:
    rows = pairs(dict.fromkeys(TASKS, (50.0, 96.0, 96.0, 50.0, 96.0)))
    assert decided(rows, RULES).decision == "keep_incumbent"
    assert decided([one for one in rows if one.repeat != 2], RULES).decision == "promote"


def test_it_is_recomputed_like_the_other() -> None:
    found = decided(pairs(dict.fromkeys(TASKS, (80.0, 81.0, 82.0))), RULES)
    assert recompute(found).encoded() == found.encoded()
