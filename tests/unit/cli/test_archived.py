"""Which tries an archived row tells of, so that none is reported twice."""

from __future__ import annotations

import pytest

from outerloop_hpc.cli.archived import _elements

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("job_id", "told"),
    [
        ("13", ["13"]),
        ("13_4", ["13_4"]),
        ("13_[0-2]", ["13_0", "13_1", "13_2"]),
        ("13_[0-1,3%2]", ["13_0", "13_1", "13_3"]),
        ("13+0", ["13+0"]),
        ("not an id", ["not an id"]),
    ],
)
def test_elements_that_never_started_and_stand_in_one_row_are_not_told_again(job_id: str, told: list[str]) -> None:
    assert sorted(_elements(job_id)) == told
