"""Accounting is asked about jobs that the queue does not settle, and about no others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest

from outerloop_hpc.process import Finished
from outerloop_hpc.slurm.parse import SEPARATOR
from outerloop_hpc.slurm.port import Availability, JobRef
from outerloop_hpc.slurm.query import WANTED_COLUMNS, SlurmQuery

T0 = datetime(2026, 11, 29, tzinfo=UTC)


@dataclass
class Clients:
    """squeue prints these lines; of sacct only the ids that it is asked about are kept."""

    queue: Sequence[tuple[str, str, str]]
    queue_status: int = 0
    asked: list[str] = field(default_factory=list)

    def __call__(
        self,
        argv: Sequence[str],
        *,
        timeout: float,
        env: Mapping[str, str] | None = None,
        stdin: bytes | None = None,
        cwd: Path | None = None,
    ) -> Finished:
        if argv[0] == "squeue":
            lines = [(id_, "", state, "ann", "p", "n1", "None", name) for id_, state, name in self.queue]
            text = "".join(SEPARATOR.join(line) + "\n" for line in lines)
            return Finished(tuple(argv), self.queue_status, text, "", timed_out=False, seconds=0)
        if "--helpformat" in argv:
            return Finished(tuple(argv), 0, WANTED_COLUMNS, "", timed_out=False, seconds=0)
        self.asked += argv[-1].split(",")
        return Finished(tuple(argv), 0, SEPARATOR.join(WANTED_COLUMNS.split()), "", timed_out=False, seconds=0)


def ref(job_id: str, elements: int) -> JobRef:
    return JobRef(f"job{job_id}", "ann", job_id, "", T0, elements)


def asked_about(clients: Clients, *refs: JobRef) -> list[str]:
    observation = SlurmQuery(clients, {}, separator=SEPARATOR).observe(refs)
    assert observation.accounting.availability is Availability.ANSWERED
    return clients.asked


def test_accounting_is_not_burdened_with_jobs_that_just_run() -> None:
    clients = Clients([("7", "RUNNING", "job7"), ("8_0", "RUNNING", "job8"), ("8_1", "RUNNING", "job8")])
    assert asked_about(clients, ref("7", 1), ref("8", 2)) == []


@pytest.mark.parametrize("state", ["COMPLETING", "REQUEUED", "PENDING", "COMPLETED", "?"])
def test_any_other_word_has_accounting_asked(state: str) -> None:
    assert asked_about(Clients([("7", state, "job7")]), ref("7", 1)) == ["7"]


def test_an_array_with_an_element_that_the_queue_lacks_has_accounting_asked() -> None:
    clients = Clients([("8_0", "RUNNING", "job8"), ("8_0", "RUNNING", "job8")])
    assert asked_about(clients, ref("8", 2)) == ["8"]


def test_a_reused_id_that_runs_does_not_stand_for_our_job() -> None:
    assert asked_about(Clients([("7", "RUNNING", "somebody-elses")]), ref("7", 1)) == ["7"]


def test_a_queue_that_failed_settles_nothing() -> None:
    assert asked_about(Clients([("7", "RUNNING", "job7")], queue_status=1), ref("7", 1)) == ["7"]


def test_a_job_of_unknown_size_has_accounting_asked() -> None:
    assert asked_about(Clients([("7", "RUNNING", "job7")]), ref("7", 0)) == ["7"]
