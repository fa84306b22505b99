from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from outerloop_hpc.engine.layout import Layout
from outerloop_hpc.engine.targets import recent_runs

pytestmark = pytest.mark.unit

_NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)


def test_a_copy_of_a_run_beside_it_does_not_stop_its_target(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    month = layout.runs / "2026-11"
    for name in ("benchmark-iris-20261129T110000Z-0123abcd", "benchmark-iris-20261101T110000Z-0123abcd"):
        (month / name).mkdir(parents=True)
    (month / "benchmark-iris-20261129T110000Z-0123abcd.bak").mkdir()

    assert recent_runs(layout, "benchmark", "iris", _NOW) == 1


def test_a_run_in_the_making_counts_once(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    made, claimed = "benchmark-iris-20261129T110000Z-0123abcd", "benchmark-iris-20261129T113000Z-0123abcd"
    (layout.runs / "2026-11" / made).mkdir(parents=True)
    layout.making.mkdir()
    for name in (made, claimed):
        (layout.making / f"{name}.json").touch()

    assert recent_runs(layout, "benchmark", "iris", _NOW) == 2
