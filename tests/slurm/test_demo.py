"""``make demo SLURM=1``: what a newcomer runs on a cluster, as an ordinary user, in the containment that is there."""

from __future__ import annotations

from tests.cluster.cluster import SHARED, Cluster
from tests.cluster.machine import SOURCE

LIMIT_S = 280.0


def test_the_demo_does_its_whole_round_on_the_cluster(cluster: Cluster, containment: str) -> None:
    root = f"{SHARED}/demo"
    cluster.check(["install", "-d", "-o", "alice", root])
    argv = ["python", f"{SOURCE}/examples/demo.py", "--slurm", "--root", root, "--image", containment]
    done = cluster.run(argv, user="alice", cwd=root, timeout=LIMIT_S)
    assert done.status == 0, done.stdout + done.stderr
    assert "NOT OK" not in done.stdout
    assert done.stdout.count("\n  ok      ") == 10
    assert f"the records name the containment: {'apptainer' if containment else 'none'}" in done.stdout
    assert cluster.jobs() == []
