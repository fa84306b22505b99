"""A search that is made anew each time: the same asked twice answers the same, and nothing is tried twice."""

from __future__ import annotations

import sys

import pytest

from outerloop_hpc.errors import ConfigError
from outerloop_hpc.evolve.given import Told
from outerloop_hpc.evolve.proposers.asktell import points
from outerloop_hpc.evolve.work import AskTell, Parameter

pytestmark = pytest.mark.unit

SPACE = AskTell(
    template={"solver.py": "{{x}} {{n}} {{kind}}"},
    parameters=(
        Parameter(name="x", kind="float", low=0.0, high=1.0),
        Parameter(name="n", kind="int", low=1, high=64, log=True),
        Parameter(name="kind", kind="choice", choices=("greedy", "exact")),
    ),
)
SMALL = AskTell(template={"a": "{{c}}"}, parameters=(Parameter(name="c", kind="choice", choices=(1, 2, 3)),))


def told(count: int) -> tuple[Told, ...]:
    return tuple(
        Told(values={"x": n / count, "n": 1 + n, "kind": "greedy"}, gain=-((n / count - 0.7) ** 2))
        for n in range(count)
    )


def test_the_same_generation_gets_the_same_points_again_and_another_one_others() -> None:
    one = points(SPACE, told(12), 7, 4)
    assert one == points(SPACE, told(12), 7, 4)
    assert one != points(SPACE, told(12), 8, 4)
    assert len(one) == 4


def test_points_lie_within_their_bounds_and_have_their_types() -> None:
    for point in points(SPACE, (), 3, 20):
        assert isinstance(point["x"], float)
        assert 0 <= point["x"] <= 1
        assert isinstance(point["n"], int)
        assert 1 <= point["n"] <= 64
        assert point["kind"] in {"greedy", "exact"}


def test_nothing_is_proposed_twice_and_a_small_space_runs_out() -> None:
    known = (Told(values={"c": 1}, gain=0.1), Told(values={"c": 2}))
    assert points(SMALL, known, 1, 3) == [{"c": 3}]
    assert points(SMALL, (*known, Told(values={"c": 3}, gain=0.0)), 1, 3) == []


def test_what_was_told_steers_the_search() -> None:
    proposed = [float(point["x"]) for seed in range(6) for point in points(SPACE, told(40), seed, 4)]
    blind = [float(point["x"]) for seed in range(6) for point in points(SPACE, (), seed, 4)]

    def off(found: list[float]) -> float:
        return sum(abs(x - 0.7) for x in found) / len(found)

    assert off(proposed) < off(blind)


def test_a_whole_number_that_json_made_of_a_float_is_taken(recwarn: pytest.WarningsRecorder) -> None:
    assert points(SPACE, (Told(values={"x": 1, "n": 3, "kind": "exact"}, gain=0.2),), 1, 1)
    assert not recwarn.list


@pytest.mark.parametrize("values", [{"x": 2.0, "n": 3, "kind": "exact"}, {"x": 0.5}, {"other": 1}])
def test_what_is_of_another_search_is_refused(values: dict[str, float | str]) -> None:
    with pytest.raises(ConfigError, match="not of this sweep"):
        points(SPACE, (Told(values=values, gain=0.2),), 1, 1)


def test_without_optuna_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "optuna"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(ConfigError, match=r"outerloop-hpc\[search\]"):
        points(SPACE, (), 1, 1)
