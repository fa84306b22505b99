from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.local.driver import Driver
from tests.local.site import environment


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    """The process that runs command lines in forks of itself, and may kill them."""
    with Driver(tmp_path_factory.mktemp("driver"), environment()) as running:
        yield running
