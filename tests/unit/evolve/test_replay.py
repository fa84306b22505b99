"""Which cell is meant, and what was recorded beside what is found now."""

from __future__ import annotations

from dataclasses import replace

import pytest

from outerloop_hpc.cli.replaying import Replayed
from outerloop_hpc.errors import UsageError
from outerloop_hpc.evolve.applying.replay import recorded, step_of
from outerloop_hpc.evolve.findings import ArmFound, CellFound
from tests.unit.evolve.past import A, Past, costs


def found(*arms: ArmFound) -> CellFound:
    return CellFound(cell="c0ffee", task="one", seed=1, arms=arms, node="n1")


def arm(**more: object) -> ArmFound:
    return ArmFound.model_validate({"arm": "candidate", "word": "measured", "metrics": {"cost": 1.0}, **more})


@pytest.fixture
def past() -> Past:
    past = Past()
    past.candidates(0, A)
    past.measure(0, "screen", [A], 2, costs(base=10.0, a=8.0))
    return past


def ids(past: Past) -> list[str]:
    return [step.spec.parameters["cell"] for step in past.state.steps.values() if step.spec.job == "cell"]


def test_a_cell_is_found_by_its_id_or_a_beginning_that_no_other_has(past: Past) -> None:
    for cell in ids(past):
        assert step_of(past.state, cell).spec.parameters["cell"] == cell
        assert step_of(past.state, cell[:-1]).spec.parameters["cell"] == cell


@pytest.mark.parametrize("text", ["", "nothing"])
def test_what_names_no_single_cell_is_refused(past: Past, text: str) -> None:
    with pytest.raises(UsageError, match="no single cell of"):
        step_of(past.state, text)


def test_cells_that_begin_alike_are_told(past: Past) -> None:
    alike = {}
    for number, step in enumerate(past.state.steps.values()):
        parameters = {**step.spec.parameters, "cell": f"abc{number}"}
        alike[str(number)] = step.model_copy(update={"spec": step.spec.model_copy(update={"parameters": parameters})})
    with pytest.raises(UsageError, match="it may be abc1, abc2"):
        step_of(past.state.model_copy(update={"steps": alike}), "abc")


def test_a_cell_without_a_result_has_nothing_to_compare_with(past: Past) -> None:
    past.measure(0, "confirm", [A], 1, lambda _cell, _arm: None)
    results = [recorded(step) for step in past.state.steps.values() if step.spec.job == "cell"]
    assert [one is None for one in results].count(True) == 2
    known = next(one for one in results if one is not None)
    done = Replayed("run", None, known)
    assert not done.contradicts
    assert "no result in the run" in done.said()
    assert {row["same"] for row in done.rows()} == {None}
    assert done.meta()["equal"] is None


def test_another_number_is_told_and_contradicts_nothing() -> None:
    done = Replayed("run", found(arm()), found(arm(metrics={"cost": 1.0 + 3e-16, "time": 3.0})))
    assert not done.contradicts
    assert done.said() == "cell c0ffee: not as recorded on n1: cost of candidate, time of candidate"
    assert done.meta()["equal"] is False


@pytest.mark.parametrize("now", [arm(success=False), arm(word="failed", metrics={}, success=True)])
def test_an_arm_that_fails_where_it_did_not_contradicts_the_record(now: ArmFound) -> None:
    before = found(arm(success=True))
    assert Replayed("run", before, found(now)).contradicts
    assert not replace(Replayed("run", before, found(now)), now=before).contradicts
