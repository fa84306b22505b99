"""The matrix of the decision page, read as data and compared with the code over every combination of evidence."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from itertools import product
from pathlib import Path
from typing import Any, get_args

import pytest

from outerloop_hpc.engine.basis import LASTING
from outerloop_hpc.engine.evidence import Evidence as Seen
from outerloop_hpc.engine.evidence import Files, Index, Look
from outerloop_hpc.engine.records import RecordOutcome
from outerloop_hpc.engine.rules import rule
from outerloop_hpc.slurm.port import AccountingRow, Answer, Availability, Observation, QueueRow
from outerloop_hpc.slurm.states import TABLE, Life, StateMeaning, classify
from tests.unit.engine.made import POLICY, T0, after, claim, interrupted, one_try, record, submission

pytestmark = pytest.mark.unit

PAGE = Path(__file__).parents[3] / "docs" / "decisions.md"
NOW = after(200_000)
SUB = submission()
ODD = "ODD_NEW_WORD"
WORDS = (*TABLE, ODD)
NO_ROW, NOT_OURS, UNAVAILABLE, NONE, DISABLED = "no row", "not ours", "unavailable", "none", "disabled"
OOM_STEP = "step OUT_OF_MEMORY"


Looks = Mapping[tuple[str, str], Look]


# --- the page -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Line:
    number: int
    files: str
    queue: str
    accounting: str
    lacked: str
    asked: str
    rule: str
    verdict: str
    outcome: str


NO_LINE = Line(0, "", "", "", "", "", "no row fits", "", "")


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def matrix() -> list[Line]:
    rows = [cells(line) for line in PAGE.read_text(encoding="utf-8").splitlines() if re.match(r"\| \d+ \|", line)]
    return [Line(int(number), *rest) for number, *rest in rows]


def classes() -> dict[str, list[str]]:
    text = PAGE.read_text(encoding="utf-8")
    (table,) = re.findall(r"^\| class \| state words \|\n\|[-|]+\|\n((?:\|.*\n)+)", text, re.MULTILINE)
    return {name: words.split() for name, words in map(cells, table.splitlines())}


def class_of(meaning: StateMeaning) -> str:
    if meaning.life is Life.UNKNOWN:
        return "unknown"
    if meaning.life is Life.ALIVE:
        return "requeued" if meaning.soft else "alive"
    return "soft" if meaning.soft else "firm"


def test_the_classes_of_the_page_hold_every_word_that_is_known_and_no_other() -> None:
    listed = {name: set(words) for name, words in classes().items() if name != "unknown"}
    expected: dict[str, set[str]] = {name: set() for name in listed}
    for word, meaning in TABLE.items():
        expected[class_of(meaning)].add(word)
    assert listed == expected


# --- what there can be ----------------------------------------------------------------------------------------------

FILES: dict[str, dict[str, Any]] = {
    "none": {},
    "claim": {"claim": claim()},
    "heartbeat": {"claim": claim()},
    "begun": {"claim": claim(), "begun": True},
    "interrupted": {"claim": claim(), "interrupted": interrupted()},
    "taken": {"claim": claim(abandoned=True)},
    "unreadable": {"fault": "e0000.record.json: not a readable record document"},
    **{outcome: {"record": record(outcome)} for outcome in get_args(RecordOutcome)},
}
QUEUE = (*WORDS, *(f"last {word}" for word, meaning in TABLE.items() if meaning.life is Life.ENDED))
QUEUE = (*QUEUE, NO_ROW, NOT_OURS, UNAVAILABLE)
ACCOUNTING = (
    *(f"{word}{more}" for word, more in product(WORDS, ("", " no End", f" {OOM_STEP}"))),
    *(NONE, NOT_OURS, UNAVAILABLE, DISABLED),
)
RUNAWAY_S = POLICY.grace_s + 60 * SUB.resources.minutes
#: Every window from both sides; ``None`` was never seen to lack it.
LACKED = (None, *(w + d for w in (POLICY.confirm_s, POLICY.soft_window_s, POLICY.grace_s, RUNAWAY_S) for d in (-1, 0)))
ASKED = ("yes", "no")


def queue_row(word: str, name: str = SUB.name) -> QueueRow:
    return QueueRow("7", None, name, "ann", word)


def accounting_row(word: str, *, end: bool = True, step: str = "", name: str = SUB.name) -> AccountingRow:
    at = int(T0.timestamp())
    ended = at + 60 if end else None
    return AccountingRow("7", None, step, name, "ann", "c", word, None, at, at + 1, ended, (0, 0))


def queue_answer(value: str) -> Answer[QueueRow]:
    if value == UNAVAILABLE:
        return Answer(Availability.UNAVAILABLE)
    if value == NOT_OURS:
        return Answer(Availability.ANSWERED, (queue_row("RUNNING", "somebody.else"),))
    return Answer(Availability.ANSWERED, (queue_row(value),) if value in WORDS else ())


def accounting_answer(value: str) -> Answer[AccountingRow]:
    if value in {UNAVAILABLE, DISABLED}:
        return Answer(Availability(value))
    if value == NONE:
        return Answer(Availability.ANSWERED)
    if value == NOT_OURS:
        return Answer(Availability.ANSWERED, (accounting_row("FAILED", name="somebody.else"),))
    word, _, more = value.partition(" ")
    steps = (accounting_row("OUT_OF_MEMORY", step="0"),) if more == OOM_STEP else ()
    return Answer(Availability.ANSWERED, (accounting_row(word, end=more != "no End"), *steps))


def looked(queue: str, accounting: str) -> Look:
    return Index.of(Observation(queue_answer(queue), accounting_answer(accounting))).look(SUB, 0)


# --- what a cell fits -----------------------------------------------------------------------------------------------


def fits_files(pattern: str, value: str) -> bool:
    return pattern == value


def fits_queue(pattern: str, value: str) -> bool:
    if pattern == "gone":
        return value in {NO_ROW, NOT_OURS} or value.startswith("last ")
    return pattern == value or (value in WORDS and pattern == class_of(classify(value)))


def fits_accounting(pattern: str, value: str) -> bool:
    if value in {NONE, NOT_OURS, UNAVAILABLE, DISABLED}:
        return pattern == value
    word, _, more = value.partition(" ")
    if pattern == OOM_STEP:
        return more == OOM_STEP
    known, _, ending = pattern.partition(" ")
    return known in {word, class_of(classify(word))} and ending in {"", more}


def fits_lacked(pattern: str, value: float | None) -> bool:
    known = {"confirm_s": POLICY.confirm_s, "soft_window_s": POLICY.soft_window_s, "grace_s": POLICY.grace_s}
    limit = sum({**known, "walltime": 60.0 * SUB.resources.minutes}[word] for word in pattern[2:].split(" + "))
    assert pattern.startswith("< ")
    return value is None or value < limit


def masks(column: str, values: Iterable[Any], fits: Callable[[str, Any], bool]) -> dict[Any, int]:
    """For each value the rows that it fits, as bits: the first row that fits everything is then the lowest bit."""
    found = {}
    for value in values:
        patterns = [getattr(line, column).split(", ") for line in matrix()]
        fitting = [cell == ["any"] or any(fits(one, value) for one in cell) for cell in patterns]
        found[value] = sum(1 << place for place, fit in enumerate(fitting) if fit)
    return found


def words_are_known(column: str, known: Iterable[str]) -> list[str]:
    listed = {one for line in matrix() for one in getattr(line, column).split(", ")}
    return sorted(listed - set(known) - {"any"})


def test_no_cell_of_the_matrix_holds_a_word_that_nothing_can_be() -> None:
    names = set(classes())
    assert words_are_known("files", FILES) == []
    assert words_are_known("queue", {*QUEUE, *names, "gone"}) == []
    assert words_are_known("accounting", {*ACCOUNTING, *names, OOM_STEP, "firm no End"}) == []
    assert words_are_known("asked", ASKED) == []
    assert [line.number for line in matrix()] == list(range(1, len(matrix()) + 1))


# --- the comparison -------------------------------------------------------------------------------------------------

#: Tries and submissions are made once: there are a million combinations of them.
_TRIES = {
    (lacked, queue): one_try(
        absent_since=None if lacked is None else NOW - timedelta(seconds=lacked),
        absent_host="" if lacked is None else "tick1",
        absent_word=queue.removeprefix("last ") if queue.startswith("last ") else "",
    )
    for lacked, queue in product(LACKED, QUEUE)
}
_SUBMISSIONS = {word: submission(cancel_asked=word == "yes") for word in ASKED}


def differences(files: str, columns: Mapping[str, Mapping[Any, int]], looks: Looks, first: set[int]) -> list[str]:
    lines, wrong, given = matrix(), [], Files(**FILES[files])
    for queue, accounting in product(QUEUE, ACCOUNTING):
        seen = Seen(given, looks[queue, accounting])
        so_far = columns["files"][files] & columns["queue"][queue] & columns["accounting"][accounting]
        for lacked, asked in product(LACKED, ASKED):
            fitting = so_far & columns["lacked"][lacked] & columns["asked"][asked]
            line = lines[(fitting & -fitting).bit_length() - 1] if fitting else NO_LINE
            first.add(line.number)
            current, sub = _TRIES[lacked, queue], _SUBMISSIONS[asked]
            found = rule(seen, current, sub, now=NOW, host="tick1", policy=POLICY)
            assert found.needs or found.rule in LASTING, f"{found.rule} does not say what would change it"
            if (found.rule, found.verdict, found.outcome or "") != (line.rule, line.verdict, line.outcome):
                about = " | ".join(map(str, (files, queue, accounting, lacked, asked)))
                wrong.append(f"{about}: row {line.number} says {line.rule}, the code {found}")
    return wrong


def test_the_matrix_says_of_every_combination_what_the_code_says(
    tried: Callable[[str, int], None],
) -> None:
    """One test: as parameters, a million combinations would cost hours and say no more."""
    first: set[int] = set()
    columns = {
        "files": masks("files", FILES, fits_files),
        "queue": masks("queue", QUEUE, fits_queue),
        "accounting": masks("accounting", ACCOUNTING, fits_accounting),
        "lacked": masks("lacked", LACKED, fits_lacked),
        "asked": masks("asked", ASKED, fits_files),
    }
    looks = {pair: looked(*pair) for pair in product(QUEUE, ACCOUNTING)}
    wrong = [one for files in FILES for one in differences(files, columns, looks, first)]
    assert wrong[:20] == []
    assert {line.number for line in matrix()} - first == set(), "these rows are never the first that fits"
    # A heartbeat is no evidence: the page says so, and it is the same input as a claim.
    combinations = (len(FILES) - 1) * len(QUEUE) * len(ACCOUNTING) * len(LACKED) * len(ASKED)
    assert combinations > 800_000
    tried("combinations of evidence", combinations)
