"""The whole flow as an ordinary user: measure, improve, measure again, compare; the reports against sacct itself."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

from outerloop_hpc.engine import events as ev
from outerloop_hpc.slurm.quantities import seconds, tres
from tests.cluster.cluster import Cluster
from tests.cluster.venv import CHECKOUT
from tests.slurm.project import Project, outcomes_of, values_of

#: What an outer job and a user's habits leave in the environment; each alone would break or bend a submission.
OUTER_JOB: Mapping[str, str] = {
    "SLURM_JOB_ID": "1",
    "SLURM_JOBID": "1",
    "SLURM_ARRAY_TASK_ID": "7",
    "SLURM_ARRAY_JOB_ID": "1",
    "SLURM_JOB_END_TIME": "1",
    "SLURM_MEM_PER_NODE": "15999",
    "SLURM_CLUSTERS": "nowhere",
    "SLURM_TIME_FORMAT": "relative",
    "SLURM_RESTART_COUNT": "3",
    "SBATCH_PARTITION": "nowhere",
    "SBATCH_TIMELIMIT": "1",
    "SBATCH_ARRAY_INX": "0-9",
    "SBATCH_REQUEUE": "1",
    "SQUEUE_FORMAT": "%i",
    "SQUEUE_STATES": "PENDING",
    "SACCT_FORMAT": "jobid",
    "SUBMITIT_EXECUTOR": "local",
}


@dataclass(frozen=True)
class Flow:
    """A flow that was carried out: two heads measured, the second one under the variables of an outer job."""

    project: Project
    first: str
    second: str
    commits: tuple[str, str]


@pytest.fixture(scope="module")
def flow(cluster: Cluster, containment: str) -> Flow:
    project = Project(cluster, f"flow-{cluster.version[0]}", containment, targets=("iris",))
    iris = CHECKOUT / "examples" / "iris"
    paths = [path for path in iris.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    project.settings = {"targets.iris": {"benchmarks": ["accuracy"]}}
    project.make({str(path.relative_to(iris)): path.read_text(encoding="utf-8") for path in paths})
    before = project.git("rev-parse", "HEAD")
    project.done("init")
    project.done("tick")
    (first,) = project.runs()
    project.settle(first)
    better = (CHECKOUT / "examples" / "improvements" / "iris-solver.py").read_text(encoding="utf-8")
    project.write("target/solver.py", better)
    after = project.commit("Linear discriminants")
    project.done("tick", env=OUTER_JOB)
    (second,) = set(project.runs()) - {first}
    assert project.tool("advance", second, "--wait", "500", env=OUTER_JOB).status == 0
    project.settle(second)
    return Flow(project, first, second, (before, after))


def test_an_array_of_five_measures_each_head(flow: Flow) -> None:
    for run in (flow.first, flow.second):
        state = flow.project.state(run)
        assert outcomes_of(state) == [["done"]] * 5
        assert all(0.8 < value <= 1 for value in values_of(state).values())
        (submission,) = state.submissions.values()
        assert len(submission.elements) == 5
    assert len(flow.project.bought()) == 2


def test_the_improved_commit_is_judged_better(flow: Flow) -> None:
    (row,) = flow.project.rows("bench", "compare", flow.commits[0][:10], flow.commits[1][:10])
    assert (row["verdict"], row["pairs"]) == ("better", 5)
    history = flow.project.rows("bench", "history", "iris")
    assert [one["verdict"] for one in history] == [None, "better"]
    (ledger,) = flow.project.rows("bench", "ledger", "iris")
    assert ledger["best_run"] == flow.second


def test_the_record_says_what_contained_the_measurement(flow: Flow) -> None:
    project = flow.project
    document = json.loads(project.cluster.read(f"{project.state_root}/results/iris/accuracy/{flow.second}.json"))
    expected = ("apptainer", project.image) if project.image else ("none", "")
    assert (document["runtime"], document["image"]) == expected
    assert bool(document["image_sha256"]) == bool(project.image)
    assert {sample["node"] for sample in document["samples"]} <= {"n1", "n2", "n3"}


def test_the_same_head_launches_nothing(flow: Flow) -> None:
    document = flow.project.json("tick")
    assert (document["submitted"], document["live"]) == (0, 0)
    assert len(flow.project.runs()) == 2


def test_variables_of_an_outer_job_change_nothing(flow: Flow) -> None:
    columns = ("Partition", "TimelimitRaw", "ReqTRES", "AllocCPUS", "User", "QOS")
    asked = []
    for run in (flow.first, flow.second):
        (archive,) = flow.project.archived(run).values()
        asked.append({tuple(row[column] for column in columns) for row in archive["rows"] if "." not in row["JobID"]})
    assert asked[0] == asked[1]
    assert len(asked[0]) == 1


def test_sacct_rows_are_archived_for_every_try(flow: Flow) -> None:
    for run in (flow.first, flow.second):
        (archive,) = flow.project.archived(run).values()
        jobs = {row["JobID"] for row in archive["rows"] if "." not in row["JobID"]}
        assert jobs == {f"{archive['job_id']}_{task}" for task in range(5)}
        assert archive["note"] == ""
        assert {row["State"] for row in archive["rows"]} == {"COMPLETED"}


def test_report_jobs_agrees_with_sacct_itself(flow: Flow) -> None:
    project = flow.project
    reported = {row["job_id"]: row for row in project.rows("report", "jobs")}
    told = _sacct(project, ",".join(project.bought("ol.iris.measure")))
    assert reported.keys() == {job for job in told if "." not in job}
    assert len(reported) == 10
    for job, row in reported.items():
        own = told[job]
        assert row["state"] == own["State"]
        assert row["exit_code"] == own["ExitCode"]
        assert row["name"] == own["JobName"]
        assert (row["user"], row["partition"]) == (own["User"], own["Partition"])
        assert row["nodes"] == own["NodeList"]
        assert row["elapsed_s"] == float(own["ElapsedRaw"])
        assert row["alloc_cpus"] == int(own["AllocCPUS"])
        for ours, theirs in (("submitted_at", "Submit"), ("started_at", "Start"), ("ended_at", "End")):
            assert datetime.fromisoformat(row[ours]) == datetime.fromtimestamp(int(own[theirs]), UTC)
        used, held = seconds(own["TotalCPU"]), float(own["CPUTimeRAW"])
        assert row["cpu_s"] == used
        assert row["cpu_efficiency"] == (pytest.approx(min(used / held, 1.0)) if used and held else None)
        assert row["cpu_hours"] == pytest.approx(held / 3600)
        assert row["time_efficiency"] == pytest.approx(float(own["ElapsedRaw"]) / (60 * int(own["TimelimitRaw"])))
        assert row["memory_allocated_bytes"] == tres(own["AllocTRES"])["mem"]
        peak = told[f"{job}.batch"]["MaxRSS"]
        assert row["memory_used_bytes"] == (int(peak) if peak.isdigit() and int(peak) else None)
        assert row["gpu_count"] is None
    measured = [row for row in reported.values() if row["cpu_efficiency"] is not None]
    assert measured, "no job had its CPU time gathered; nothing was compared"


def test_report_runs_adds_up_the_same_jobs(flow: Flow) -> None:
    jobs, runs = flow.project.rows("report", "jobs"), flow.project.rows("report", "runs")
    assert {row["run_id"] for row in runs} == {flow.first, flow.second}
    for run in runs:
        own = [row for row in jobs if row["run_id"] == run["run_id"]]
        assert (run["attempts"], run["completed"]) == (5, 5)
        assert run["cpu_hours"] == pytest.approx(sum(row["cpu_hours"] for row in own))


def test_explain_gives_the_whole_chain(flow: Flow) -> None:
    rows = flow.project.rows("explain", flow.first)
    chain = [row["event"] for row in rows]
    assert chain[:4] == ["run.started", "steps.wanted", "submission.intended", "submission.bound"]
    assert chain.count("try.ended") == 5
    assert chain[-1] == "run.closed"
    assert {"accounting.archived", "run.ended"} <= set(chain)
    (bound,) = flow.project.events(flow.first, ev.SubmissionBound)
    assert bound.job_id in flow.project.done("explain", flow.first)


def test_wake_jobs_close_a_run_without_any_further_tick_and_end_well(project: Project) -> None:
    project.configure(slurm={"wake": True})
    project.make()
    run = project.bench(1, 2, benchmark="quick")
    project.wait(lambda: project.state(run).phase == "closed", "the run closed by its wake job")
    authors = {one.by.host for one in project.transactions(run) if one.seq > 2}
    assert authors <= {"n1", "n2", "n3"}
    project.wait(lambda: not project.cluster.jobs(), "the end of the wake job")
    (wake,) = (job for job in project.bought() if job not in project.submission(run).job_id)

    def state() -> str:
        return _sacct(project, wake).get(wake, {}).get("State", "RUNNING")

    project.wait(lambda: state() not in {"RUNNING", "PENDING"}, "its accounting row")
    assert state() == "COMPLETED"


def _sacct(project: Project, jobs: str) -> dict[str, dict[str, str]]:
    """Ask sacct directly: every row of these jobs by its id."""
    columns = [
        "JobID",
        "State",
        "ExitCode",
        "JobName",
        "User",
        "Partition",
        "NodeList",
        "ElapsedRaw",
        "AllocCPUS",
        "Submit",
        "Start",
        "End",
        "TotalCPU",
        "CPUTimeRAW",
        "TimelimitRaw",
        "AllocTRES",
        "MaxRSS",
    ]
    done = project.cluster.run(
        ["sacct", "-n", "-P", "--noconvert", "-j", jobs, "-o", ",".join(columns)], env={"SLURM_TIME_FORMAT": "%s"}
    )
    rows = [dict(zip(columns, line.split("|"), strict=True)) for line in done.stdout.splitlines()]
    return {row["JobID"]: row for row in rows}
