"""Whatever kills or doubles a pass, each piece of work is bought once and ends the same."""

from __future__ import annotations

import json

from outerloop_hpc.engine import events as ev
from tests.slurm.project import Project, job_name_count, outcomes_of, values_of


def test_two_ticks_at_the_same_moment_submit_one_array(project: Project) -> None:
    project.configure(bench={"seeds": 3})
    project.make()
    meeting = f"{project.folder}/meeting"
    both = [project.start_script("together", "2", meeting) for _ in range(2)]
    said = []
    for one in both:
        finished = one.wait(120)
        assert finished.ok, finished.stdout + finished.stderr
        said.append(json.loads(finished.stdout))
    assert sorted(one["submitted"] for one in said) == [0, 1]
    assert [one["faults"] for one in said] == [[], []]
    (run,) = project.runs()
    (state,) = project.settle(run)
    assert outcomes_of(state) == [["done"]] * 3, project.done("explain", run)
    assert job_name_count(project.cluster, "ol.demo.measure") == 1
