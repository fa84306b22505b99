"""What the kernel says about a node, on several kinds of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from outerloop_hpc.measure.node import cpu_model, oom_kills, this_node

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("cpuinfo", "model"),
    [
        ("processor\t: 0\nmodel name\t: AMD EPYC  9654 96-Core\n\nmodel name\t: other\n", "AMD EPYC 9654 96-Core"),
        ("processor : 0\ncpu : POWER9, altivec supported\n", "POWER9, altivec supported"),
        ("processor : 0\nCPU implementer : 0x41\nCPU part : 0xd40\n", "Arm implementer 0x41 part 0xd40"),
        ("model name\t:\n", None),
        ("", None),
    ],
)
def test_cpu_models(cpuinfo: str, model: str | None) -> None:
    assert cpu_model(cpuinfo) == model


def test_a_node_without_cpuinfo_is_named_by_its_architecture(tmp_path: Path) -> None:
    assert this_node(tmp_path).cpu_model == os.uname().machine
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cpuinfo").write_bytes(b"model name : \xff?\n")
    assert this_node(tmp_path).cpu_model == "\ufffd?"


def write(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text, encoding="ascii")


def test_oom_kills_of_cgroup_v2(tmp_path: Path) -> None:
    write(tmp_path, "proc/self/cgroup", "0::/system.slice/slurmstepd.scope/job_7/step_batch\n")
    folder = "sys/fs/cgroup/system.slice/slurmstepd.scope/job_7/step_batch"
    write(tmp_path, f"{folder}/memory.events", "low 0\nhigh 0\nmax 12\noom 3\noom_kill 2\noom_group_kill 0\n")
    assert oom_kills(tmp_path) == 2


def test_oom_kills_of_cgroup_v1(tmp_path: Path) -> None:
    write(tmp_path, "proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/slurm/uid_1/job_7\n1:name=systemd:/y\n")
    write(tmp_path, "sys/fs/cgroup/memory/slurm/uid_1/job_7/memory.oom_control", "under_oom 0\noom_kill 5\n")
    assert oom_kills(tmp_path) == 5


@pytest.mark.parametrize("cgroup", [None, "", "garbage", "0::/gone\n", "4:memory:/gone\n"])
def test_silence_is_not_zero(tmp_path: Path, cgroup: str | None) -> None:
    if cgroup is not None:
        write(tmp_path, "proc/self/cgroup", cgroup)
    assert oom_kills(tmp_path) is None


def test_a_counter_that_cannot_be_read_is_silence(tmp_path: Path) -> None:
    write(tmp_path, "proc/self/cgroup", "0::/\n")
    write(tmp_path, "sys/fs/cgroup/memory.events", "oom_kill many\n")
    assert oom_kills(tmp_path) is None
