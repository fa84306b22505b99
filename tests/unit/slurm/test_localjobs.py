"""Event files of local jobs: any text is read, and each element is what its processes and its controller say."""

from __future__ import annotations

import errno
import json
import os
import socket
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outerloop_hpc import fsio
from outerloop_hpc.errors import TryLater
from outerloop_hpc.slurm import local
from outerloop_hpc.slurm.local import LocalCompute
from outerloop_hpc.slurm.localjobs import STARTUP_S, LocalJob, event_line, identity_of, parse, resources_of, rows
from outerloop_hpc.slurm.port import AccountingRow, Availability, JobRef, QueueRow
from outerloop_hpc.slurm.processes import alive, boot_id, start_ticks, this_process
from outerloop_hpc.slurm.processid import ProcessId
from outerloop_hpc.slurm.states import TABLE

pytestmark = pytest.mark.unit

AT = 1_800_000_000.0
NAME = "ol.iris.measure.0011"
CONTROLLER = ProcessId(100, 1, "boot-a", "here")
ELEMENT = ProcessId(101, 2, "boot-a", "here")
USED: dict[str, Any] = {"seconds": 12.3, "cpu_s": 11.5, "rss": 4096}


def submitted(count: int = 1, at: float = AT) -> str:
    said = {"name": NAME, "user": "ann", "host": "here", "function": "x:y", "parallel": 2}
    return event_line("submitted", at, {**said, **resources_of(2, 10, ["p"] * count)})


def controller(at: float = AT + 1) -> str:
    return event_line("controller", at, {"job_id": "100", **identity_of(CONTROLLER)})


def started(index: int = 0, at: float = AT + 2) -> str:
    return event_line("started", at, {"index": index, **identity_of(ELEMENT)})


def ended(index: int = 0, state: str = "COMPLETED", at: float = AT + 14, **more: Any) -> str:
    return event_line("ended", at, {"index": index, "state": state, "status": 0, "signal": 0, **USED, **more})


class Host:
    """Which processes live; a process of another host cannot be asked."""

    def __init__(self, *living: ProcessId, name: str = "here", boot: str = "boot-a") -> None:
        self.living, self.name, self.boot = living, name, boot

    def __call__(self, process: ProcessId) -> bool | None:
        if process.host != self.name:
            return None
        return process.boot == self.boot and process in self.living


def seen(*lines: str, host: Host, after: float = 5) -> tuple[list[QueueRow], list[AccountingRow]]:
    job, problems = parse("".join(lines))
    assert problems == ()
    assert job is not None
    job.job_id = job.job_id or "100"
    return rows(job, host, AT + after)


def words(*lines: str, host: Host, after: float = 5) -> tuple[list[str], list[str]]:
    queue, accounting = seen(*lines, host=host, after=after)
    return [row.state for row in queue], [row.state for row in accounting if not row.step]


BOTH, ONLY_CONTROLLER, ONLY_ELEMENT, NONE = Host(CONTROLLER, ELEMENT), Host(CONTROLLER), Host(ELEMENT), Host()
START = (submitted(), controller(), started())


@pytest.mark.parametrize(
    ("lines", "host", "after", "queue", "accounting"),
    [
        ((submitted(),), NONE, 5, ["PENDING"], ["PENDING"]),
        ((submitted(),), NONE, STARTUP_S - 1, ["PENDING"], ["PENDING"]),
        ((submitted(),), NONE, STARTUP_S, [], ["BOOT_FAIL"]),
        ((submitted(), controller()), ONLY_CONTROLLER, 1e6, ["PENDING"], ["PENDING"]),
        ((submitted(), controller()), NONE, 5, [], ["NODE_FAIL"]),
        (START, BOTH, 1e6, ["RUNNING"], ["RUNNING"]),
        (START, ONLY_CONTROLLER, 5, ["RUNNING"], ["RUNNING"]),
        (START, ONLY_ELEMENT, 5, ["RUNNING"], ["RUNNING"]),
        (START, NONE, 5, [], ["NODE_FAIL"]),
        ((*START, ended()), BOTH, 20, [], ["COMPLETED"]),
        ((*START, ended(state="TIMEOUT")), NONE, 1e6, [], ["TIMEOUT"]),
    ],
    ids=[
        "fresh",
        "controller may still come",
        "controller never came",
        "waits for its turn",
        "controller dead before the start",
        "running",
        "about to be accounted",
        "orphan that runs on",
        "all dead",
        "ended",
        "ended long ago",
    ],
)
def test_an_element_is_what_its_processes_say(
    lines: tuple[str, ...], host: Host, after: float, queue: list[str], accounting: list[str]
) -> None:
    assert words(*lines, host=host, after=after) == (queue, accounting)


def test_processes_of_another_host_are_unknown_and_neither_alive_nor_dead() -> None:
    assert words(*START, host=Host(name="elsewhere"), after=1e6) == (["?"], [])
    assert words(submitted(), controller(), host=Host(name="elsewhere"), after=1e6) == (["?"], [])


def test_what_ended_is_known_on_every_host() -> None:
    assert words(*START, ended(), host=Host(name="elsewhere")) == ([], ["COMPLETED"])


def test_processes_of_before_a_reboot_are_dead_though_their_numbers_live() -> None:
    assert words(*START, host=Host(CONTROLLER, ELEMENT, boot="boot-b")) == ([], ["NODE_FAIL"])


def test_each_element_of_an_array_is_judged_by_itself() -> None:
    lines = (submitted(3), controller(), started(0), ended(0), started(1))
    queue, accounting = seen(*lines, host=BOTH)
    assert [(row.tasks, row.state) for row in queue] == [(frozenset({1}), "RUNNING"), (frozenset({2}), "PENDING")]
    allocations = [(row.task, row.state) for row in accounting if not row.step]
    assert allocations == [(0, "COMPLETED"), (1, "RUNNING"), (2, "PENDING")]
    assert [row.columns["JobID"] for row in accounting] == ["100_0", "100_0.batch", "100_1", "100_2"]


def test_what_was_used_is_in_the_batch_step_and_what_was_not_measured_nowhere() -> None:
    _, accounting = seen(*START, ended(), host=NONE)
    job, batch = accounting
    assert (job.start, job.end, job.columns["ElapsedRaw"]) == (int(AT + 2), int(AT + 14), "12")
    assert (batch.step, batch.columns["MaxRSS"], batch.columns["TotalCPU"]) == ("batch", "4096", "00:11.500")
    assert job.exit_code == (0, 0)
    (waiting,) = seen(submitted(), controller(), host=ONLY_CONTROLLER)[1]
    assert (waiting.start, waiting.end, waiting.columns["AllocCPUS"]) == (None, None, "0")
    assert waiting.exit_code is None


def test_a_cancellation_says_by_whom() -> None:
    line = event_line("ended", AT + 9, {"index": 0, "state": "CANCELLED", "status": 0, "signal": 15, "uid": 1000})
    (row,) = seen(submitted(), controller(), line, host=NONE)[1]
    assert (row.state, row.cancelled_by, row.columns["State"]) == ("CANCELLED", 1000, "CANCELLED by 1000")
    assert row.start is None


# --- totality -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        '{"event":"ended","index":0,"at":1}',
        '{"event":"ended","index":0,"at":1,"state":"COMPLETED","status":"?","signal":0}',
        '{"event":"ended","index":7,"at":1,"state":"COMPLETED","status":0,"signal":0}',
        '{"event":"ended","index":0,"at":1,"state":"COMPLETED","status":0,"signal":0,"cpu_s":1}',
        '{"event":"ended","index":0,"at":NaN,"state":"COMPLETED","status":0,"signal":0}',
        '{"event":"started","index":0,"at":1}',
        '{"event":"started","index":-1,"at":1,"pid":1,"ticks":1,"boot":"b","host":"h"}',
        '{"event":"controller","at":1,"job_id":"1","pid":Infinity,"ticks":1,"boot":"b","host":"h"}',
        '{"event":"controller","at":' + "9" * 400 + "}",
        submitted(9),
        '{"event":"promoted","at":1}',
        '{"at":1}',
        "[]",
        "7",
        "null",
        '"event"',
        '{"event":"en',
        "",
        "[" * 100_000,
        "\ufffd\x00",
    ],
)
def test_a_damaged_line_is_a_problem_and_ends_no_pass(line: str) -> None:
    job, problems = parse("".join((*START, line.rstrip("\n"), "\n")))
    assert len(problems) == 1
    assert problems[0].startswith("line 4: ")
    assert job is not None
    assert [row.state for row in rows(job, BOTH, AT)[0]] == ["RUNNING"]


@pytest.mark.parametrize(
    "change",
    [{"count": 0}, {"count": "x"}, {"count": None}, {"name": None}, {"user": None}, {"at": None}, {"minutes": [1]}],
    ids=str,
)
def test_a_damaged_first_line_leaves_no_job_and_no_error(change: dict[str, Any]) -> None:
    given_line = {**json.loads(submitted()), **change}
    line = json.dumps({key: value for key, value in given_line.items() if value is not None})
    job, problems = parse(f"{line}\n{controller()}")
    assert job is None
    assert len(problems) == 2


values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 2**70) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2),
    max_leaves=3,
)
KEYS = "at index pid ticks boot host job_id state status signal seconds cpu_s rss uid name user cpus minutes parallel"
events = st.builds(
    lambda event, fields: json.dumps({"event": event, **fields}),
    st.sampled_from(["submitted", "controller", "started", "ended", "odd"]),
    st.dictionaries(st.sampled_from(KEYS.split()), values),
)
mutated = st.builds(
    lambda line, key, value: json.dumps({**json.loads(line), key: value}),
    st.sampled_from([submitted(2), controller(), started(), ended(), ended(1)]),
    st.sampled_from(KEYS.split()),
    values,
)
good = st.sampled_from([controller(), started(), started(1), ended(), ended(1, "CANCELLED")])


@given(
    st.lists(st.text(max_size=30) | events | mutated | good, max_size=6), st.booleans(), st.sampled_from([BOTH, NONE])
)
def test_any_text_is_read_and_gives_rows(lines: list[str], whole: bool, host: Host) -> None:
    text = "\n".join(line.rstrip("\n") for line in ([submitted(2)] if whole else []) + lines)
    job, problems = parse(text)
    assert len(problems) <= len(text.splitlines())
    if job is None:
        return
    queue, accounting = rows(job, host, AT)
    assert len(queue) <= job.count
    assert {row.name for row in queue} | {row.name for row in accounting} == {job.submitted["name"]}


def test_a_torn_last_line_loses_only_itself() -> None:
    text = "".join((*START, ended()))
    for cut in range(len("".join(START)) + 1, len(text) - 1):
        job, problems = parse(text[:cut])
        assert job is not None
        assert len(problems) == 1
        assert job.ended == {}


def test_the_words_are_slurms() -> None:
    for word in ("PENDING", "RUNNING", "BOOT_FAIL", "NODE_FAIL", "COMPLETED", "FAILED", "TIMEOUT", "CANCELLED"):
        assert word in TABLE


# --- the observer ---------------------------------------------------------------------------------------------------


def ref(name: str = NAME, job_id: str | None = None) -> JobRef:
    return JobRef(name, "ann", job_id, "", datetime.fromtimestamp(AT, UTC))


def test_jobs_are_found_by_their_name_bound_or_not(tmp_path: Path) -> None:
    (tmp_path / f"{NAME}.jsonl").write_text("".join((*START, ended())), encoding="utf-8")
    compute = LocalCompute(tmp_path)
    for job_id in (None, "100"):
        found = compute.observe([ref(job_id=job_id), ref("never-submitted")])
        assert [row.job_id for row in found.accounting.rows] == ["100", "100"]
        assert found.queue.availability is Availability.ANSWERED
        assert found.calls == 0


def test_a_job_without_an_id_yet_has_no_rows(tmp_path: Path) -> None:
    (tmp_path / f"{NAME}.jsonl").write_text(submitted(), encoding="utf-8")
    found = LocalCompute(tmp_path).observe([ref()])
    assert (found.queue.rows, found.accounting.rows, found.queue.problems) == ((), (), ())


@pytest.mark.parametrize("harm", ["damaged", "unreadable"])
def test_one_bad_event_file_hides_no_other_job(tmp_path: Path, harm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bad.jsonl").write_bytes(b'{"event":"submitted","at":1,"count":Infinity}\n\xff')
    (tmp_path / f"{NAME}.jsonl").write_text("".join((*START, ended())), encoding="utf-8")
    real = fsio.read

    def refuse(path: Path) -> bytes:
        if harm == "unreadable" and path.name == "bad.jsonl":
            raise PermissionError(errno.EACCES, "Permission denied")
        return real(path)

    monkeypatch.setattr(fsio, "read", refuse)
    found = LocalCompute(tmp_path).observe([ref("bad", "9"), ref(job_id="100")])
    assert [row.job_id for row in found.accounting.rows] == ["100", "100"]
    assert all(problem.startswith("bad: ") for problem in found.queue.problems)
    assert found.queue.problems


@pytest.mark.parametrize("harm", ["unreadable", "not ours"])
def test_one_job_that_cannot_be_cancelled_keeps_no_other_from_it(
    tmp_path: Path, harm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("bad", NAME):
        (tmp_path / f"{name}.jsonl").write_text(submitted().replace(NAME, name), encoding="utf-8")
    real, asked = fsio.read, []

    def refuse(path: Path) -> bytes:
        if harm == "unreadable" and path.name == "bad.jsonl":
            raise PermissionError(errno.EACCES, "Permission denied")
        return real(path)

    def terminate(job: LocalJob) -> None:
        if job.submitted["name"] == "bad":
            raise PermissionError(errno.EPERM, "Operation not permitted")
        asked.append(job.submitted["name"])

    monkeypatch.setattr(fsio, "read", refuse)
    monkeypatch.setattr(local, "_terminate", terminate)
    with pytest.raises(TryLater, match="bad: "):
        LocalCompute(tmp_path).cancel([ref("bad", "9"), ref(job_id="100")])
    assert asked == [NAME]


def test_a_process_is_known_by_its_start_and_its_boot() -> None:
    own = this_process()
    assert alive(own) is True
    assert alive(ProcessId(own.pid, own.ticks + 1, own.boot, own.host)) is False
    assert alive(ProcessId(own.pid, own.ticks, "another boot", own.host)) is False
    assert alive(ProcessId(own.pid, own.ticks, own.boot, "another.host")) is None
    assert own == ProcessId(os.getpid(), start_ticks(os.getpid()) or -1, boot_id(), socket.gethostname())
    assert start_ticks(2**22 + 5) is None


def test_a_job_that_was_parsed_counts_its_elements() -> None:
    job, _ = parse(submitted(3))
    assert isinstance(job, LocalJob)
    assert (job.count, job.array) == (3, True)
