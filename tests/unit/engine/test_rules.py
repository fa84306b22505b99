"""The decision table, over every state word, every source and every file that a job may leave."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import product
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outerloop_hpc.engine.evidence import Evidence
from outerloop_hpc.engine.records import RecordOutcome
from outerloop_hpc.engine.rules import Policy, Ruling, rule
from outerloop_hpc.slurm.states import TABLE, Life, classify
from tests.unit.engine.made import (
    ABSENT,
    DOWN,
    OFF,
    POLICY,
    T0,
    after,
    claim,
    evidence,
    interrupted,
    look,
    one_try,
    record,
    submission,
)

pytestmark = pytest.mark.unit

WORDS = (*TABLE, "ODD_NEW_WORD", "?", "")
ALIVE = [word for word in WORDS if classify(word).life is Life.ALIVE]
FIRM = [word for word in WORDS if classify(word).final]
SOFT = [word for word in WORDS if classify(word).life is Life.ENDED and classify(word).soft]
UNKNOWN = [word for word in WORDS if classify(word).life is Life.UNKNOWN]
RECORDS: tuple[RecordOutcome, ...] = get_args(RecordOutcome)

#: How long the queue has lacked the job: not at all, inside each window, past the firm one, the soft one, all of them.
AGES = (None, 1.0, POLICY.confirm_s + 1, POLICY.soft_window_s + 1, 100_000.0)
FILES: dict[str, dict[str, Any]] = {
    "nothing": {},
    "claim": {"claim": claim()},
    "interrupted": {"claim": claim(), "interrupted": interrupted()},
    "abandoned": {"claim": claim(abandoned=True)},
    "fault": {"fault": "record.json: not a readable record document"},
    **{f"record {outcome}": {"record": record(outcome)} for outcome in RECORDS},
}
NOW = after(200_000)


def ruled(
    seen: Evidence,
    *,
    absent_s: float | None = None,
    by: str = "tick1",
    now: datetime = NOW,
    policy: Policy = POLICY,
    word: str = "",
    silent: datetime | None = None,
    **more: Any,
) -> Ruling:
    since = None if absent_s is None else now - timedelta(seconds=absent_s)
    current = one_try(absent_since=since, absent_host="" if since is None else by, absent_word=word)
    return rule(seen, current, submission(**more), now=now, host="tick1", policy=policy, silent=silent)


QUEUE = (ABSENT, DOWN, *WORDS)
ACCOUNTING = ((ABSENT, True), (DOWN, True), (OFF, True), *product(WORDS, (True, False)))
SIGHTINGS = ((None, ""), *product(AGES[1:], ("tick1", "tick2")))


def may_say_ended(queue: str, accounting: str) -> bool:
    """Whether queue and accounting together may say that a job ended."""
    if queue == DOWN or (queue != ABSENT and classify(queue).life is not Life.ENDED):
        return False
    if accounting in {ABSENT, DOWN}:
        return False
    meaning = classify(accounting)
    return accounting == OFF or meaning.life is Life.ENDED or meaning.soft


def broken_promise(queue: str, accounting: str, age: float | None, by: str, found: Ruling) -> str:
    """Say which promise about a try without a final word of its files was broken; empty for none."""
    skew = POLICY.skew_s if by == "tick2" else 0
    firm = accounting in FIRM or (accounting == OFF and queue != ABSENT)
    window = POLICY.confirm_s if firm else POLICY.soft_window_s
    broken = {
        "ended without a source that may say so": found.verdict == "ended" and not may_say_ended(queue, accounting),
        "ended before its window": found.verdict == "ended" and (age is None or age < window + skew),
        "asked although something is alive or silent": found.verdict == "ask"
        and (queue in {DOWN, *ALIVE, *UNKNOWN} or (accounting != ABSENT and accounting not in ALIVE)),
        "asked too early": found.verdict == "ask" and age != AGES[-1],
        "an outcome without an ending": (found.outcome is not None) != (found.verdict == "ended"),
        "done without a record": found.outcome == "done",
        "nothing said about what is needed": not found.needs and found.verdict in {"wait", "ask"},
        "no reason": not found.reason,
    }
    return ", ".join(text for text, happened in broken.items() if happened)


@pytest.mark.parametrize("files", ["nothing", "interrupted"])
def test_without_a_final_word_of_its_files_the_whole_table_keeps_its_promises(files: str) -> None:
    """One test for all combinations: as parameters they would cost minutes and say no more."""
    seen, problems = 0, []
    for queue, (accounting, end), (age, by) in product(QUEUE, ACCOUNTING, SIGHTINGS):
        found = ruled(evidence(look(queue, accounting, end=end), **FILES[files]), absent_s=age, by=by)
        problem = broken_promise(queue, accounting, age, by, found)
        seen += 1
        if problem:
            problems.append(f"queue {queue}, accounting {accounting} (end {end}), absent {age} by {by}: {problem}")
    assert problems == []
    assert seen > 20_000


@pytest.mark.parametrize("files", [name for name in FILES if name not in {"nothing", "claim", "interrupted"}])
def test_a_final_word_of_its_files_is_the_same_whatever_slurm_says(files: str) -> None:
    rulings = {
        ruled(evidence(look(queue, accounting, end=end), **FILES[files]), absent_s=age, by="tick1")
        for queue, (accounting, end), age in product(QUEUE, ACCOUNTING, (None, AGES[-1]))
    }
    (only,) = rulings
    assert only.verdict == ("wait" if files == "fault" else "ended")
    assert only.rule == {"fault": "record.unreadable", "abandoned": "claim.abandoned"}.get(files, "record.final")


def test_the_words_fall_into_four_kinds() -> None:
    assert len(ALIVE) + len(FIRM) + len(SOFT) + len(UNKNOWN) == len(WORDS)


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        ("completed", "done"),
        ("failed", "done"),
        ("refused", "done"),
        ("timed_out", "timed_out"),
        ("infrastructure", "lost"),
        ("out_of_memory", "out_of_memory"),
    ],
)
@pytest.mark.parametrize("queue", [ABSENT, DOWN, "RUNNING", "FAILED", "ODD_NEW_WORD"])
def test_a_record_beats_every_word_of_the_scheduler(outcome: RecordOutcome, expected: str, queue: str) -> None:
    for accounting in (ABSENT, DOWN, OFF, *WORDS):
        found = ruled(evidence(look(queue, accounting), record=record(outcome)))
        assert (found.rule, found.verdict, found.outcome) == ("record.final", "ended", expected)


def test_a_claim_taken_by_a_reconciler_ends_the_try_without_a_word_of_slurm() -> None:
    found = ruled(evidence(look(DOWN, DOWN), claim=claim(abandoned=True)))
    assert (found.verdict, found.outcome) == ("ended", "abandoned")


@pytest.mark.parametrize("word", ALIVE)
def test_the_queue_saying_alive_beats_accounting(word: str) -> None:
    for accounting in (ABSENT, DOWN, OFF, *WORDS):
        found = ruled(evidence(look(word, accounting)), absent_s=100_000)
        assert (found.rule, found.verdict, found.absent) == ("queue.alive", "alive", False)


@pytest.mark.parametrize("word", UNKNOWN)
def test_a_word_that_is_not_known_waits_in_either_source(word: str) -> None:
    for accounting in (ABSENT, DOWN, OFF, *WORDS):
        assert ruled(evidence(look(word, accounting)), absent_s=100_000).rule == "queue.unknown-word"
    assert ruled(evidence(look(ABSENT, word)), absent_s=100_000).rule == "accounting.unknown-word"


@pytest.mark.parametrize("word", FIRM)
@pytest.mark.parametrize("queue", [ABSENT, "COMPLETED"])
def test_a_firm_ending_needs_the_confirmation(word: str, queue: str) -> None:
    seen = evidence(look(queue, word))
    for age in (None, 0.0, POLICY.confirm_s - 1):
        found = ruled(seen, absent_s=age)
        assert (found.rule, found.verdict, found.absent, found.word) == ("accounting.settling", "wait", True, word)
    assert ruled(seen, absent_s=POLICY.confirm_s).verdict == "ended"


@pytest.mark.parametrize("word", [*SOFT, "REQUEUED", "REQUEUED_CRON"])
def test_a_soft_ending_needs_the_long_window(word: str) -> None:
    seen = evidence(look(ABSENT, word))
    assert ruled(seen, absent_s=POLICY.confirm_s + 1).verdict == "wait"
    assert ruled(seen, absent_s=POLICY.soft_window_s - 1).verdict == "wait"
    found = ruled(seen, absent_s=POLICY.soft_window_s)
    assert (found.verdict, found.outcome) == ("ended", "lost")


@pytest.mark.parametrize("word", FIRM)
def test_an_ending_without_a_time_waits(word: str) -> None:
    found = ruled(evidence(look(ABSENT, word, end=False)), absent_s=100_000)
    assert (found.rule, found.verdict) == ("accounting.no-end", "wait")


@pytest.mark.parametrize(
    ("word", "outcome"),
    [
        ("COMPLETED", "lost"),
        ("FAILED", "lost"),
        ("TIMEOUT", "timed_out"),
        ("DEADLINE", "timed_out"),
        ("OUT_OF_MEMORY", "out_of_memory"),
        ("CANCELLED", "cancelled"),
        ("NODE_FAIL", "lost"),
        ("PREEMPTED", "lost"),
        ("BOOT_FAIL", "lost"),
        ("REVOKED", "lost"),
        ("REQUEUED", "lost"),
    ],
)
@pytest.mark.parametrize("accounted", [True, False])
def test_each_ending_has_its_outcome(word: str, outcome: str, accounted: bool) -> None:
    seen = look(ABSENT, word) if accounted else look(word, OFF)
    if not accounted and word == "REQUEUED":
        assert ruled(evidence(seen), absent_s=1000).verdict == "alive"
        return
    found = ruled(evidence(seen), absent_s=1000)
    assert (found.verdict, found.outcome, found.word) == ("ended", outcome, word)


@pytest.mark.parametrize(("asked", "outcome"), [(True, "withdrawn"), (False, "cancelled")])
@pytest.mark.parametrize("seen", [look(ABSENT, "CANCELLED"), look("CANCELLED", OFF)], ids=["sacct", "squeue"])
def test_a_cancellation_is_ours_only_when_we_asked_for_it(asked: bool, outcome: str, seen: Any) -> None:
    assert ruled(evidence(seen), absent_s=1000, cancel_asked=asked).outcome == outcome


@pytest.mark.parametrize("word", ["FAILED", "TIMEOUT", "OUT_OF_MEMORY"])
def test_what_ended_by_itself_although_we_asked_keeps_its_own_word(word: str) -> None:
    found = ruled(evidence(look(ABSENT, word)), absent_s=1000, cancel_asked=True)
    assert found.outcome not in {"withdrawn", "cancelled"}


def test_who_cancelled_is_in_the_reason() -> None:
    assert "by uid 0" in ruled(evidence(look(ABSENT, "CANCELLED", uid=0)), absent_s=1000).reason


@pytest.mark.parametrize("word", ["COMPLETED", "FAILED"])
def test_memory_that_ran_out_in_a_step_counts_for_the_job(word: str) -> None:
    seen = evidence(look(ABSENT, word, steps=("COMPLETED", "OUT_OF_MEMORY")))
    found = ruled(seen, absent_s=1000)
    assert (found.outcome, found.word) == ("out_of_memory", "OUT_OF_MEMORY")


def test_what_the_job_left_is_in_the_reason() -> None:
    assert "after it had started" in ruled(evidence(look(ABSENT, "FAILED"), claim=claim()), absent_s=1000).reason
    left = {"claim": claim(), "interrupted": interrupted("SIGTERM")}
    assert "after SIGTERM" in ruled(evidence(look(ABSENT, "FAILED"), **left), absent_s=1000).reason


@pytest.mark.parametrize(
    ("word", "window"), [("FAILED", POLICY.confirm_s), ("NODE_FAIL", POLICY.soft_window_s)], ids=["firm", "soft"]
)
def test_a_sighting_by_another_host_costs_the_skew(word: str, window: float) -> None:
    seen = evidence(look(ABSENT, word))
    assert ruled(seen, absent_s=window).verdict == "ended"
    assert ruled(seen, absent_s=window + POLICY.skew_s - 1, by="tick2").verdict == "wait"
    assert ruled(seen, absent_s=window + POLICY.skew_s, by="tick2").verdict == "ended"


@pytest.mark.parametrize("accounting", [ABSENT, DOWN, OFF, *WORDS])
def test_a_queue_that_does_not_answer_decides_nothing(accounting: str) -> None:
    found = ruled(evidence(look(DOWN, accounting)), absent_s=100_000)
    assert (found.rule, found.verdict, found.absent) == ("queue.unavailable", "wait", None)


@pytest.mark.parametrize("queue", [ABSENT, *FIRM, *SOFT])
def test_accounting_that_does_not_answer_decides_nothing(queue: str) -> None:
    found = ruled(evidence(look(queue, DOWN)), absent_s=100_000)
    assert (found.rule, found.verdict, found.absent) == ("accounting.unavailable", "wait", True)


@pytest.mark.parametrize("age", [None, 0.0, POLICY.grace_s - 1])
def test_a_job_that_nobody_knows_is_left_alone_during_the_grace(age: float | None) -> None:
    found = ruled(evidence(look()), absent_s=age)
    assert (found.rule, found.verdict, found.absent) == ("nothing.yet", "wait", True)


def test_a_job_that_nobody_knows_for_long_is_a_question_and_never_an_ending() -> None:
    found = ruled(evidence(look()), absent_s=POLICY.grace_s)
    assert (found.rule, found.verdict, found.outcome) == ("nothing.anywhere", "ask", None)


@pytest.mark.parametrize(
    ("seen", "window"),
    [
        (look(ABSENT, "COMPLETED"), POLICY.confirm_s),
        (look(ABSENT, "NODE_FAIL"), POLICY.soft_window_s),
        (look(), POLICY.grace_s),
        (look(ABSENT, "RUNNING"), POLICY.grace_s + 60.0 * submission().resources.minutes),
    ],
    ids=["firm", "soft", "nowhere", "runaway"],
)
def test_what_accounting_says_just_after_a_silence_is_no_longer_absence(seen: Any, window: float) -> None:
    """Back after an outage it answers at once, and for some seconds without the jobs that ended meanwhile."""
    long = 3 * window + 100_000
    assert ruled(evidence(seen), absent_s=long).verdict in {"ended", "ask"}
    assert ruled(evidence(seen), absent_s=long, silent=NOW - timedelta(seconds=window / 2)).verdict == "wait"
    assert ruled(evidence(seen), absent_s=long, silent=NOW - timedelta(seconds=window)).verdict in {"ended", "ask"}


def test_a_fresh_job_is_not_asked_about_however_old_the_sighting_claims_to_be() -> None:
    found = ruled(evidence(look()), absent_s=100_000, now=after(POLICY.grace_s - 1))
    assert found.verdict == "wait"


@pytest.mark.parametrize("word", [word for word in ALIVE if not classify(word).soft])
def test_accounting_that_never_ends_a_job_is_a_question_after_its_whole_walltime(word: str) -> None:
    seen, limit = evidence(look(ABSENT, word)), POLICY.grace_s + 600
    assert ruled(seen, absent_s=limit - 1).rule == "accounting.stale"
    assert ruled(seen, absent_s=limit).rule == "accounting.runaway"
    assert ruled(seen, absent_s=limit).verdict == "ask"


def test_without_accounting_a_job_that_left_the_queue_ends_after_the_long_window() -> None:
    seen = evidence(look(ABSENT, OFF))
    assert ruled(seen, absent_s=POLICY.soft_window_s - 1).rule == "no-accounting.settling"
    found = ruled(seen, absent_s=POLICY.soft_window_s)
    assert (found.rule, found.outcome) == ("no-accounting.ended", "lost")


def test_without_accounting_a_cancellation_is_remembered_after_the_queue_has_purged_it() -> None:
    """A tick every five minutes often sees the row once: a person's scancel must not become a lost job."""
    found = ruled(evidence(look(ABSENT, OFF)), absent_s=1000, word="CANCELLED")
    assert (found.outcome, found.word) == ("cancelled", "CANCELLED")
    assert ruled(evidence(look(ABSENT, OFF)), absent_s=1000, word="TIMEOUT").outcome == "timed_out"
    assert ruled(evidence(look(ABSENT, OFF)), absent_s=1000, word="CANCELLED", cancel_asked=True).outcome == "withdrawn"


def test_windows_of_zero_leave_nothing_to_wait_for() -> None:
    at_once = Policy(confirm_s=0, soft_window_s=0)
    for word in (*FIRM, *SOFT):
        assert ruled(evidence(look(ABSENT, word)), policy=at_once).verdict == "ended"


# --- properties -----------------------------------------------------------------------------------------------------

words = st.sampled_from(WORDS) | st.text(max_size=20)
looks = st.builds(
    look,
    st.sampled_from([ABSENT, DOWN]) | words,
    st.sampled_from([ABSENT, DOWN, OFF]) | words,
    end=st.booleans(),
    steps=st.lists(words, max_size=3).map(tuple),
)
ages = st.none() | st.floats(0, 1e6)
without_record = st.sampled_from([FILES[name] for name in ("nothing", "claim", "interrupted")])


@given(looks, ages, without_record, st.booleans(), st.sampled_from(["tick1", "tick2"]))
def test_what_is_unknown_or_unavailable_never_ends(
    seen: Any, age: float | None, files: dict[str, Any], asked: bool, by: str
) -> None:
    found = ruled(evidence(seen, **files), absent_s=age, by=by, cancel_asked=asked)
    unavailable = seen.queue != "answered" or seen.accounting == "unavailable"
    unknown = any(
        row is not None and classify(row.state).life is Life.UNKNOWN for row in (seen.queue_row, seen.accounting_row)
    )
    alive = seen.queue_row is not None and classify(seen.queue_row.state).life is Life.ALIVE
    if unavailable or (unknown and not alive):
        assert found.verdict == "wait" or alive
    if found.verdict in {"ended", "ask"}:
        assert not alive
        assert not unavailable


@given(looks, ages, without_record, st.sampled_from(RECORDS))
def test_a_record_that_comes_late_never_takes_an_ending_back(
    seen: Any, age: float | None, files: dict[str, Any], outcome: RecordOutcome
) -> None:
    with_record = ruled(evidence(seen, record=record(outcome)), absent_s=age)
    assert with_record.verdict == "ended"
    assert with_record.outcome == ruled(evidence(look(), record=record(outcome))).outcome
    ruled(evidence(seen, **files), absent_s=age)


@given(looks, without_record, st.floats(0, 1e6), st.floats(0, 1e6))
def test_longer_absence_never_takes_an_ending_back(seen: Any, files: dict[str, Any], age: float, longer: float) -> None:
    first = ruled(evidence(seen, **files), absent_s=age)
    later = ruled(evidence(seen, **files), absent_s=age + longer)
    if first.verdict in {"ended", "ask"}:
        assert (later.verdict, later.outcome) == (first.verdict, first.outcome)


@given(looks, ages)
def test_the_table_is_a_function_of_what_it_is_given(seen: Any, age: float | None) -> None:
    assert ruled(evidence(seen), absent_s=age) == ruled(evidence(seen), absent_s=age)
    assert T0 < NOW
