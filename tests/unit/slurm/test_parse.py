from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outerloop_hpc.slurm.parse import (
    QUEUE_LETTERS,
    SEPARATOR,
    Problem,
    parse_accounting,
    parse_columns,
    parse_queue,
)
from outerloop_hpc.slurm.port import AccountingRow, QueueRow
from outerloop_hpc.slurm.states import Life, classify

if TYPE_CHECKING:
    from tests.unit.slurm.conftest import Recorded

pytestmark = pytest.mark.unit

ACCOUNTING_CAPTURES = (
    *("sacct_final_X", "sacct_final_XD", "sacct_final_steps", "sacct_t1_X", "sacct_t1_steps", "sacct_t2_X"),
    *("sacct_t2_XD", "sacct_t4_X", "sacct_requ_dup", "s2_preempt", "s2_sig_sacct", "s2_deadline"),
    "sacct_final_allfields_mem",
)
QUEUE_CAPTURES = ("squeue_t1", "squeue_t1_array", "squeue_t2", "squeue_t4", "s2_preempt", "s2_deadline")


def queue_line(**values: str) -> str:
    known = {"i": "1", "V": "1795956079", "T": "RUNNING", "u": "user1", "P": "main", "N": "n1", "r": "None", "j": "job"}
    return SEPARATOR.join((known | values)[letter] for letter in QUEUE_LETTERS)


def as_our_format(command: str, stdout: str) -> str:
    """Put a recorded squeue table into the columns that we ask for."""
    letters = [part[-1] for part in command.rpartition("-o ")[2].split("|")]
    lines = [line for line in stdout.splitlines() if line and not line.startswith("JOBID")]
    return "\n".join(
        queue_line(**{k: v for k, v in zip(letters, line.split("|"), strict=True) if k in QUEUE_LETTERS})
        for line in lines
    )


@pytest.mark.parametrize("capture", QUEUE_CAPTURES)
def test_every_recorded_queue_line_becomes_a_row_with_a_known_state(
    recorded: Recorded, version: str, capture: str
) -> None:
    commands = [(c, out) for c, out in recorded(version, capture) if c.startswith("squeue")]
    assert commands
    for command, stdout in commands:
        text = as_our_format(command, stdout)
        rows, problems = parse_queue(text)
        assert len(rows) + len(problems) == len(text.splitlines())
        assert all("cut off" in problem.text and problem.job_id == "14" for problem in problems)
        assert {classify(row.state).life for row in rows} <= {Life.ALIVE, Life.ENDED}


def test_the_queue_of_a_real_cluster_in_full(recorded: Recorded, version: str) -> None:
    ((command, stdout),) = recorded(version, "squeue_t1")
    rows, problems = parse_queue(as_our_format(command, stdout))
    by_id = {(row.job_id, row.tasks): row for row in rows}
    assert [problem.job_id for problem in problems] == ["14"]
    assert by_id["13", frozenset(range(6, 31, 3))].reason == "JobArrayTaskLimit"
    assert by_id["15", frozenset({4})].state == "COMPLETED"
    assert by_id["16+0", None].state == "COMPLETED"
    assert ("16", None) not in by_id
    assert by_id["8", None].state == "FAILED"


def test_with_the_whole_expression_printed_nothing_is_cut(recorded: Recorded, version: str) -> None:
    ((_, whole),) = recorded(version, "squeue_t3_bitstr0")
    ((_, cut),) = recorded(version, "squeue_t3_bitstr")
    rows, problems = parse_queue(queue_line(i=whole.strip(), T="PENDING"))
    assert not problems
    assert rows[0].tasks is not None
    assert {1, 66, 123} <= rows[0].tasks
    assert parse_queue(queue_line(i=cut.strip()))[0] == ()


@pytest.mark.parametrize("name", ["we|ird `nm`", "a\nb", "ünï", f"x{SEPARATOR}y", '\'; rm -rf "$HOME"', "a\n\nb"])
def test_a_hostile_name_hides_no_other_job(name: str) -> None:
    text = "\n".join([queue_line(i="1", j=name), queue_line(i="2", T="PENDING")])
    rows, problems = parse_queue(text)
    assert [row.job_id for row in rows] == ["1", "2"]
    assert rows[0].name.split("\n")[0] == name.split("\n", 1)[0]
    assert not problems


def test_cluster_headings_and_blank_lines_are_no_rows() -> None:
    text = f"CLUSTER: alpha\n{queue_line(i='7')}\n\nCLUSTER: beta\n"
    rows, problems = parse_queue(text)
    assert [row.job_id for row in rows] == ["7"]
    assert not problems


def test_a_banner_is_talk_and_a_half_line_is_not() -> None:
    rows, problems = parse_queue(f"Welcome to job 1 of this site\n{queue_line()[:-20]}\n")
    assert not rows
    assert [(problem.talk, problem.job_id) for problem in problems] == [(True, None), (False, "1")]


@pytest.mark.parametrize(("printed", "expected"), [("1795956079", 1795956079), ("N/A", None), ("Unknown", None)])
def test_submit_of_the_queue_is_epoch_seconds_or_nothing(printed: str, expected: int | None) -> None:
    assert parse_queue(queue_line(V=printed))[0][0].submit == expected


@pytest.mark.parametrize("capture", ACCOUNTING_CAPTURES)
def test_every_recorded_accounting_line_becomes_rows(recorded: Recorded, version: str, capture: str) -> None:
    tables = [(c, out) for c, out in recorded(version, capture) if c.startswith("sacct") and "-P" in c]
    assert tables
    for command, stdout in tables:
        delimiter = "|#" if "|#" in command else "|"
        rows, problems = parse_accounting(stdout, delimiter)
        assert rows is not None
        weird = sum("we|ird" in line for line in stdout.splitlines())  # the name shifts a plain -P line
        lines = len(stdout.splitlines()) - 1
        assert len({id(row.columns) for row in rows}) + sum(not p.talk for p in problems) == lines
        known = [row for row in rows if classify(row.state).life is not Life.UNKNOWN]
        assert len(rows) - len(known) == weird


def test_rows_are_keyed_by_job_id_since_the_raw_id_of_the_last_element_is_the_array(
    recorded: Recorded, version: str
) -> None:
    ((_, stdout),) = recorded(version, "sacct_final_X")
    rows, _ = parse_accounting(stdout, "|")
    assert rows is not None
    arrays = [row for row in rows if row.job_id == "15"]
    assert {row.task: row.state for row in arrays} == {1: "COMPLETED", 2: "COMPLETED", 3: "FAILED", 4: "COMPLETED"}
    assert arrays[-1].columns["JobIDRaw"] == "15"
    assert arrays[-1].task == 4
    assert {row.job_id for row in rows if row.columns["JobName"] == "het"} == {"16+0", "16+1"}


def test_what_ended_how(recorded: Recorded, version: str) -> None:
    ((_, stdout),) = recorded(version, "sacct_final_X")
    rows, _ = parse_accounting(stdout, "|")
    assert rows is not None
    by_name = {row.name: row for row in rows}
    assert by_name["canc_user"].cancelled_by == 1777
    assert by_name["canc_root"].cancelled_by == 0
    assert by_name["kill9"].exit_code == (0, 9)
    assert by_name["fail200"].exit_code == {"22.05.8": (72, 0), "26.05.5": (200, 0)}[version]
    assert by_name["tout"].state == "TIMEOUT"


def test_a_collapsed_line_stands_for_each_of_its_elements(recorded: Recorded, version: str) -> None:
    ((_, stdout),) = recorded(version, "sacct_t3_step")
    rows, problems = parse_accounting("JobID|JobIDRaw|State\n" + stdout, "|")
    assert rows is not None
    assert not problems
    assert [row.task for row in rows] == [0, 3, *range(6, 31, 3)]
    assert all(row.job_id == "13" for row in rows)


def test_a_cut_line_is_a_problem_of_its_job(recorded: Recorded, version: str) -> None:
    ((_, stdout),) = recorded(version, "sacct_t3_bitstr64")
    rows, problems = parse_accounting("JobID|State\n" + stdout, "|")
    assert rows == ()
    assert [problem.job_id for problem in problems] == ["14"]


def test_epoch_times_and_words_for_no_time(recorded: Recorded, version: str) -> None:
    ((_, stdout),) = recorded(version, "sacct_epoch")
    rows, problems = parse_accounting("JobID|Submit|Start|End|State\n" + stdout.replace("\n", "|COMPLETED\n"), "|")
    assert rows is not None
    assert not problems
    assert (rows[0].start, rows[0].end) in {(None, 1795956088), (None, 1795956085)}


def test_times_that_are_not_epoch_seconds_are_a_problem_and_no_time() -> None:
    rows, problems = parse_accounting("JobID|State|Submit\n4|COMPLETED|2026-11-29T12:41:17\n5|FAILED|Unknown\n", "|")
    assert rows is not None
    assert [row.submit for row in rows] == [None, None]
    assert len(problems) == 1
    assert "SLURM_TIME_FORMAT" in problems[0].text


def test_our_delimiter_keeps_a_name_with_pipes_whole(recorded: Recorded, version: str) -> None:
    ((_, stdout),) = recorded(version, "sacct_weird_delim")
    rows, _ = parse_accounting(stdout.replace("\nc --wrap", " c --wrap").replace("\necho", " echo"))
    assert rows is not None
    assert [(row.name, row.state, row.step) for row in rows] == [
        ("we|ird `nm`", "COMPLETED", ""),
        ("batch", "COMPLETED", "batch"),
    ]


def test_a_newline_inside_a_row_costs_that_row_and_says_so(recorded: Recorded, version: str) -> None:
    ((_, stdout),) = recorded(version, "sacct_weird_delim")
    rows, problems = parse_accounting(stdout)
    assert rows is not None
    assert [row.step for row in rows] == ["batch"]
    assert problems[0].job_id == rows[0].job_id


@pytest.mark.parametrize("text", ["", "\n", "sacct: oops\n", "JobName|Account\nx|y\n"])
def test_without_a_header_there_was_no_answer(text: str) -> None:
    assert parse_accounting(text, "|")[0] is None


def test_a_header_alone_is_an_answer_without_rows(recorded: Recorded, version: str) -> None:
    command, stdout = recorded(version, "errors")[0]
    assert "999999" in command
    assert parse_accounting(stdout, "|") == ((), ())


def test_lines_before_the_header_are_talk() -> None:
    rows, problems = parse_accounting("Hello from the site\nJobID|State\n4|FAILED\n", "|")
    assert rows is not None
    assert [row.job_id for row in rows] == ["4"]
    assert [problem.talk for problem in problems] == [True]


def test_a_newline_in_the_last_column_stays_in_it() -> None:
    text = (
        f"JobID{SEPARATOR}State{SEPARATOR}JobName\n4.0{SEPARATOR}FAILED{SEPARATOR}a\nb\n5{SEPARATOR}RUNNING{SEPARATOR}c"
    )
    rows, problems = parse_accounting(text)
    assert rows is not None
    assert [row.name for row in rows] == ["a\nb", "c"]
    assert not problems


def test_the_columns_that_exist_are_read_from_helpformat(recorded: Recorded, version: str) -> None:
    ((_, stdout),) = [(c, out) for c, out in recorded(version, "errors") if "helpformat" in c]
    columns = parse_columns(stdout)
    assert {"JobID", "TRESUsageInTot", "SubmitLine"} <= columns
    assert ("SLUID" in columns) == (version == "26.05.5")
    assert ("Reserved" in columns) == (version == "22.05.8")


@pytest.mark.parametrize("text", ["", "sacct: error: no", "JobID State"])
def test_what_is_no_list_of_columns_gives_none(text: str) -> None:
    assert parse_columns(text) == frozenset()


anything = st.text(alphabet=f"01_[]-,%+.:aZ|{SEPARATOR}\n ", max_size=200) | st.text(max_size=100)


@given(anything)
def test_parsing_a_queue_is_total(text: str) -> None:
    rows, problems = parse_queue(text)
    assert all(isinstance(row, QueueRow) for row in rows)
    assert all(isinstance(problem, Problem) for problem in problems)


@given(anything)
def test_parsing_accounting_is_total(text: str) -> None:
    rows, _ = parse_accounting(f"JobID{SEPARATOR}State{SEPARATOR}Submit{SEPARATOR}ExitCode\n{text}")
    assert rows is not None
    assert all(isinstance(row, AccountingRow) for row in rows)
    parse_accounting(text)


@given(st.lists(st.tuples(st.integers(1, 10**6), st.text(alphabet="ab|\\'\"$`", max_size=10)), max_size=20))
def test_no_line_is_lost(jobs: list[tuple[int, str]]) -> None:
    rows, problems = parse_queue("\n".join(queue_line(i=str(number), j=name) for number, name in jobs))
    assert [(row.job_id, row.name) for row in rows] == [(str(number), name.strip()) for number, name in jobs]
    assert not problems
