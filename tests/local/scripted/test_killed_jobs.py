"""kill -9 of a job before each of its effects: the step is repeated where its record is not there, and counts once.

A job's last effect is its record; killed after that it has said all. Jobs of sessions are in
``tests/local/steward/test_killed_jobs.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import pytest

from tests.fakeslurm.model import Fate
from tests.fakeslurm.site import Warm
from tests.local.driver import Driver
from tests.local.scripted import flows
from tests.local.scripted.flows import STEP_S
from tests.local.scripted.rehearsal import Rehearsal

pytestmark = [pytest.mark.local, pytest.mark.timeout(1800)]

#: No job has so many effects; the loop ends where one was not killed.
_MOST = 60


def _queued(rehearsal: Rehearsal, steps: Collection[str], kill: int) -> int:
    """Doom the first element of each queued job of these steps; returns how many jobs."""
    doomed = 0
    with rehearsal.flow.slurm.changed() as cluster:
        for job in cluster.jobs:
            (first, *_), step = job.elements, job.name.split(".")[2]
            step = "wake" if job.name.endswith(".w") else step
            if step in steps and first.state == "PENDING":
                first.last.fate = Fate(body="killed", at=f"#{kill}")
                doomed += 1
    return doomed


def _killed(rehearsal: Rehearsal) -> list[str]:
    """Return the names of jobs that were killed."""
    jobs = rehearsal.flow.slurm.cluster().jobs
    return [job.name for job in jobs if any(one.state == "FAILED" for one in job.elements)]


def _without(outcome: dict[str, Any]) -> dict[str, Any]:
    """Leave out what a repetition adds: one element of a job for each that was killed, and what ran in it."""
    runs = [{key: value for key, value in run.items() if key != "started"} for run in outcome["runs"]]
    return {**outcome, "runs": runs, "jobs": {}, "bodies": 0}


def _killed_everywhere(rehearsal: Rehearsal, number: int, *steps: str) -> int:
    """Kill jobs of these steps, which a moment submitted, before their k-th effects, until none is killed."""
    moment, flow, count = rehearsal.moments[number], rehearsal.flow, 0
    for kill in range(1, _MOST):
        moment.after.restore(flow)
        assert _queued(rehearsal, steps, kill) == len(steps)
        flow.slurm.advance(STEP_S)
        killed = _killed(rehearsal)
        if not killed:
            assert count
            return count
        where = f"killed before effect {kill}: {killed}"
        rehearsal.finish(moment, where)
        found, more = flow.outcome(), flow.jobs()
        rehearsal.demand(_without(found), _without(rehearsal.final), where)
        again = sum(more.values()) - sum(rehearsal.final["jobs"].values())
        assert again == len([name for name in killed if not name.endswith(".w")]), where
        assert 0 <= found["bodies"] - rehearsal.final["bodies"] <= len(killed), where
        count += len(killed)
    raise AssertionError(f"a job has more than {_MOST} effects")


def test_a_measurement_whose_job_is_killed_at_any_effect_counts_once(
    rehearsed: Callable[[str], Rehearsal], tried: Callable[[str, int], None]
) -> None:
    tried("kill points", _killed_everywhere(rehearsed("benchmark"), 0, "measure"))


def test_a_trial_whose_jobs_are_killed_at_any_effect_opens_one_change(
    rehearsed: Callable[[str], Rehearsal], tried: Callable[[str, int], None]
) -> None:
    tried("kill points", _killed_everywhere(rehearsed("steward"), 1, "validate", "measure"))


def test_a_run_whose_wake_job_is_killed_at_any_effect_is_moved_on_by_the_next_pass(
    tmp_path_factory: pytest.TempPathFactory, driver: Driver, warm: Warm, tried: Callable[[str, int], None]
) -> None:
    root = tmp_path_factory.mktemp("woken")
    rehearsal = Rehearsal.of(flows.benchmark(root, driver, warm, wake=True), root / "kept")
    tried("kill points", _killed_everywhere(rehearsal, 0, "wake"))
