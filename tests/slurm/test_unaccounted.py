"""A cluster that keeps no accounts (``accounting_storage/none``): records, squeue and scontrol are all there is."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from outerloop_hpc.engine import events as ev
from tests.cluster import rootfs
from tests.cluster.cluster import SHARED, Cluster, start
from tests.cluster.configuration import Settings
from tests.cluster.image import image
from tests.cluster.machine import SOURCE
from tests.cluster.venv import CHECKOUT
from tests.slurm.conftest import VERSIONS
from tests.slurm.project import Project, outcomes_of, values_of

#: Seven arrays and jobs one after the other, each as slow as a small cluster gives nodes.
_LIMIT_S = 1100.0


@pytest.fixture(scope="module", params=VERSIONS)
def unaccounted(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    # Jobs are counted in the queue, and an end is known from there alone: neither may be forgotten meanwhile.
    settings = Settings(accounting=False, min_job_age=3600)
    with start(rootfs.RECIPES[str(request.param)], settings=settings) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def contained(unaccounted: Cluster) -> str:
    return image(CHECKOUT / "containers" / "python.def") if unaccounted.version >= (26, 5) else ""


def test_without_accounting_everything_works_and_reports_say_not_measured(unaccounted: Cluster) -> None:
    project = Project(unaccounted, "unaccounted")
    project.make()
    run = project.bench(1, 2)
    project.wait_patients(2)
    project.kill_job(project.holder(run, 0))
    project.pass_until(lambda: len(project.state(run).submissions) == 2, "a second try")
    cancelled = project.bench(3)
    project.wait_patients(3)
    project.cluster.check(["scancel", project.submission(cancelled).job_id], user="alice")
    project.release(2)
    (state,) = project.settle(run)
    assert outcomes_of(state) == [["lost", "done"], ["done"]]
    assert values_of(state) == {"1": 2.5, "2": 5.0}
    lost = project.events(run, ev.TryEnded)[0]
    assert (lost.rule, lost.word) == ("no-accounting.ended", "FAILED")
    (parked,) = project.settle(cancelled, phase="parked")
    assert outcomes_of(parked) == [["cancelled"]]
    project.done("runs", "end", cancelled, "--reason", "enough")
    project.settle(cancelled)
    for archive in project.archived(run).values():
        assert (archive["rows"], archive["note"]) == ([], "accounting is switched off here: not measured")
    document = project.json("report", "jobs")
    rows = document["rows"]
    assert sorted(row["outcome"] for row in rows) == ["cancelled", "completed", "completed", "failed"]
    assert {row[name] for row in rows for name in ("elapsed_s", "cpu_s", "cpu_hours", "gpu_hours")} == {None}
    assert [problem for problem in document["problems"] if "not measured" in problem]
    assert "0.0" not in project.done("report", "runs")
    jobs = [line.split() for line in unaccounted.check(["squeue", "-h", "-t", "all", "-o", "%T %F %j"]).splitlines()]
    states = [state for state, _, _ in jobs]
    assert sorted(set(states)) == ["CANCELLED", "COMPLETED", "FAILED"], states
    assert states.count("FAILED") == 1
    bought = sorted({(name, job) for _, job, name in jobs})
    assert bought == sorted(
        (one.name, one.job_id) for each in (run, cancelled) for one in project.state(each).submissions.values()
    )


@pytest.mark.timeout(1200)
def test_the_demo_does_its_whole_round_without_accounting(unaccounted: Cluster, contained: str) -> None:
    root = f"{SHARED}/demo"
    unaccounted.check(["install", "-d", "-o", "alice", root])
    argv = ["python", f"{SOURCE}/examples/demo", "--slurm", "--root", root, "--image", contained]
    done = unaccounted.run(argv, user="alice", cwd=root, timeout=_LIMIT_S)
    assert done.status == 0, done.stdout + done.stderr
    assert "NOT OK" not in done.stdout
    assert done.stdout.count("\n  ok      ") == 19
    assert done.stdout.count(": no accounts are kept here, and the reports say `not measured`, never 0") == 4
    assert unaccounted.jobs() == []
