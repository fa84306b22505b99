from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from outerloop_hpc.slurm.identity import SLACK_S, Mismatch, attempts, matches, newest
from outerloop_hpc.slurm.port import AccountingRow, JobRef, QueueRow

pytestmark = pytest.mark.unit

AT = datetime(2026, 11, 29, 12, 50, 6, tzinfo=UTC)
REF = JobRef("ours", "user1", "3", "test", AT)
T = int(AT.timestamp())
ROW = AccountingRow("3", None, "", "ours", "user1", "test", "RUNNING", None, T, None, None, None)
QUEUED = QueueRow("3", None, "ours", "user1", "PENDING", submit=T)
DATA = Path(__file__).parents[2] / "data" / "sacct"
SAID = re.compile(r"(\d+)\|(\w+)\|(\w+)\|(\S+)")


@pytest.mark.parametrize(
    ("row", "ref", "same"),
    [
        (ROW, REF, True),
        (QUEUED, REF, True),
        (replace(ROW, submit=T - SLACK_S), REF, True),
        (replace(ROW, submit=T - SLACK_S - 1), REF, False),
        (replace(ROW, submit=T + 10**6), REF, True),  # a requeue moves Submit
        (replace(ROW, name="other"), REF, False),
        (replace(ROW, user="user2"), REF, False),
        (replace(ROW, cluster="else"), REF, False),
        (replace(ROW, cluster="else"), replace(REF, cluster=""), True),
        (replace(ROW, job_id="4"), REF, False),
        (replace(ROW, job_id="3+0"), REF, False),
        (replace(ROW, step="batch"), REF, False),
        (replace(ROW, name="allocation"), REF, True),
        (replace(ROW, name="allocation", submit=T - 200), REF, False),
        (replace(ROW, name="allocation", submit=None), REF, False),
        (replace(ROW, name="allocation", user="user2"), REF, False),
        (replace(ROW, name="allocation"), replace(REF, job_id=None), False),
        (replace(QUEUED, name="allocation"), REF, False),
        (replace(ROW, submit=None), REF, True),
        (QUEUED, replace(REF, job_id=None), True),
        (replace(QUEUED, user="user2"), replace(REF, job_id=None), False),
    ],
)
def test_identity(row: QueueRow | AccountingRow, ref: JobRef, same: bool) -> None:
    verdict = matches(row, ref)
    assert bool(verdict) is same
    if not same:
        assert isinstance(verdict, Mismatch)
        assert row.job_id in verdict.reason


def recorded_rows(version: str, since: str) -> list[AccountingRow]:
    """Every sacct answer of the capture in which ids were reused, from the submission of id 3 on."""
    text = (DATA / version / "s2_reuse.txt").read_text(encoding="utf-8").split(since, 1)[1].split("submitted id=")[0]
    return [
        AccountingRow(number, None, "", name, "user1", "test", state, None, int(_epoch(at)), None, None, None)
        for number, name, state, at in SAID.findall(text)
    ]


def _epoch(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


@pytest.mark.parametrize("version", ["22.05.8", "26.05.5"])
@pytest.mark.parametrize(("job", "name"), [("3", "reuse2"), ("4", "reuse3"), ("5", "reuse4"), ("6", "reuse5")])
def test_a_reused_id_never_answers_with_the_old_job(version: str, job: str, name: str) -> None:
    rows = recorded_rows(version, f"submitted id={job}\n")
    old = [row for row in rows if row.state in {"TIMEOUT", "FAILED", "CANCELLED", "PREEMPTED"}]
    assert old
    begun = min(row.submit or 0 for row in rows if row not in old)
    ref = JobRef(name, "user1", job, "test", datetime.fromtimestamp(begun, UTC) + timedelta(seconds=3))
    assert not any(matches(row, ref) for row in old)
    ours = [row for row in rows if matches(row, ref)]
    assert {row.name for row in ours} <= {name, "allocation"}
    assert newest(ours)[None].state in {"COMPLETED", "RUNNING"}


def test_newest_is_by_submit_for_each_element_and_skips_steps() -> None:
    first = replace(ROW, task=0, state="NODE_FAIL", submit=T)
    again = replace(ROW, task=0, state="PENDING", submit=T + 9)
    other = replace(ROW, task=1, state="RUNNING", submit=T)
    step = replace(ROW, task=0, step="batch", state="RUNNING", submit=T + 99)
    assert newest([again, first, other, step]) == {0: again, 1: other}


def test_newest_prefers_the_later_line_and_a_row_with_a_time() -> None:
    untimed = replace(ROW, state="PENDING", submit=None)
    same = replace(ROW, state="COMPLETED")
    assert newest([ROW, same, untimed]) == {None: same}
    assert newest([]) == {}


def test_attempts_keep_their_steps_and_leave_out_those_of_a_reused_id() -> None:
    old = replace(ROW, name="other", submit=T - 10**6)
    step = replace(ROW, step="batch", name="batch", user="")
    lost = replace(ROW, state="NODE_FAIL", submit=T)
    again = replace(ROW, state="COMPLETED", submit=T + 9)
    found = attempts([old, replace(step, state="FAILED"), lost, step, again, step, replace(step, step="0")], REF)
    assert [(a.allocation.state, [s.step for s in a.steps]) for a in found] == [
        ("NODE_FAIL", ["batch"]),
        ("COMPLETED", ["batch", "0"]),
    ]
