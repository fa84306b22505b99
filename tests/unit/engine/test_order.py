"""In which order things are seen does not decide what becomes of a run, nor do silences in between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outerloop_hpc.engine import events as ev
from outerloop_hpc.engine.evidence import Evidence
from tests.unit.engine.made import ABSENT, DOWN, OFF, POLICY, Table, evidence, look, step, types
from tests.unit.engine.stories import ENDED, final_records, open_files, table, waits

pytestmark = pytest.mark.unit


@dataclass(frozen=True)
class Facts:
    """What is so in the end: accounting's last row (or none is kept here), the queue's last word, what the job left."""

    word: str
    accounted: bool
    files: dict[str, Any]
    asked: bool

    def look(self, queue: str = ABSENT, accounting: str = "") -> Evidence:
        return evidence(look(queue, accounting or (self.word if self.accounted else OFF)), **self.files)


facts = st.builds(Facts, st.sampled_from(ENDED), st.booleans(), open_files | final_records, st.booleans())
#: One look on the way there: which source was behind, and which was silent.
partly = st.sampled_from(
    ["all", "queue down", "accounting down", "both down", "nothing yet", "still pending", "still running", "no end"]
)


def glimpse(known: Facts, what: str) -> Evidence:
    # Without accounting a job that runs after its last word was requeued, which would be another fact.
    if what == "accounting down":
        # There the word is the queue's to say, for the minutes until it forgets the job.
        return known.look(ABSENT if known.accounted else known.word, DOWN)
    silent = {"queue down": look(DOWN, known.word if known.accounted else OFF), "both down": look(DOWN, DOWN)}
    behind = {
        "nothing yet": look(ABSENT, ABSENT),
        "still pending": look(ABSENT, "PENDING"),
        "still running": look("RUNNING", "RUNNING"),
        "no end": look(ABSENT, known.word, end=False),
    }
    if what in silent or (what in behind and known.accounted):
        return evidence({**silent, **behind}[what], **(known.files if what == "no end" else {}))
    return known.look(ABSENT if known.accounted else known.word)


def told(known: Facts, glimpses: Sequence[tuple[Evidence, float]]) -> tuple[Any, ...]:
    """Show a run these looks, then for as long as it takes what is so in the end; returns what became of it."""
    one = table()
    names = one.start()
    if known.asked:
        one.say(ev.CancelAsked(submissions=tuple(names), reason="not wanted"))
    for seen, wait in glimpses:
        one.plan(seen)
        one.wait(wait)
    for wait in (0.0, POLICY.confirm_s + POLICY.soft_window_s, 0.0):
        one.wait(wait).plan(known.look())
    (current,) = one.state.steps["measure-1"].tries
    ended = one.state.ended
    return current.outcome, one.phase(), None if ended is None else ended.result


@settings(max_examples=400)
@given(facts, st.lists(st.tuples(partly, waits), max_size=6), st.randoms(use_true_random=False))
def test_the_order_in_which_things_are_seen_does_not_matter_for_what_becomes_of_a_run(
    known: Facts, order: list[tuple[str, float]], chance: Any
) -> None:
    # Without accounting the queue's word is all there is, and it is gone in minutes: the window has to hold it all.
    shorter = 1.0 if known.accounted else POLICY.confirm_s / (1 + sum(wait for _, wait in order)) / 2
    shown = [(glimpse(known, what), wait * shorter) for what, wait in order]
    if not known.accounted:
        shown.append((known.look(known.word), 0.0))
    again = chance.sample(shown, len(shown))
    plainly = [] if known.accounted else [(known.look(known.word), 0.0)]
    expected = told(known, plainly)
    assert expected[0] is not None
    assert expected[1] == "ended"
    assert told(known, shown) == expected
    assert told(known, again) == expected


def test_a_row_that_comes_after_the_question_answers_it_without_a_person() -> None:
    one = parked()
    one.plan(evidence(look(ABSENT, "FAILED")))
    assert (one.outcomes(), one.phase()) == (["lost"], "ended")


def test_a_question_about_two_tries_stands_while_one_of_them_is_open() -> None:
    one = table(step("measure-1", max_tries=1), step("measure-2", max_tries=1))
    (name,) = one.start()
    for _ in range(2):
        one.plan(evidence(look()))
        one.wait(POLICY.grace_s)
    one.plan({(name, 0): evidence(look(ABSENT, "FAILED")), (name, 1): evidence(look())})
    assert (one.outcomes(), one.phase()) == (["lost"], "parked")


def test_a_last_word_in_the_queue_is_kept_although_accounting_did_not_answer_when_it_was_seen() -> None:
    """Without accounting a person's scancel would become a lost job, which is bought again."""
    one = table()
    one.start()
    one.plan(evidence(look("CANCELLED", DOWN)))
    one.wait(POLICY.soft_window_s).plan(evidence(look(ABSENT, OFF)))
    assert one.outcomes() == ["cancelled"]


def test_a_last_word_that_is_learnt_later_starts_no_window_anew() -> None:
    one = table()
    one.start()
    one.plan(evidence(look(ABSENT, DOWN)))
    made = one.wait(POLICY.soft_window_s - 1).plan(evidence(look("TIMEOUT", DOWN)))
    assert types(made) == ["sighted"]
    assert one.plan(evidence(look("TIMEOUT", DOWN))).events == ()
    one.wait(1).plan(evidence(look(ABSENT, OFF)))
    assert one.outcomes() == ["timed_out"]


def parked() -> Table:
    one = table()
    one.start()
    one.plan(evidence(look()))
    one.wait(POLICY.grace_s).plan(evidence(look()))
    assert one.phase() == "parked"
    return one
