"""What a pass leaves undone over runs that just run, and that it does no more than that."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from outerloop_hpc.engine import runs, watch
from outerloop_hpc.engine.evidence import Files, Index
from outerloop_hpc.engine.layout import element_file
from outerloop_hpc.engine.records import CLAIM, RECORD
from outerloop_hpc.engine.rules import Policy
from outerloop_hpc.engine.tick import Pass
from outerloop_hpc.slurm.port import Answer, Availability, JobRef, Observation, QueueRow
from tests.bench.queue import MemoryCompute
from tests.bench.statefolder import StateFolder, engine

_NOW = datetime(2026, 11, 29, tzinfo=UTC)


def live(root: Path) -> watch.LiveRun:
    """One run with five running elements, each claimed by its job."""
    folder = StateFolder(root)
    folder.add_live(1)
    return watch.load(folder.layout, runs.live(folder.layout)[0])


def gathered(run: watch.LiveRun, *queue: QueueRow) -> watch.Gathered:
    run.asked = frozenset(run.state.submissions)
    answer = Observation(Answer(Availability.ANSWERED, queue), Answer(Availability.ANSWERED))
    return watch.gather(run, {"slurm": Index.of(answer)}, _NOW, {"slurm": Policy()})


def row(run: watch.LiveRun, state: str, *, name: str = "") -> QueueRow:
    (submission,) = run.state.submissions.values()
    return QueueRow(submission.job_id, frozenset(range(5)), name or submission.name, submission.user, state)


def test_a_pass_does_not_read_the_claims_of_running_elements(tmp_path: Path) -> None:
    run = live(tmp_path / "state")
    for claim in run.journal.folder.path.rglob(f"*.{CLAIM}"):
        claim.write_bytes(b"reading this would be a fault")

    found = gathered(run, row(run, "RUNNING"))

    assert len(found.evidence) == 5
    assert all(one.files == Files() and one.look.queue_row is not None for one in found.evidence.values())


@pytest.mark.parametrize("state", ["PENDING", "COMPLETING", "REQUEUED", "?"])
def test_any_other_word_than_running_does_not_hide_a_claim(tmp_path: Path, state: str) -> None:
    run = live(tmp_path / "state")
    found = gathered(run, row(run, state))
    assert all(one.files.claim is not None for one in found.evidence.values())


def test_a_running_job_that_is_not_ours_does_not_hide_our_claim(tmp_path: Path) -> None:
    run = live(tmp_path / "state")
    found = gathered(run, row(run, "RUNNING", name="somebody-else"))
    assert all(one.files.claim is not None and one.look.foreign for one in found.evidence.values())


def test_an_element_that_runs_does_not_hide_a_record(tmp_path: Path) -> None:
    run = live(tmp_path / "state")
    (name,) = run.state.submissions
    (run.journal.folder.submission(name) / element_file(3, RECORD)).write_bytes(b"not a record")

    found = gathered(run, row(run, "RUNNING"))

    assert [index for (_, index), one in found.evidence.items() if one.files.fault] == [3]


def test_a_claim_that_a_reconciler_took_is_seen_when_its_job_no_longer_runs(tmp_path: Path) -> None:
    run = live(tmp_path / "state")
    for claim in run.journal.folder.path.rglob(f"*.{CLAIM}"):
        claim.write_bytes(claim.read_bytes().replace(b'"abandoned":false', b'"abandoned":true'))

    found = gathered(run)

    assert all(one.files.claim is not None and one.files.claim.abandoned for one in found.evidence.values())


def test_the_garbage_collector_is_not_left_off_after_a_pass(tmp_path: Path) -> None:
    seen: list[bool] = []

    class Watching(MemoryCompute):
        def observe(self, jobs: Sequence[JobRef]) -> Observation:
            seen.append(gc.isenabled())
            return super().observe(jobs)

    folder = StateFolder(tmp_path / "state")
    folder.add_live(1)
    Pass(engine(folder.root, Watching()), launch=False).run()

    assert (seen, gc.isenabled()) == ([False], True)


def test_a_quiet_pass_writes_nothing_into_its_runs(tmp_path: Path) -> None:
    folder = StateFolder(tmp_path / "state")
    folder.add_live(2)
    before = {path: path.stat().st_mtime_ns for path in folder.layout.runs.rglob("*")}

    Pass(engine(folder.root, MemoryCompute()), launch=False).run()

    assert {path: path.stat().st_mtime_ns for path in folder.layout.runs.rglob("*")} == before
