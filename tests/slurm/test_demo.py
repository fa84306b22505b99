"""``make demo SLURM=1``: what a newcomer runs on a cluster, as an ordinary user, in the containment that is there."""

from __future__ import annotations

import pytest

from tests.cluster.cluster import SHARED, Cluster
from tests.cluster.machine import SOURCE

#: Seven arrays and jobs one after the other, each as slow as a small cluster gives nodes and accounting rows.
LIMIT_S = 1100.0


@pytest.mark.timeout(1200)
def test_the_demo_does_its_whole_round_on_the_cluster(cluster: Cluster, containment: str) -> None:
    root = f"{SHARED}/demo"
    cluster.check(["install", "-d", "-o", "alice", root])
    argv = ["python", f"{SOURCE}/examples/demo", "--slurm", "--root", root, "--image", containment]
    done = cluster.run(argv, user="alice", cwd=root, timeout=LIMIT_S)
    assert done.status == 0, done.stdout + done.stderr
    assert "NOT OK" not in done.stdout
    assert done.stdout.count("\n  ok      ") == 19
    assert f"the records name the containment: {'apptainer' if containment else 'none'}" in done.stdout
    assert cluster.jobs() == []
