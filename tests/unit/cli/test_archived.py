"""Which tries an archived row tells of, so that none is reported twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from outerloop_hpc.cli.archived import _elements, job_pairs, selection
from outerloop_hpc.engine import runs
from outerloop_hpc.engine.layout import Layout
from tests.unit.hidden import hide

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


def test_a_run_that_cannot_be_listed_is_named_and_hides_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for run in ("benchmark-iris-20261129T120000Z-0123abcd", "benchmark-iris-20261129T120001Z-0123abcd"):
        Layout(tmp_path).run(run).path.mkdir(parents=True)
    hidden = next(runs.every(Layout(tmp_path))).path / "accounting"
    hide(hidden, monkeypatch)

    assert job_pairs(Layout(tmp_path), selection()).problems == (f"{hidden}: cannot be listed: Permission denied",)
