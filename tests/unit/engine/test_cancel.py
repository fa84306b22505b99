"""What a pass cancels: its own jobs that the queue lists, and never a stranger that has one's id by now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from outerloop_hpc.engine import inbox, runs
from outerloop_hpc.engine.tick import Pass
from outerloop_hpc.slurm.port import Answer, Availability, JobRef, Observation
from tests.bench.queue import MemoryCompute
from tests.bench.statefolder import StateFolder, engine

pytestmark = pytest.mark.unit


@dataclass
class Queue(MemoryCompute):
    """Everything runs, but ``answer`` has the last word on what squeue says; cancellations are noted."""

    answer: str
    cancelled: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def observe(self, jobs: Sequence[JobRef]) -> Observation:
        seen = super().observe(jobs)
        match self.answer:
            case "reused":
                queue = Answer(seen.queue.availability, tuple(replace(row, name="other") for row in seen.queue.rows))
            case "gone":
                queue = Answer(Availability.ANSWERED)
            case "silent":
                queue = Answer(Availability.UNAVAILABLE)
            case _:
                queue = seen.queue
        return replace(seen, queue=queue)

    def cancel(self, jobs: Sequence[JobRef]) -> None:
        self.cancelled += [ref.job_id or ref.name for ref in jobs]


@pytest.mark.parametrize(("answer", "times"), [("ours", 1), ("reused", 0), ("gone", 0), ("silent", 0)])
def test_only_what_the_queue_lists_as_ours_is_cancelled(tmp_path: Path, answer: str, times: int) -> None:
    """``scancel`` goes by the id alone: with a reused one it would end another job of the same user."""
    folder = StateFolder(tmp_path / "state")
    folder.add_live(1)
    (run,) = runs.live(folder.layout)
    inbox.put(folder.layout.run(run), "end", who="alice", reason="enough", at=datetime.now(UTC))
    compute = Queue(answer)
    Pass(engine(folder.root, compute), launch=False).run()
    assert len(compute.cancelled) == times

    compute.answer = "ours"
    Pass(engine(folder.root, compute), launch=False).run()
    assert len(compute.cancelled) == times + 1, "a later pass that sees the job must ask for its end"
