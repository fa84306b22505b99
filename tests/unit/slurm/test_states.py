from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outerloop_hpc.slurm.states import COMPACT, TABLE, Life, StateMeaning, cancelled_by, classify, state_word

pytestmark = pytest.mark.unit

ALIVE = (
    "PENDING RUNNING SUSPENDED COMPLETING CONFIGURING RESIZING STAGE_OUT STOPPED SIGNALING REQUEUED REQUEUE_FED "
    "REQUEUE_HOLD SPECIAL_EXIT RESV_DEL_HOLD EXPEDITING REQUEUED_CRON POWER_UP_NODE"
)
ENDED = (
    "COMPLETED CANCELLED FAILED TIMEOUT NODE_FAIL PREEMPTED BOOT_FAIL DEADLINE OUT_OF_MEMORY REVOKED LAUNCH_FAILED "
    "RECONFIG_FAIL"
)
SOFT = {"NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "REQUEUED", "REQUEUED_CRON", "REVOKED", "LAUNCH_FAILED", "RECONFIG_FAIL"}
EXPECTED = [*((w, Life.ALIVE) for w in ALIVE.split()), *((w, Life.ENDED) for w in ENDED.split())]


@pytest.mark.parametrize(("word", "life"), EXPECTED)
def test_every_state_word_of_slurm_has_its_meaning(word: str, life: Life) -> None:
    assert classify(word) == StateMeaning(word, life, word in SOFT)


def test_the_table_holds_these_words_and_no_others() -> None:
    assert set(TABLE) == {word for word, _ in EXPECTED}


@pytest.mark.parametrize("word", sorted(SOFT))
def test_a_job_that_may_come_back_is_never_final_by_its_word_alone(word: str) -> None:
    assert not classify(word).final


@pytest.mark.parametrize("word", ["COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "DEADLINE", "OUT_OF_MEMORY"])
def test_plain_endings_are_final(word: str) -> None:
    assert classify(word).final


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("CANCELLED by 1000", "CANCELLED"),
        ("CANCELLED by 4294967295", "CANCELLED"),
        ("CANCELLED+", "CANCELLED"),
        ("CANCELLED+ by 0", "CANCELLED"),
        ("  completed \n", "COMPLETED"),
        ("Node_Fail", "NODE_FAIL"),
        ("oom", "OUT_OF_MEMORY"),
        ("CG", "COMPLETING"),
    ],
)
def test_first_word_case_plus_and_space_do_not_matter(text: str, word: str) -> None:
    assert classify(text).word == word


@pytest.mark.parametrize("text", ["", " ", "?", "UNKNOWN", "OUT_OF_ME+", "RUNNING_LATE", "DONE", "UPDATE_DB", "完了"])
def test_text_that_is_not_known_stays_verbatim_and_unknown(text: str) -> None:
    assert classify(text) == StateMeaning(text, Life.UNKNOWN, soft=False)
    assert not classify(text).final


def test_every_compact_code_stands_for_a_known_word() -> None:
    assert set(COMPACT.values()) <= set(TABLE)


@pytest.mark.parametrize(
    ("text", "uid"),
    [("CANCELLED by 0", 0), ("CANCELLED by 4294967294", 4294967294), ("CANCELLED", None), ("FAILED by 3", None)],
)
def test_cancelled_by_gives_the_uid(text: str, uid: int | None) -> None:
    assert cancelled_by(text) == uid


@given(st.text())
def test_classification_is_total(text: str) -> None:
    meaning = classify(text)
    assert meaning.word in TABLE or (meaning.word == text and meaning.life is Life.UNKNOWN)
    assert isinstance(state_word(text), str)
    cancelled_by(text)
