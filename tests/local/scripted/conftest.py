from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from tests.fakeslurm.dialect import DIALECTS
from tests.fakeslurm.model import Settings
from tests.fakeslurm.site import Warm
from tests.local.driver import Driver
from tests.local.scripted.scripted import Scripted, new_scripted
from tests.local.site import tiny_target


@pytest.fixture(scope="session")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Warm]:
    """The process that jobs' Pythons are forks of."""
    with Warm(tmp_path_factory.mktemp("warm")) as running:
        yield running


@pytest.fixture(params=DIALECTS)
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def made(tmp_path: Path, driver: Driver, warm: Warm) -> Callable[..., Scripted]:
    """Make sites on scripted clusters of their own."""
    source = tiny_target(tmp_path / "tiny")
    count = 0

    def make(settings: Settings | None = None, tool: Mapping[str, object] | None = None, **keys: object) -> Scripted:
        nonlocal count
        count += 1
        return new_scripted(tmp_path / f"site-{count}", source, driver, warm, settings or Settings(), tool, **keys)

    return make
