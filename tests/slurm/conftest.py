"""Fixtures of the slurm tier: one running cluster of each version for the whole run, healed after each test.

``pytest --share slurm26`` runs the tests of that version alone, and ``tests.tiers`` both shares side by side, each in
a process of its own: they spend their time waiting. (xdist's groups do nothing under pytest 9.)
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.cluster import rootfs
from tests.cluster.cluster import Cluster, start
from tests.cluster.image import image
from tests.cluster.venv import CHECKOUT
from tests.slurm.project import Project

_HERE = Path(__file__).parent
VERSIONS = ("slurm22", "slurm26")
#: Fixtures that are one version's cluster, for tests that run on that version alone.
_ONE_VERSION = {"cluster22": "slurm22", "cluster26": "slurm26"}
#: Fixtures that are parametrised by version.
_EACH_VERSION = ("cluster", "unaccounted")
#: Whose share tests are that start whatever they need themselves; the other version's tests take longer.
_FREE = "slurm22"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    share = config.getoption("share")
    left = [one for one in items if share and one.path.is_relative_to(_HERE) and share_of(one) != share]
    config.hook.pytest_deselected(items=left)
    items[:] = [item for item in items if item not in left]


def share_of(item: pytest.Item) -> str:
    """Return the version in whose share a test runs."""
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    named = next((str(parameters[fixture]) for fixture in _EACH_VERSION if fixture in parameters), None)
    used: Sequence[str] = getattr(item, "fixturenames", ())
    return named or next((version for fixture, version in _ONE_VERSION.items() if fixture in used), _FREE)


class Clusters:
    """The clusters of this process, started when first asked for."""

    def __init__(self) -> None:
        self._running: dict[str, Cluster] = {}

    def get(self, name: str) -> Cluster:
        """Return the running cluster of that version."""
        if name not in self._running:
            self._running[name] = start(rootfs.RECIPES[name])
        return self._running[name]

    def running(self) -> list[Cluster]:
        """Return those that run already."""
        return list(self._running.values())

    def close(self) -> None:
        """End them all."""
        for cluster in self._running.values():
            cluster.close()


@pytest.fixture(scope="session")
def clusters() -> Iterator[Clusters]:
    started = Clusters()
    yield started
    started.close()


@pytest.fixture(scope="session", params=VERSIONS)
def cluster(request: pytest.FixtureRequest, clusters: Clusters) -> Cluster:
    """A real Slurm; a test that takes it runs once on each version."""
    return clusters.get(str(request.param))


@pytest.fixture(scope="session")
def cluster22(clusters: Clusters) -> Cluster:
    """The older Slurm."""
    return clusters.get("slurm22")


@pytest.fixture(scope="session")
def cluster26(clusters: Clusters) -> Cluster:
    """The newer Slurm, whose root file system has Apptainer."""
    return clusters.get("slurm26")


@pytest.fixture(scope="session")
def apptainer_image() -> str:
    """Path, inside ``cluster26``, of an image with Python and git."""
    return image()


@pytest.fixture(scope="session")
def containment(cluster: Cluster) -> str:
    """What benchmarks run in: on the newer Slurm an Apptainer image from ``containers/``, on the older one nothing."""
    return image(CHECKOUT / "containers" / "python.def") if cluster.version >= (26, 5) else ""


@pytest.fixture
def project(cluster: Cluster, containment: str, request: pytest.FixtureRequest) -> Project:
    """A fresh project of alice's, named after the test."""
    return Project(cluster, re.sub(r"\W+", "-", request.node.name).strip("-")[:60], containment)


@pytest.fixture(autouse=True)
def _leaves_no_traces(clusters: Clusters) -> Iterator[None]:
    before = {id(cluster): cluster.jobs() for cluster in clusters.running() if cluster.answers()}
    yield
    for cluster in clusters.running():
        cluster.heal()
        cluster.cancel_jobs(keep=before.get(id(cluster), []))
