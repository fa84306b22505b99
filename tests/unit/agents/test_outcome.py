"""What came of a session: exit statuses, what it says of itself, and refusals in recorded words of each backend."""

from __future__ import annotations

import base64
import json
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outerloop_hpc.agents.outcome import Session, Word, session_of
from outerloop_hpc.agents.redact import redacted, spellings
from outerloop_hpc.agents.refusals import Outage, refusal_in
from outerloop_hpc.supervision.child import Ended

pytestmark = pytest.mark.unit

KEY = 'sk-a/b+c d"e'


def ended(status: int | None = 0, stdout: bytes = b"", stderr: str = "", **more: Any) -> Ended:
    given = {"ended_by": "itself", "problem": None, "errno": None, "output_bytes": len(stdout), "cut": False}
    return Ended(status, stdout=stdout, stderr=stderr, **{**given, "seconds": 1.0, **more})


def says(**said: object) -> bytes:
    return b"talk\n" + json.dumps(said).encode() + b"\n"


@pytest.mark.parametrize(
    ("status", "word"),
    [(0, "done"), (10, "no-change"), (20, "budget"), (75, "outage"), (1, "failed"), (-9, "failed"), (None, "failed")],
)
def test_exit_statuses(status: int | None, word: Word) -> None:
    assert session_of(ended(status)).word == word


@pytest.mark.parametrize(
    ("status", "said", "word"),
    [
        (0, "no-change", "no-change"),
        (0, "failed", "failed"),
        (0, "outage", "outage"),
        (10, "done", "no-change"),
        (1, "done", "failed"),
        (75, "no-change", "outage"),
        (0, "splendid", "done"),
    ],
)
def test_of_two_words_the_less_happy_one_holds(status: int, said: str, word: Word) -> None:
    assert session_of(ended(status, says(outcome=said))).word == word


def test_a_report_with_half_a_character_can_be_written_to_a_file() -> None:
    said = session_of(ended(0, says(outcome="done", report="half \ud800 a pair")))
    assert said.report == "half ? a pair"
    assert b"half ? a pair" in said.model_dump_json().encode()


def test_the_last_object_with_an_outcome_is_read() -> None:
    out = (
        says(outcome="failed") + says(outcome="no-change", report="fair already", turns=3, cost_usd=0.5) + b'{"x": 1}\n'
    )
    found = session_of(ended(0, out))
    assert (found.word, found.report, found.turns, found.cost_usd) == ("no-change", "fair already", 3, 0.5)


def test_a_limit_of_ours_is_its_budget_whatever_it_said_last() -> None:
    found = session_of(ended(-15, says(outcome="done")), over="its 5 turns were over")
    assert (found.word, found.reason) == ("budget", "its 5 turns were over")


@given(st.binary(max_size=300), st.text(max_size=100), st.one_of(st.none(), st.integers(-64, 255)))
def test_whatever_it_prints_there_is_an_outcome(stdout: bytes, stderr: str, status: int | None) -> None:
    assert isinstance(session_of(ended(status, stdout, stderr)), Session)


@pytest.mark.parametrize("value", [True, -1, float("nan"), float("inf"), "3", None, [1], 1e300])
def test_a_count_that_is_none_is_not_measured(value: object) -> None:
    found = session_of(ended(0, says(outcome="done", turns=value, cost_usd=value, report=value)))
    assert (found.turns, found.cost_usd) == (None, None)


def test_a_report_of_megabytes_is_capped() -> None:
    assert len(session_of(ended(0, says(outcome="done", report="x" * 5_000_000))).report) == 20_000


#: Recorded: Codex 0.171.0 and Claude Code 2.1.197 against servers that refuse, and plain programs.
RECORDED: tuple[tuple[str, Outage], ...] = (
    ("unexpected status 401 Unauthorized: no such key", "refused"),
    ("exceeded retry limit, last status: 429 Too Many Requests", "throttled"),
    (
        '{"type":"system","subtype":"api_retry","attempt":3,"error_status":401,"error":"authentication_failed"}',
        "refused",
    ),
    ('{"type":"system","subtype":"api_retry","attempt":10,"error_status":429,"error":"rate_limit"}', "throttled"),
    ('{"type":"system","subtype":"api_retry","attempt":2,"error_status":529,"error":"overloaded"}', "refused"),
    ('{"type":"system","subtype":"api_retry","attempt":2,"error_status":500,"error":"server_error"}', "refused"),
    ("Error: 429 rate limit", "throttled"),
    ("curl: (7) Failed to connect to api port 443: Connection refused", "refused"),
)


@pytest.mark.parametrize(("text", "outage"), RECORDED)
@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_plain_rate_limit_is_an_outage_and_costs_no_attempt(text: str, outage: Outage, stream: str) -> None:
    """A plain "429 rate limit" was filed as the steward's error and cost an attempt."""
    said = ended(1, f"working\n{text}\n".encode()) if stream == "stdout" else ended(1, b"", f"{text}\n")
    found = session_of(said)
    assert (found.word, found.outage) == ("outage", outage)
    assert text[:20] in found.reason


@pytest.mark.parametrize(
    "text", ["AssertionError: expected 0.4", "Traceback (most recent call last):", "", "I limit rates of decay"]
)
def test_an_ordinary_failure_is_no_outage(text: str) -> None:
    assert session_of(ended(1, text.encode(), text)).word == "failed"


def test_a_session_that_worked_may_speak_of_rate_limits() -> None:
    assert session_of(ended(0, b"handles 429 rate limit errors now\n")).word == "done"


def test_only_the_end_of_a_failed_session_is_looked_at() -> None:
    assert refusal_in(b"rate limit\n" + b"x\n" * 20_000, "") is None


@pytest.mark.parametrize("encode", [str, lambda key: key.encode().hex()])
def test_secrets_are_masked_in_the_usual_spellings(encode: Any) -> None:
    assert redacted(f"it is {encode(KEY)}!", [KEY]) == "it is [redacted]!"


def test_a_key_is_looked_for_as_encoders_would_write_it() -> None:
    assert {quote(KEY, safe="").encode(), base64.b64encode(KEY.encode())} < set(spellings([KEY]))


def test_a_word_too_short_for_a_key_masks_nothing() -> None:
    assert redacted("a cat", ["a"]) == "a cat"
