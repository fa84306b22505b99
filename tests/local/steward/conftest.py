from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.local.driver import Driver
from tests.local.site import environment
from tests.local.steward.lane import Lane, new_lane


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    """The process that runs command lines in forks of itself, and may stop or kill them."""
    with Driver(tmp_path_factory.mktemp("driver"), environment()) as running:
        yield running


@pytest.fixture
def swift(tmp_path: Path, driver: Driver) -> Iterator[Lane]:
    """A lane whose submissions are given up at once when no job of theirs is there."""
    made = new_lane(tmp_path, driver=driver, settings={"submit_lag_s": 0})
    yield made
    made.site.stop_jobs()
