"""Fixtures of the slurm tier: one running cluster of each version for the whole run, healed after each test."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.cluster import rootfs
from tests.cluster.cluster import Cluster, start
from tests.cluster.image import image
from tests.cluster.venv import CHECKOUT
from tests.slurm.project import Project

VERSIONS = ("slurm22", "slurm26")


class Clusters:
    """The clusters of this run, started when first asked for."""

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
