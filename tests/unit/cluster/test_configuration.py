"""The text of the test cluster's configuration."""

from __future__ import annotations

import pytest

from tests.cluster.configuration import NODES, Settings, cgroup_conf, slurm_conf

pytestmark = pytest.mark.unit


def options(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.splitlines())


def test_accounting_is_slurmdbd_or_none() -> None:
    assert options(slurm_conf(Settings()))["AccountingStorageType"] == "accounting_storage/slurmdbd"
    without = options(slurm_conf(Settings(accounting=False)))
    assert without["AccountingStorageType"] == "accounting_storage/none"
    assert "AccountingStorageHost" not in without


def test_each_node_has_a_port_of_its_own() -> None:
    lines = [line for line in slurm_conf(Settings()).splitlines() if line.startswith("NodeName=")]
    ports = {word for line in lines for word in line.split() if word.startswith("Port=")}
    assert len(lines) == len(ports) == len(NODES)


def test_settings_reach_the_file() -> None:
    text = options(slurm_conf(Settings(min_job_age=2, first_job_id=5, max_job_id=9)))
    assert (text["MinJobAge"], text["FirstJobId"], text["MaxJobId"]) == ("2", "5", "9")


@pytest.mark.parametrize(("version", "plugin"), [((22, 5), "cgroup/v1"), ((23, 11), "disabled"), ((26, 5), "disabled")])
def test_cgroup_plugin_by_version(version: tuple[int, int], plugin: str) -> None:
    assert cgroup_conf(version) == f"CgroupPlugin={plugin}\n"
