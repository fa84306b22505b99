"""What the engine promises about whole runs, whatever it is shown, in whatever order and however often."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outerloop_hpc.engine import events as ev
from outerloop_hpc.engine.kind import Ask, Cancel, Decision, Post, View
from outerloop_hpc.engine.plan import Plan, Unbound
from tests.unit.engine.made import ABSENT, DOWN, Table, decided, evidence, look, step, types
from tests.unit.engine.stories import (
    ENDED,
    FAULT,
    accounts,
    anything,
    final_records,
    looks,
    odd_words,
    open_files,
    seen_of,
    steps_of,
    table,
    two_submissions,
    waits,
    when_settled,
)

pytestmark = pytest.mark.unit

# --- (a) what is not known --------------------------------------------------------------------------------------------

nothing_known = st.one_of(
    st.builds(seen_of, st.builds(look, st.just(DOWN), accounts, end=st.booleans(), steps=steps_of), open_files),
    st.builds(seen_of, st.builds(look, odd_words, accounts, end=st.booleans(), steps=steps_of), open_files),
    st.builds(seen_of, st.builds(look, st.sampled_from([ABSENT, *ENDED]), st.just(DOWN)), open_files),
    st.builds(seen_of, st.builds(look, st.sampled_from([ABSENT, *ENDED]), odd_words, end=st.booleans()), open_files),
    st.builds(seen_of, looks, st.just({"fault": FAULT})),
)


@given(st.lists(st.tuples(nothing_known, nothing_known, st.booleans(), waits), max_size=6))
def test_what_is_unknown_ends_releases_and_submits_nothing(story: list[tuple[Any, Any, bool, float]]) -> None:
    one = two_submissions()
    bound, lost = sorted(one.state.submissions, key=lambda name: -len(one.state.submissions[name].elements))
    for first, second, spoilt, wait in story:
        one.wait(wait)
        about = {(bound, 0): first, (bound, 1): second}
        if spoilt:  # both sources answered, but its job left a file that cannot be read
            about[lost, 0] = evidence(look(), fault=FAULT)
        made = one.plan(about, unbound={lost: Unbound(None, answered=spoilt)})
        assert set(types(made)) <= {"sighted"}
        nothing_was_done(one, made)


def nothing_was_done(one: Table, made: Plan) -> None:
    assert (made.abandon, made.archive, made.taken, made.close) == ((), (), (), False)
    assert all(len(s.tries) == 1 and s.open_try is not None for s in one.state.steps.values())


@given(st.lists(st.tuples(open_files, waits), max_size=6))
def test_rows_of_others_alone_are_a_question_at_most(story: list[tuple[Any, float]]) -> None:
    one = table(step("measure-1"), step("measure-2"))
    one.start()
    for files, wait in story:
        others = look(foreign=("queue: job 7 is named 'x'", "accounting: job 7 belongs to bob"))
        made = one.wait(wait).plan(evidence(others, **files))
        assert set(types(made)) <= {"sighted", "run.parked"}
        nothing_was_done(one, made)


# --- (b) what is final ------------------------------------------------------------------------------------------------

people: st.SearchStrategy[ev.PersonAction | None] = st.sampled_from([None, None, None, "resume", "end"])


@given(st.lists(st.tuples(anything, waits, people, st.sampled_from(["tick1", "tick2"])), max_size=8))
def test_what_has_ended_stays_ended_as_it_did_whatever_is_seen_later(
    story: list[tuple[Any, float, ev.PersonAction | None, str]],
) -> None:
    one = table(step("measure-1"), step("measure-2", minutes=20), then=lambda _view: ())
    one.start()
    final: dict[tuple[str, int], tuple[Any, ...]] = {}
    for place, (seen, wait, word, host) in enumerate(story):
        one.wait(wait).host = host
        one.bind()
        was = one.state.ended
        one.plan(seen, inbox=[decided(word, f"{place}.json")] if word else [])
        now = {(key, t.number): t for key, s in one.state.steps.items() for t in s.tries if t.outcome is not None}
        ends = {key: (t.outcome, t.rule, t.reason, t.ended_at, t.record_outcome) for key, t in now.items()}
        assert {key: ends.get(key) for key in final} == final
        assert was is None or one.state.ended == was
        final = ends


@given(looks, looks, final_records, waits)
def test_what_a_record_says_holds_whatever_slurm_says_with_it(first: Any, second: Any, left: Any, wait: float) -> None:
    plans = []
    for seen in (first, second):
        one = table()
        one.start()
        made = one.wait(wait).plan(evidence(seen, **left))
        plans.append([(e.outcome, e.rule, e.reason) for e in made.events if isinstance(e, ev.TryEnded)])
    assert len(plans[0]) == 1
    assert plans[0] == plans[1]


# --- (d) how often it is planned --------------------------------------------------------------------------------------


def moody(view: View) -> tuple[Decision, ...]:
    """Ask after a cancellation, want nothing more after a timeout, end when all is settled."""
    words = {one.word for one in view.outcomes.values()}
    if "cancelled by a person" in words and view.resumed == 0:
        return (Ask("go on?", "somebody cancelled it"),)
    if "timed out" in words and view.under_way:
        return (Cancel(tuple(key for key in view.steps if key not in view.outcomes), "too slow"),)
    return when_settled(view)


def carry_out(one: Table, made: Plan, archivable: Mapping[str, str]) -> list[ev.Event]:
    """What a pass commits once it has done what the plan says; returns all events of the plan and of the doing."""
    done: list[ev.Event] = [ev.SubmissionAbandoned(name=name, reason="no job") for name in made.abandon]
    intents = [event for event in made.events if isinstance(event, ev.SubmissionIntended)]
    done += [ev.SubmissionBound(name=intent.name, job_id="8") for intent in intents]
    done += [ev.AccountingArchived(submission=name, rows=1, note=note) for name, note in made.archive]
    done += [ev.PostDone(key=key, comment="1") for key in made.post]
    done += [ev.RunClosed()] if made.close else []
    one.say(*done)
    assert {name for name, _ in made.archive} <= set(archivable)
    return [*made.events, *done]


#: What may happen once in the life of a run, and by which of its fields one is told from another.
ONCE: dict[str, tuple[str, ...]] = {
    "try.ended": ("step", "try_number"),
    "submission.intended": ("name",),
    "submission.bound": ("name",),
    "submission.abandoned": ("name",),
    "accounting.archived": ("submission",),
    "post.wanted": ("key",),
    "post.done": ("key",),
    "person.decided": ("file",),
    "run.started": (),
    "run.ended": (),
    "run.closed": (),
}


def once(event: ev.Event) -> tuple[object, ...]:
    return (event.type, *(getattr(event, name) for name in ONCE[event.type]))


@dataclass
class Given:
    """What all rounds of one pass rest on."""

    about: dict[tuple[str, int], Any]
    unbound: dict[str, Unbound]
    inbox: list[ev.PersonDecided]
    archivable: dict[str, str]

    def plan(self, one: Table) -> Plan:
        return one.plan(self.about, unbound=self.unbound, inbox=self.inbox, archivable=self.archivable)

    def without(self, name: str) -> None:
        """Nobody has looked for a job under an id that was found out just now."""
        self.about = {key: seen for key, seen in self.about.items() if key[0] != name}
        self.archivable = {known: note for known, note in self.archivable.items() if known != name}


def until_idle(one: Table, given: Given) -> list[ev.Event]:
    """Plan each time twice, then carry out, until nothing is left to do; returns what happened."""
    happened: list[ev.Event] = []
    for _ in range(5):
        made = given.plan(one)
        for event in made.events:
            if isinstance(event, ev.SubmissionBound):
                given.without(event.name)
        again = given.plan(one)
        assert again.events == ()
        assert (again.abandon, again.archive, again.post) == (made.abandon, made.archive, made.post)
        happened += carry_out(one, made, given.archivable)
        given.inbox = [letter for letter in given.inbox if letter.file not in made.taken]
        if made.idle:
            return happened
    raise AssertionError("after five rounds there is still something to do")


unbounds = st.sampled_from([Unbound(None, answered=False), Unbound(None, answered=True), Unbound("9", answered=True)])


@given(st.lists(st.tuples(anything, unbounds, waits, people, st.booleans()), max_size=6))
def test_planning_again_does_nothing_again(
    story: list[tuple[Any, Unbound, float, ev.PersonAction | None, bool]],
) -> None:
    farewell = (Post("farewell", "12", "it is over", "the run has ended"),)
    one = table(step("measure-1"), step("measure-2"), step("measure-3", minutes=20), then=moody)
    one.kind.last_words = farewell
    happened = carry_out(one, one.plan(), {})
    lost = next(iter(one.state.submissions))
    unanswered = one.state.submissions[lost].model_copy(update={"status": "intended", "job_id": ""})
    one.state = one.state.model_copy(update={"submissions": {**one.state.submissions, lost: unanswered}})
    happened = [e for e in happened if not (isinstance(e, ev.SubmissionBound) and e.name == lost)]
    for place, (seen, answer, wait, action, whole) in enumerate(story):
        one.wait(wait)
        about = {(s.name, t.index): seen for _, t, s in one.state.open_tries()}
        archivable = dict.fromkeys(one.state.submissions, "") if whole else {}
        inbox = [decided(action, f"{place}.json")] if action else []
        happened += until_idle(one, Given(about, {lost: answer}, inbox, archivable))
    marks = [once(event) for event in happened if event.type in ONCE]
    assert len(marks) == len(set(marks))
