from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from tests.fakeslurm.dialect import DIALECTS
from tests.fakeslurm.model import Settings
from tests.fakeslurm.site import Warm
from tests.local.driver import Driver
from tests.local.scripted import flows
from tests.local.scripted.rehearsal import LENGTHS, Rehearsal
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


@pytest.fixture(scope="session")
def rehearsed(tmp_path_factory: pytest.TempPathFactory, driver: Driver, warm: Warm) -> Callable[[str], Rehearsal]:
    """A flow by its name, carried out once without disturbance."""
    known: dict[str, Rehearsal] = {}

    def get(name: str) -> Rehearsal:
        if name not in known:
            root = tmp_path_factory.mktemp(name)
            flow = getattr(flows, name)(root, driver, warm)
            known[name] = Rehearsal.of(flow, root / "kept")
            assert len(known[name].moments) == LENGTHS[name]
        return known[name]

    return get
