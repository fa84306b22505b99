"""Markers are believed in one form, from one author, in the first line; the last event about a claim wins."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outerloop_hpc.errors import ConfigError
from outerloop_hpc.forge.markers import EndReason, Marker, Standing, read, standing
from outerloop_hpc.forge.port import Comment
from outerloop_hpc.forge.text import fenced
from tests.unit.engine.made import T0

pytestmark = pytest.mark.unit

ME = "outerloop"
RUN = "steward-iris-20261129T120000Z-00000001"
A, B = "a" * 16, "b" * 16


def taken(claim: str, attempt: int = 1) -> str:
    return Marker(claim=claim, run=RUN, attempt=attempt).line()


def ended(claim: str, reason: EndReason, attempt: int = 1) -> str:
    return Marker(claim=claim, run=RUN, attempt=attempt, reason=reason).line()


def thread(*said: tuple[str, str]) -> list[Comment]:
    return [Comment(str(n), author, at(n), body) for n, (author, body) in enumerate(said)]


def at(number: int) -> datetime:
    return T0 + timedelta(minutes=number)


MARKERS = st.builds(
    Marker,
    claim=st.from_regex(r"[0-9a-f]{16}", fullmatch=True),
    run=st.from_regex(r"[A-Za-z0-9_.-]{1,128}", fullmatch=True),
    attempt=st.integers(1, 9999),
    reason=st.sampled_from([None, "published", "answered", "failed", "outage", "refused"]),
)


@given(MARKERS, st.text(max_size=50))
def test_a_marker_is_read_as_it_was_written(marker: Marker, rest: str) -> None:
    assert read(f"{marker.line()}\n{rest}") == marker


@given(MARKERS, st.integers(0, 120), st.sampled_from(" \tx\u200b-<"))
def test_one_character_more_is_no_marker(marker: Marker, place: int, character: str) -> None:
    line = marker.line()
    place = min(place, len(line))
    changed = line[:place] + character + line[place:]
    # A character more in the name of the run is the marker of another run, and joined with nothing of this one.
    found = read(changed)
    assert found is None or found.run != marker.run


@pytest.mark.parametrize(
    "body",
    [
        "",
        f"> {ended(A, 'failed')}",
        f"My report quotes it:\n{ended(A, 'failed')}",
        f"\n{ended(A, 'failed')}",
        fenced(ended(A, "failed")),
        f" {ended(A, 'failed')}",
        f"{ended(A, 'failed')} ",
        ended(A, "failed").upper(),
        ended(A, "failed").replace("failed", "forgiven"),
        ended(A, "failed").replace("attempt=1", "attempt=01"),
        ended(A, "failed").replace("a", "а"),  # noqa: RUF001 - a Cyrillic letter is the point
        ended(A, "failed").replace("-->", "--!>"),
    ],
)
def test_a_report_that_quotes_the_release_marker_does_not_free_the_claim(body: str) -> None:
    """Text of a session, posted under the bot's login, freed claims and gave attempts back."""
    assert standing(thread((ME, taken(A)), (ME, body)), ME).held == read(taken(A))


def test_a_stranger_s_marker_is_a_stranger_s_text() -> None:
    found = standing(thread((ME, taken(A)), ("mallory", ended(A, "failed")), ("mallory", taken(B, 2))), ME)
    assert found.held is not None
    assert (found.held.claim, found.attempts) == (A, 1)


def test_only_the_claim_that_holds_the_order_can_be_ended() -> None:
    """The dead record of attempt 1 released attempt 2's claim while its job still waited in the queue."""
    story = thread((ME, taken(A)), (ME, ended(A, "failed")), (ME, taken(B, 2)), (ME, ended(A, "failed")))
    found = standing(story, ME)
    assert found.held is not None
    assert (found.held.claim, found.failed, found.attempts) == (B, 1, 2)


@pytest.mark.parametrize("reason", ["published", "answered", "refused", "outage"])
def test_only_failed_costs_an_attempt(reason: EndReason) -> None:
    found = standing(thread((ME, taken(A)), (ME, ended(A, reason))), ME)
    assert (found.failed, found.outages, found.last) == (0, int(reason == "outage"), reason)


def test_a_person_who_speaks_after_the_end_is_heard_and_one_before_is_not() -> None:
    story = [("ann", "please"), (ME, taken(A)), ("ann", "how is it going?"), (ME, ended(A, "answered"))]
    assert not standing(thread(*story), ME).spoken
    assert standing(thread(*story, (ME, "just text")), ME).spoken is False
    assert standing(thread(*story, ("ann", "try again")), ME).spoken


def test_an_empty_identity_refuses_to_scan() -> None:
    with pytest.raises(ConfigError, match="identity is empty"):
        standing(thread(("", taken(A))), "")


def test_a_thread_without_markers_is_free() -> None:
    story = thread(("ann", "hello"))
    assert standing(story, ME) == Standing(spoken=True, spoken_at=story[0].at)
