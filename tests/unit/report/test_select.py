"""Which attempts a report is about."""

from __future__ import annotations

import pytest

from outerloop_hpc.errors import UsageError
from outerloop_hpc.report.costs import Window
from outerloop_hpc.report.jobs import JobReport, job_reports
from outerloop_hpc.report.select import Selection, state_words, words

pytestmark = pytest.mark.unit


def job(**columns: str) -> JobReport:
    row = {
        "JobID": "7",
        "JobName": "n",
        "User": "u",
        "Account": "a",
        "Cluster": "c",
        "State": "TIMEOUT",
        "AllocNodes": "1",
    }
    (report,) = job_reports([{**row, "Submit": "50", "Start": "100", "End": "200", **columns}])
    return report


@pytest.mark.parametrize(
    ("selection", "kept"),
    [
        (Selection(), True),
        (Selection(users=frozenset({"u", "v"}), accounts=frozenset("a"), clusters=frozenset("c")), True),
        (Selection(users=frozenset("v")), False),
        (Selection(users=frozenset("u"), accounts=frozenset("b")), False),
        (Selection(clusters=frozenset("d")), False),
        (Selection(names=frozenset("m")), False),
        (Selection(states=frozenset({"TIMEOUT"})), True),
        (Selection(states=frozenset({"CANCELLED"})), False),
        (Selection(window=Window(150, 160)), True),
        (Selection(window=Window(200, None)), True),
        (Selection(window=Window(201, None)), False),
        (Selection(window=Window(None, 100)), False),
        (Selection(window=Window(None, 101)), True),
    ],
)
def test_selection(selection: Selection, kept: bool) -> None:
    assert selection.keeps(job()) is kept


def test_a_waiting_job_is_in_every_window_after_its_submission() -> None:
    waiting = job(Start="Unknown", End="Unknown", State="PENDING")
    assert Selection(window=Window(1000, 2000)).keeps(waiting)
    assert not Selection(window=Window(0, 50)).keeps(waiting)
    assert Selection(window=Window(0, 50)).keeps(job(Start="Unknown", Submit=""))


def test_who_cancelled_it_is_no_part_of_the_state() -> None:
    assert Selection(states=state_words("ca")).keeps(job(State="CANCELLED by 1777"))


def test_lists_and_states() -> None:
    assert words(" a,b ,,a") == {"a", "b"}
    assert state_words("cd,F,timeout") == {"COMPLETED", "FAILED", "TIMEOUT"}
    assert state_words("") == frozenset()
    with pytest.raises(UsageError, match="'DONE' is not a job state; known: BOOT_FAIL"):
        state_words("DONE")
