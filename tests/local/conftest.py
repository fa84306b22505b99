from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.local.driver import Driver
from tests.local.site import environment


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files whose tests may take long: at the end one process would wait for the other.

    xdist itself begins with the files that have many tests, and leaves those with few long ones to the end.
    """
    longest: dict[Path, float] = {}
    for item in items:
        marker = item.get_closest_marker("timeout")
        longest[item.path] = max(longest.get(item.path, 0.0), float(marker.args[0]) if marker else 0.0)
    items.sort(key=lambda item: -longest[item.path])


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    """The process that runs command lines in forks of itself, and may kill them."""
    with Driver(tmp_path_factory.mktemp("driver"), environment()) as running:
        yield running
