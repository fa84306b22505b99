from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.local.driver import Driver
from tests.local.steward.lane import Lane, new_lane


@pytest.fixture
def lane(tmp_path: Path) -> Iterator[Lane]:
    """A lane whose commands run in processes of their own."""
    made = new_lane(tmp_path)
    yield made
    made.site.stop_jobs()


@pytest.fixture
def swift(tmp_path: Path, driver: Driver) -> Iterator[Lane]:
    """A lane whose submissions are given up at once when no job of theirs is there."""
    made = new_lane(tmp_path, driver=driver, settings={"submit_lag_s": 0})
    yield made
    made.site.stop_jobs()
