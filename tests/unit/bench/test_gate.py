from __future__ import annotations

import random

import pytest

from tests.bench import gate
from tests.bench.gate_sweeps import GOOD, World, asked_for, paired, policy, reference

pytestmark = pytest.mark.unit


def test_each_point_of_the_plan_has_a_figure() -> None:
    names = [point.name for point in gate.points()]
    assert len(set(names)) == len(names) == 18
    for cv in (10, 20, 30):
        for generations in (1, 4):
            assert {f"gate_{what}_cv{cv}_gen{generations}" for what in ("false_promotion", "power")} <= set(names)


def test_where_nothing_varies_the_better_candidate_is_found_and_no_other() -> None:
    source = random.Random(1)
    better, equal = World(0.001, 0.2, 1), World(0.001, 0.0, 2)
    assert paired(better, policy(better), source).promoted == reference(better, source).promoted == GOOD
    assert paired(equal, policy(equal), source).promoted == reference(equal, source).promoted == ""


def test_some_sweeps_are_counted_and_drawn_again_alike() -> None:
    point = gate.Point("gate_power_cv10_gen1", World(0.1, 0.2, 1))
    count = gate.chunk(point, 0, 5)
    assert count == gate.chunk(point, 0, 5)
    assert (count.sweeps, count.ours, count.theirs, count.looks) == (5, 5, 5, 5)


def test_more_variation_asks_for_more_pairs() -> None:
    quiet, loud = (asked_for(World(cv, 0.2, 1), 0.05, random.Random(2)).most for cv in (0.1, 0.3))
    assert loud > 3 * quiet


def test_figures_are_shares_beside_the_reference() -> None:
    found = gate._figure(gate.Point("f", World(0.1, 0.0, 1)), gate.Count(200, 4, 40, 90, 81))
    assert found.peer is not None
    assert (found.value, found.peer.value, found.peer.ratio) == pytest.approx((2.0, 20.0, 0.1))
    (coverage,) = gate._coverage([(gate.Point("f", World(0.1, 0.0, 1)), gate.Count(200, 4, 40, 90, 81))])
    assert (coverage.name, coverage.value) == ("gate_coverage_cv10", 90.0)
