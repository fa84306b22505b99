"""Jobs that Slurm runs a second time under the same id."""

from __future__ import annotations

from tests.slurm.project import Project


def allow_requeue(project: Project, job: str) -> None:
    """Take back a job's ``--no-requeue``, as its owner may while it waits or runs."""
    project.cluster.check(["scontrol", "update", f"jobid={job}", "requeue=1"], user=project.user)


def requeue(project: Project, job: str) -> None:
    """Put a job back into the queue; returns when it waits there until ``start_now``."""
    project.cluster.check(["scontrol", "requeue", job])
    wait_requeued(project, job)


def wait_requeued(project: Project, job: str) -> None:
    """Wait until a job is back in the queue, and let it stay there: Slurm itself would start it after two minutes."""
    project.wait(lambda: "PENDING BeginTime" in _seen(project, job), f"job {job} back in the queue")
    project.cluster.check(["scontrol", "update", f"jobid={job}", "starttime=now+1hour"])


def start_now(project: Project, job: str) -> None:
    """Start a job that ``wait_requeued`` has seen; returns when it has begun to run again."""
    project.cluster.check(["scontrol", "update", f"jobid={job}", "starttime=now"])
    project.wait(lambda: "PENDING" not in _seen(project, job), f"job {job} started again")


def _seen(project: Project, job: str) -> str:
    return project.cluster.run(["squeue", "-h", "-t", "all", "-j", job, "-o", "%T %r"]).stdout
