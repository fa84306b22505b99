from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from outerloop_hpc.process import Finished
from outerloop_hpc.slurm.parse import SEPARATOR, queue_format
from outerloop_hpc.slurm.port import Availability, JobRef
from outerloop_hpc.slurm.query import IDS_PER_CALL, SlurmQuery

if TYPE_CHECKING:
    from tests.unit.slurm.conftest import FakeRunner, Recorded

pytestmark = pytest.mark.unit

NOW = datetime(2026, 11, 29, 13, 0, 0, tzinfo=UTC)
REF = JobRef("run-1", "user1", "7", "", NOW - timedelta(minutes=10))
COLUMNS = "JobID JobIDRaw SLUID User State Submit Start End Cluster JobName NotWanted"
HEADER = SEPARATOR.join(("JobID", "JobIDRaw", "SLUID", "User", "Cluster", "State", "Submit", "Start", "End", "JobName"))
DISABLED = "Slurm accounting storage is disabled"


class FixedClock:
    def now(self) -> datetime:
        return NOW

    def steady(self) -> float:
        return 0.0

    def sleep(self, seconds: float) -> None:
        raise AssertionError("nothing here waits")


def queue_line(job: str, name: str = "run-1", user: str = "user1", state: str = "RUNNING") -> str:
    return SEPARATOR.join((job, str(int(NOW.timestamp())), state, user, "main", "n1", "None", name))


def accounting_line(job: str, name: str = "run-1", state: str = "RUNNING") -> str:
    return SEPARATOR.join((job, job, "s1", "user1", "test", state, "1795956079", "1795956080", "Unknown", name))


def asked(runner: FakeRunner, **options: object) -> SlurmQuery:
    runner.replies.setdefault("helpformat", lambda argv: _finished(argv, COLUMNS))
    environ = {
        "PATH": "/bin",
        "SLURM_JOB_ID": "9",
        "SQUEUE_FORMAT": "%i",
        "SLURM_CONF": "/etc/s.conf",
        "SACCT_FORMAT": "x",
    }
    return SlurmQuery(runner, environ, clock=FixedClock(), separator=SEPARATOR, **options)  # type: ignore[arg-type] # options of each test


def _finished(argv: Sequence[str], stdout: str = "", stderr: str = "", status: int | None = 0) -> Finished:
    return Finished(tuple(argv), status, stdout, stderr, timed_out=status is None, seconds=0.1)


def test_one_squeue_without_ids_or_partitions_in_a_clean_environment(runner: FakeRunner) -> None:
    runner.says("squeue", queue_line("7"))
    answer = asked(runner).queue([REF, replace(REF, job_id="8", user="amy"), replace(REF, job_id=None)])
    assert answer.availability is Availability.ANSWERED
    assert runner.asked == [("squeue", "-h", "-a", "-t", "all", "-u", "amy,user1", "-o", queue_format())]
    assert runner.environments[0] == {
        "PATH": "/bin",
        "SLURM_CONF": "/etc/s.conf",
        "LC_ALL": "C",
        "SLURM_TIME_FORMAT": "%s",
        "SLURM_BITSTR_LEN": "0",
    }


def test_the_job_name_is_the_last_column_of_the_queue() -> None:
    assert queue_format().endswith("\x1f%j")


def test_a_job_name_cannot_pretend_to_be_a_row(runner: FakeRunner) -> None:
    forged = "x\n" + queue_line("7")

    def squeue(argv: Sequence[str]) -> Finished:
        separator = argv[-1].removeprefix("%i").partition("%V")[0]
        return _finished(argv, separator.join(("99", "1", "PENDING", "user1", "", "", "None", forged)))

    runner.replies["squeue"] = squeue
    answers = [SlurmQuery(runner, {}).queue([REF]) for _ in range(2)]
    assert [[(row.job_id, row.name) for row in answer.rows] for answer in answers] == [[("99", forged)]] * 2
    assert len({argv[-1] for argv in runner.asked}) == 2


def test_no_jobs_no_calls(runner: FakeRunner) -> None:
    look = asked(runner).observe([])
    assert (look.queue.availability, look.accounting.availability) == (Availability.ANSWERED, Availability.ANSWERED)
    assert look.calls == 0
    assert not runner.asked


@pytest.mark.parametrize(
    ("stdout", "stderr", "status"),
    [
        ("", "slurm_load_jobs error: Unable to contact slurm controller (connect failure)", 1),
        (queue_line("7"), "slurm_load_jobs error: Socket timed out on send/recv operation", 1),
        ("", "", None),
        ("", "squeue: error: something", 0),
        (queue_line("7"), "squeue: error: Invalid user: amy", 0),
        (queue_line("8"), "squeue: error: 'b' can't be reached now, or it is an invalid entry for --cluster.", 0),
    ],
)
def test_a_failed_or_half_answered_squeue_is_no_observation(
    runner: FakeRunner, stdout: str, stderr: str, status: int | None
) -> None:
    runner.says("squeue", stdout, stderr, status)
    answer = asked(runner).queue([REF])
    assert answer.availability is Availability.UNAVAILABLE
    assert answer.problems


def test_an_empty_queue_is_an_answer(runner: FakeRunner) -> None:
    runner.says("squeue", "")
    answer = asked(runner).queue([REF])
    assert (answer.availability, answer.rows, answer.problems) == (Availability.ANSWERED, (), ())


def test_a_line_of_ours_that_cannot_be_read_makes_the_queue_unavailable(runner: FakeRunner) -> None:
    runner.says("squeue", "\n".join([queue_line("9", "else"), queue_line("7_[1,3-4...]")]))
    answer = asked(runner).queue([REF])
    assert answer.availability is Availability.UNAVAILABLE
    assert "7_[1,3-4...]" in answer.problems[0]


@pytest.mark.parametrize("line", ["7_[1,3-4...", "10_[0-9999999]", "x9"])
def test_a_strange_line_of_another_job_is_only_told(runner: FakeRunner, line: str) -> None:
    runner.says("squeue", "\n".join([queue_line(line, "else"), queue_line("7")]))
    answer = asked(runner).queue([REF, replace(REF, name="run-2", job_id=None)])
    assert answer.availability is Availability.ANSWERED
    assert [row.job_id for row in answer.rows] == ["7"]
    assert len(answer.problems) == 1


def test_a_cut_off_answer_is_no_observation(runner: FakeRunner) -> None:
    runner.says("squeue", queue_line("7")[:12])
    assert asked(runner).queue([REF]).availability is Availability.UNAVAILABLE


def test_a_site_banner_blinds_nobody(runner: FakeRunner) -> None:
    runner.says("squeue", "Welcome, 7 jobs today\nCLUSTER: alpha\n" + queue_line("7"))
    answer = asked(runner).queue([REF])
    assert answer.availability is Availability.ANSWERED
    assert [row.job_id for row in answer.rows] == ["7"]


def test_each_cluster_is_asked_once_with_its_jobs(runner: FakeRunner) -> None:
    runner.says("squeue", "CLUSTER: x\n" + queue_line("7"))
    runner.says("sacct", f"{HEADER}\n")
    query = asked(runner, cluster="alpha")
    look = query.observe([REF, replace(REF, cluster="beta", job_id="8"), replace(REF, job_id="9")])
    assert [argv[1:3] for argv in runner.calls("squeue")] == [("-M", "alpha"), ("-M", "beta")]
    assert [(argv[2], argv[-1]) for argv in runner.calls("sacct")] == [("alpha", "7,9"), ("beta", "8")]
    assert look.calls == 5


def test_one_cluster_that_does_not_answer_makes_the_whole_unavailable(runner: FakeRunner) -> None:
    runner.replies["squeue"] = lambda argv: _finished(argv, queue_line("7"), "", 1 if "beta" in argv else 0)
    answer = asked(runner).queue([REF, replace(REF, cluster="beta")])
    assert answer.availability is Availability.UNAVAILABLE


def test_sacct_is_asked_by_id_with_the_columns_that_exist(runner: FakeRunner) -> None:
    runner.says("sacct", f"{HEADER}\n{accounting_line('7')}\n{accounting_line('7.batch', 'batch')}\n")
    answer = asked(runner).accounting([REF, REF])
    (argv,) = runner.calls("sacct")
    assert argv[1:] == (
        *("-a", "-D", "-P", "--noconvert", f"--delimiter={SEPARATOR}"),
        *("-o", HEADER.replace(SEPARATOR, ","), "-j", "7"),
    )
    assert answer.availability is Availability.ANSWERED
    assert [(row.step, row.end, row.submit) for row in answer.rows] == [
        ("", None, 1795956079),
        ("batch", None, 1795956079),
    ]


@pytest.mark.parametrize("name", ["SubmitLine", "Comment", "WorkDir"])
def test_no_free_text_with_newlines_is_asked_for(
    runner: FakeRunner, recorded: Recorded, version: str, name: str
) -> None:
    ((_, helpformat),) = [(c, out) for c, out in recorded(version, "errors") if "helpformat" in c]
    runner.says("helpformat", helpformat)
    runner.says("sacct", f"{HEADER}\n")
    asked(runner).accounting([REF])
    columns = runner.calls("sacct")[0][7].split(",")
    assert name not in columns
    assert columns[-1] == "JobName"
    assert {"TRESUsageInTot", "AllocTRES", "Cluster", "ElapsedRaw", "JobIDRaw"} <= set(columns)
    assert set(columns) <= set(helpformat.split())


def test_many_ids_go_in_chunks(runner: FakeRunner) -> None:
    runner.says("sacct", f"{HEADER}\n")
    asked(runner).accounting([replace(REF, job_id=str(number)) for number in range(1, IDS_PER_CALL + 2)])
    assert [argv[-1].count(",") + 1 for argv in runner.calls("sacct")] == [IDS_PER_CALL, 1]


def test_what_is_no_id_is_told_and_does_not_fail_the_others(runner: FakeRunner) -> None:
    runner.says("sacct", f"{HEADER}\n{accounting_line('7')}\n")
    answer = asked(runner).accounting([REF, replace(REF, job_id="abc"), replace(REF, job_id="1 -M x")])
    assert [argv[-1] for argv in runner.calls("sacct")] == ["7"]
    assert answer.availability is Availability.ANSWERED
    assert "abc" in answer.problems[0]


def test_a_job_without_an_id_is_found_by_name_in_the_queue_first(runner: FakeRunner) -> None:
    runner.says("squeue", queue_line("31"))
    runner.says("sacct", f"{HEADER}\n{accounting_line('31')}\n")
    look = asked(runner).observe([replace(REF, job_id=None)])
    (argv,) = runner.calls("sacct")
    assert argv[-2:] == ("-j", "31")
    assert look.accounting.rows[0].job_id == "31"


@pytest.mark.parametrize("line", [queue_line("31", user="amy"), queue_line("31", name="run-11"), ""])
def test_a_job_that_the_queue_does_not_know_is_searched_by_name(runner: FakeRunner, line: str) -> None:
    runner.says("squeue", line)
    runner.says("sacct", f"{HEADER}\n{accounting_line('32')}\n")
    unbound = replace(REF, job_id=None)
    look = asked(runner).observe([REF, unbound, replace(unbound, name="run-0", submitted_at=NOW - timedelta(hours=1))])
    by_id, by_name = runner.calls("sacct")
    assert by_id[-2:] == ("-j", "7")
    assert by_name[-8:] == ("--name", "run-0,run-1", "-u", "user1", "-S", "now-10800seconds", "-E", "now+1hour")
    assert "-a" not in by_name
    assert look.calls == 4


@pytest.mark.parametrize(
    ("stdout", "stderr", "status", "availability"),
    [
        (f"{HEADER}\n", "", 0, Availability.ANSWERED),
        (f"{HEADER}\n", "", 1, Availability.UNAVAILABLE),
        (
            f"{HEADER}\n",
            "sacct: error: Problem talking to the database: Connection refused",
            0,
            Availability.UNAVAILABLE,
        ),
        ("", "", 0, Availability.UNAVAILABLE),
        ("", "", None, Availability.UNAVAILABLE),
        ("", "sacct: error: Problem talking to the database: Connection refused", 1, Availability.UNAVAILABLE),
        ("", DISABLED, 1, Availability.DISABLED),
        (f"{HEADER}\n{accounting_line('7', DISABLED)}\n", "", 0, Availability.ANSWERED),
    ],
)
def test_what_counts_as_an_answer_of_sacct(
    runner: FakeRunner, stdout: str, stderr: str, status: int | None, availability: Availability
) -> None:
    runner.says("sacct", stdout, stderr, status)
    answer = asked(runner).accounting([REF])
    assert answer.availability is availability
    assert bool(answer.problems) is (availability is not Availability.ANSWERED)


def test_a_recorded_outage_of_the_database_is_no_observation(
    runner: FakeRunner, recorded: Recorded, version: str
) -> None:
    from tests.unit.slurm.conftest import DATA  # noqa: PLC0415 - the folder is the fixture's business

    text = (DATA / version / "outage_dbd.txt").read_text(encoding="utf-8")
    runner.says("sacct", "", text.split("--- stderr\n")[1].split("--- rc=")[0], 1)
    answer = asked(runner).accounting([REF])
    assert answer.availability is Availability.UNAVAILABLE
    assert "Connection refused" in answer.problems[0]


def test_without_accounting_even_the_columns_say_so(runner: FakeRunner) -> None:
    runner.says("helpformat", "", DISABLED, 1)
    runner.says("squeue", queue_line("7"))
    look = asked(runner).observe([REF])
    assert look.accounting.availability is Availability.DISABLED
    assert look.queue.availability is Availability.ANSWERED


def test_a_missing_sacct_is_unavailable(runner: FakeRunner) -> None:
    runner.says("helpformat", "", "No such file or directory: 'sacct'", None)
    assert asked(runner).accounting([REF]).availability is Availability.UNAVAILABLE
    assert not runner.calls("sacct")


def test_columns_are_asked_once_for_all_processes(runner: FakeRunner, tmp_path: Path) -> None:
    cache = tmp_path / "columns"
    runner.says("sacct", f"{HEADER}\n")
    for _ in range(2):
        query = asked(runner, column_cache=cache)
        query.accounting([REF])
        query.accounting([REF])
        os.utime(cache, (NOW.timestamp(), NOW.timestamp()))
    assert [argv for argv in runner.asked if "--helpformat" in argv] == [("sacct", "--helpformat")]


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"JobID State", b"x" * 10])
def test_a_broken_column_cache_is_asked_anew(runner: FakeRunner, tmp_path: Path, content: bytes) -> None:
    cache = tmp_path / "columns"
    cache.write_bytes(content)
    os.utime(cache, (NOW.timestamp(), NOW.timestamp()))
    runner.says("sacct", f"{HEADER}\n")
    assert asked(runner, column_cache=cache).accounting([REF]).availability is Availability.ANSWERED
    assert cache.read_text().split()[0] == "JobID"


def test_an_old_column_cache_is_asked_anew(runner: FakeRunner, tmp_path: Path) -> None:
    cache = tmp_path / "columns"
    cache.write_text(COLUMNS.replace("SLUID ", ""))
    os.utime(cache, (0, 0))
    runner.says("sacct", f"{HEADER}\n")
    asked(runner, column_cache=cache).accounting([REF])
    assert "SLUID" in cache.read_text()


def test_a_column_cache_that_cannot_be_written_costs_nothing_else(runner: FakeRunner, tmp_path: Path) -> None:
    runner.says("sacct", f"{HEADER}\n")
    answer = asked(runner, column_cache=tmp_path / "missing" / "columns").accounting([REF])
    assert answer.availability is Availability.ANSWERED


def test_an_upgrade_of_slurm_that_drops_a_column_is_noticed(runner: FakeRunner, tmp_path: Path) -> None:
    cache = tmp_path / "columns"
    cache.write_text(f"{COLUMNS} Reserved")
    os.utime(cache, (NOW.timestamp(), NOW.timestamp()))

    def sacct(argv: Sequence[str]) -> Finished:
        if any("Reserved" in argument for argument in argv):
            return _finished(argv, "", 'sacct: error: Invalid field requested: "Reserved"', 1)
        return _finished(argv, f"{HEADER}\n{accounting_line('7')}\n")

    runner.replies["sacct"] = sacct
    answer = asked(runner, column_cache=cache).accounting([REF])
    assert answer.availability is Availability.ANSWERED
    assert len(answer.rows) == 1
    assert "Reserved" not in cache.read_text()
