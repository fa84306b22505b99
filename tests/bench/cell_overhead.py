"""What a cell of a sweep takes beside its benchmark's own seconds, next to other ways to run the same command.

Two rulers. ``cell_overhead_*``: one cell's process by itself, from its start to its end. ``cell_overhead_slurm_*``:
on a real Slurm, from the command that asks for many evaluations to the last result in hand, by how many there were and
how many ran at once. Both on the newer of the test clusters, which has Apptainer; where there is none, what needs it is
left out, and said to be.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from tests.bench.cells import ARRAY, COMMAND, SCRIPT, Took, said
from tests.bench.figure import Figure, Peer, beside, figure
from tests.bench.places import disk, scratch
from tests.bench.processes import python
from tests.bench.samples import Samples, ratio_of_pairs
from tests.cluster import needs
from tests.cluster.cache import BuildFailed
from tests.cluster.cluster import SHARED, Cluster, start
from tests.cluster.image import image
from tests.cluster.machine import SOURCE
from tests.cluster.rootfs import SLURM26
from tests.slurm.project import Project

_GOALS = {"": "< 0.15 s", "_apptainer": "< 0.5 s"}
_PEERS = {ARRAY: "submitit map_array, local executor", SCRIPT: "a job script per evaluation, by itself"}
_MAPPED, _EACH = "submitit map_array on Slurm", "one sbatch per evaluation, asked for by squeue every 2 s"
#: Evaluations on Slurm, how many at once, how often each side; half of them are a pair's first arm.
_NUMBER, _PARALLEL, _ROUNDS = 24, 2, 3
_LIMIT_S = 900.0
_CONTRACT = """\
benchmarks:
  - {name: quick, command: python3 bench.py, metric: score, direction: min}
scope: {allowed: [rate.txt]}
"""
_SWEEP = f"""\
schema: sweep/1
name: overhead
target: demo
overlay: {{allow: [rate.txt]}}
proposer: {{kind: grid, template: {{rate.txt: "{{{{rate}}}}\\n"}}, values: {{rate: [0.8]}}}}
tasks:
  - {{id: one, command: python3 bench.py, timeout_s: 60}}
metrics: {{primary: {{name: score, direction: min}}}}
unit: cell
parallel: {_PARALLEL}
"""


def measure() -> list[Figure]:
    """Measure by both rulers where there is a cluster, else by the first one here."""
    with _cluster() as cluster:
        if isinstance(cluster, str):
            with scratch(disk()) as folder:
                return figures(said(python("-m", "tests.bench.cells", str(folder)).output), cluster)
        there = f"{SHARED}/cells"
        cluster.check(["mkdir", there], user="alice")
        found = said(_inside(cluster, "tests.bench.cells", there, image()))
        return [*figures(found, ""), *slurm_figures(on_slurm(cluster))]


@contextmanager
def _cluster() -> Iterator[Cluster | str]:
    """Give a running cluster, or the reason why there is none."""
    lacking = "; ".join(needs.missing())
    if lacking:
        yield lacking
        return
    try:
        cluster = start(SLURM26)
    except BuildFailed as error:
        yield str(error)
        return
    with cluster:
        yield cluster


def _inside(cluster: Cluster, module: str, *arguments: str) -> str:
    argv = ["python", "-m", module, *arguments]
    done = cluster.run(argv, user="alice", cwd=SHARED, env={"PYTHONPATH": SOURCE}, timeout=_LIMIT_S)
    if not done.ok:
        raise RuntimeError(f"{' '.join(argv)}: {done.complaint()}")
    return done.stdout


def figures(taken: Mapping[str, Sequence[Took]], missing: str) -> list[Figure]:
    """Say what one cell's process took: each unit, and a single cell beside every peer.

    Args:
        taken: what was measured, by name.
        missing: why nothing was measured in a container; empty when it was.
    """
    passed = {name: tuple(one.beside for one in values) for name, values in taken.items()}
    found = []
    for name, values in passed.items():
        if name not in _PEERS:
            goal = _GOALS["_apptainer" if name.endswith("_apptainer") else ""]
            goal += f"; left out: Apptainer: {missing}" if missing else ""
            found.append(figure(f"cell_overhead_{name}", "s", Samples(values), goal=goal))
            found.append(figure(f"cell_overhead_{name}_cpu", "s", Samples(tuple(one.cpu for one in taken[name]))))
    ours = Samples(passed["cell"])
    for name, peer in _PEERS.items():
        stands = Peer(peer, Samples(passed[name]).median, ratio_of_pairs(passed["cell"], passed[name]))
        found.append(Figure(f"cell_overhead_vs_{name}", ours.median, "s", stands, "", ours.low, ours.high))
    return found


def on_slurm(cluster: Cluster) -> dict[str, list[float]]:
    """Evaluate the same command in each way in turn; returns the overhead of one evaluation, seconds, by way."""
    taken: dict[str, list[float]] = {"cell": [], "cell_apptainer": [], _MAPPED: [], _EACH: []}
    for number in range(_ROUNDS):
        for name, path in {"cell": "", "cell_apptainer": image()}.items():
            taken[name].append(_swept(Project(cluster, f"{name}-{number}", path)))
        for name, how in {_MAPPED: "array", _EACH: "each"}.items():
            taken[name].append(_evaluated(cluster, how, number))
    return taken


def _swept(project: Project) -> float:
    """Measure a sweep's incumbent against itself, and wait for the end as a person would."""
    project.make({".outerloop.yaml": _CONTRACT, "bench.py": COMMAND, "rate.txt": "1.0\n"})
    project.write("sweep.yaml", _SWEEP)
    project.done("init")
    clock = ("date", "+%s.%N")
    begun = float(project.cluster.check(clock))
    printed = project.done("evolve", "power", "sweep.yaml", "--pairs", str(_NUMBER // 2), "--wait", str(_LIMIT_S))
    run = printed.split()[0]
    wall = float(project.cluster.check(clock)) - begun
    own = [arm["metrics"]["score"] for one in _records(project, run) for arm in one["payload"].get("arms", [])]
    return overhead(wall, own)


def _records(project: Project, run: str) -> list[dict[str, Any]]:
    folder = f"{project.run_folder(run)}/tries"
    listed = project.cluster.check(["find", folder, "-name", "*.record.json"]).split()
    return [json.loads(project.cluster.read(path)) for path in listed]


def _evaluated(cluster: Cluster, how: str, number: int) -> float:
    folder = f"{SHARED}/{how}-{number}"
    cluster.check(["mkdir", folder], user="alice")
    cluster.write(f"{folder}/bench.py", COMMAND, user="alice")
    found = json.loads(_inside(cluster, "tests.bench.evaluations", how, folder, str(_NUMBER), str(_PARALLEL)))
    return overhead(found["wall"], found["commands"])


def overhead(wall: float, own: Sequence[float]) -> float:
    """Return the overhead of one evaluation, seconds, where so many of ``own`` seconds ran two at once.

    Raises:
        ValueError: not all of them have a result.
    """
    if len(own) != _NUMBER:
        raise ValueError(f"{len(own)} of {_NUMBER} evaluations have a result; a figure of these says nothing")
    return (wall * _PARALLEL - sum(own)) / _NUMBER


def slurm_figures(taken: Mapping[str, Sequence[float]]) -> list[Figure]:
    """Say what an evaluation took on Slurm, beside both peers."""
    samples = {name: Samples(tuple(values)) for name, values in taken.items()}
    ours = samples["cell"]
    return [
        figure("cell_overhead_slurm_cell", "s", ours),
        figure("cell_overhead_slurm_cell_apptainer", "s", samples["cell_apptainer"]),
        beside("cell_overhead_slurm_vs_map_array", "s", ours, _MAPPED, samples[_MAPPED]),
        beside("cell_overhead_slurm_vs_sbatch_each", "s", ours, _EACH, samples[_EACH]),
    ]
