"""Parameters of steps: the order of a pair follows from its cell alone and favours no arm."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from outerloop_hpc.evolve.given import CellGiven

pytestmark = pytest.mark.unit


def given(cell: str, arms: tuple[str, ...]) -> CellGiven:
    return CellGiven.model_validate({"cell": cell, "task": "t", "seed": 1, "repeat": 0, "arms": arms})


def test_the_order_of_a_pair_is_the_same_however_it_was_asked_for() -> None:
    for number in range(20):
        one = given(f"{number:016x}", ("incumbent", "candidate")).in_order()
        assert one == given(f"{number:016x}", ("candidate", "incumbent")).in_order()
        assert set(one) == {"incumbent", "candidate"}


def test_either_arm_comes_first_about_as_often() -> None:
    first = [given(f"{number:016x}", ("incumbent", "candidate")).in_order()[0] for number in range(1000)]
    assert 420 < first.count("candidate") < 580


def test_a_digest_cannot_lead_out_of_the_folder_of_candidates() -> None:
    with pytest.raises(ValidationError):
        CellGiven.model_validate(
            {"cell": "c", "task": "t", "seed": 1, "repeat": 0, "arms": ("candidate",), "overlay": "../../x"}
        )
