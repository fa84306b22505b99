from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outerloop_hpc.slurm.jobid import MAX_TASKS, JobId, base_of, parse_job_id

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("25", JobId("25")),
        ("25.batch", JobId("25", step="batch")),
        ("19.0", JobId("19", step="0")),
        ("13_3", JobId("13", frozenset({3}))),
        ("13_3.extern", JobId("13", frozenset({3}), "extern")),
        ("13_[6-30:3%2]", JobId("13", frozenset({6, 9, 12, 15, 18, 21, 24, 27, 30}))),
        ("14_[1,3-4,7]", JobId("14", frozenset({1, 3, 4, 7}))),
        ("14_[0-5%0]", JobId("14", frozenset(range(6)))),
        ("16+0", JobId("16+0")),
        ("16+1.batch", JobId("16+1", step="batch")),
        ("16.0+1", JobId("16", step="0+1")),
    ],
)
def test_the_grammar(text: str, expected: JobId) -> None:
    assert parse_job_id(text) == expected


def test_a_component_of_a_heterogeneous_job_is_not_the_plain_job() -> None:
    parsed = parse_job_id("16+0")
    assert isinstance(parsed, JobId)
    assert parsed.base != "16"


@pytest.mark.parametrize(
    "text",
    [
        "14_[1,3-4,7,9,12-13,18,21-22,25,29,31,34,38,41,45,49,52,58,61,66...]",
        "14_[1,3-4,7,9,12-13,18,21-22,25",
        "14_[",
    ],
)
def test_a_cut_expression_is_a_problem_that_still_names_its_job(text: str) -> None:
    parsed = parse_job_id(text)
    assert isinstance(parsed, str)
    assert "cut off" in parsed
    assert base_of(text) == "14"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "abc",
        "12 3",
        "-1",
        "1_",
        "1_[]",
        "1_[3-1]",
        "1_[1-3:0]",
        "1_[a]",
        "1_[0-4294967294]",
        "1_2_3",
        "1.",
        "٣",
        "1\n2",
    ],
)
def test_what_is_no_id_is_a_problem(text: str) -> None:
    assert isinstance(parse_job_id(text), str)


def test_expansion_is_bounded_over_all_parts_together() -> None:
    assert isinstance(parse_job_id(f"1_[0-{MAX_TASKS - 1}]"), JobId)
    assert "more than" in str(parse_job_id(f"1_[0-{MAX_TASKS - 1},{MAX_TASKS}]"))


def test_only_a_single_element_has_a_task() -> None:
    assert JobId("1", frozenset({4})).task == 4
    assert JobId("1", frozenset({4, 5})).task is None
    assert JobId("1").task is None


@given(st.sets(st.integers(0, 3000), min_size=1, max_size=40), st.integers(1, 10**9))
def test_what_slurm_prints_for_a_set_of_elements_is_read_back(tasks: set[int], base: int) -> None:
    parsed = parse_job_id(f"{base}_[{','.join(map(str, sorted(tasks)))}%7]")
    assert parsed == JobId(str(base), frozenset(tasks))


@given(st.text(alphabet="0123456789_[]-:,%+.abc\n ", max_size=40) | st.text())
def test_parsing_is_total(text: str) -> None:
    assert isinstance(parse_job_id(text), JobId | str)
    base_of(text)
