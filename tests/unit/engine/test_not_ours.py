"""Rows that are not ours change nothing: a plan with them is the plan without them, but for their being named."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outerloop_hpc.engine import events as ev
from outerloop_hpc.engine.evidence import Evidence, Files, Index, ref_of
from outerloop_hpc.engine.plan import Plan, Unbound
from outerloop_hpc.engine.state import Submission
from outerloop_hpc.slurm.identity import SLACK_S, matches
from outerloop_hpc.slurm.port import AccountingRow, Answer, Availability, Observation, QueueRow
from outerloop_hpc.slurm.states import TABLE
from tests.unit.engine.made import POLICY, T0, Table, Told, claim, step

pytestmark = pytest.mark.unit

AT = int(T0.timestamp())
words = st.sampled_from([*TABLE, "ODD_NEW_WORD"])
tasks = st.sampled_from([0, 1])
times = st.integers(AT - SLACK_S, AT + 100_000)


def world() -> tuple[Table, Submission, Submission]:
    """A run with a bound array of two elements, and a submission whose answer was lost."""
    one = Table(Told((step("measure-1"), step("measure-2"), step("measure-3", minutes=20))), cluster="c")
    one.plan()
    bound, lost = sorted(one.state.submissions.values(), key=lambda sub: -len(sub.elements))
    one.say(ev.SubmissionBound(name=bound.name, job_id="7"))
    return one, one.state.submissions[bound.name], lost


_, BOUND, LOST = world()

ours_queued = st.lists(
    st.builds(
        lambda task, word, at: QueueRow("7", frozenset({task}), BOUND.name, "ann", word, submit=at), tasks, words, times
    ),
    max_size=2,
)


def account(task: int | None, step_name: str, word: str, submit: int, end: int | None) -> AccountingRow:
    return AccountingRow("7", task, step_name, BOUND.name, "ann", "c", word, None, submit, submit, end, (0, 0))


ours_accounted = st.lists(
    st.builds(
        lambda task, word, at, ended, steps: [
            account(task, "", word, at, at + 60 if ended else None),
            *(account(task, str(n), w, at, at + 60) for n, w in enumerate(steps)),
        ],
        tasks,
        words,
        times,
        st.booleans(),
        st.lists(words, max_size=2),
    ),
    max_size=3,
)


def spoilt(row: Any, how: str) -> Any:
    """The same row of somebody else: another name, another user, an older job of that id, another cluster."""
    match how:
        case "name":
            return replace(row, name="somebody.else")
        case "user":
            return replace(row, user="bob")
        case "old":
            return replace(row, submit=AT - SLACK_S - 1 - abs((row.submit or AT) - AT))
    return replace(row, cluster="elsewhere")


queue_spoils = st.sampled_from(["name", "user", "old"])
spoils = st.sampled_from(["name", "user", "old", "cluster"])
others_queued = st.lists(
    st.builds(
        lambda task, word, how: spoilt(QueueRow("7", frozenset({task}), BOUND.name, "ann", word, submit=AT), how),
        tasks,
        words,
        queue_spoils,
    ),
    max_size=3,
)
others_accounted = st.lists(
    st.builds(
        lambda task, word, how, steps: [
            spoilt(account(task, "", word, AT + 200_000, AT + 200_060), how),
            *(account(task, str(n), w, AT, AT + 60) for n, w in enumerate(steps)),
        ],
        tasks,
        words,
        spoils,
        st.lists(words, max_size=2),
    ),
    max_size=3,
)
#: Jobs that bear the name of the one whose answer was lost, and are not it.
namesakes = st.lists(
    st.builds(
        lambda word, how: spoilt(QueueRow("99", None, LOST.name, "ann", word, submit=AT), how),
        words,
        st.sampled_from(["user", "old"]),
    ),
    max_size=2,
)


def shuffled(mine: Sequence[Any], foreign: Sequence[Any], chance: Any) -> list[Any]:
    """Mix them; each keeps its own order, which in accounting means something."""
    places = sorted(chance.sample(range(len(mine) + len(foreign)), len(foreign)))
    left, right = iter(mine), iter(foreign)
    return [next(right if place in places else left) for place in range(len(mine) + len(foreign))]


def observed(queue: Sequence[QueueRow], accounting: Sequence[Sequence[AccountingRow]]) -> Index:
    rows = tuple(row for group in accounting for row in group)
    answered = Availability.ANSWERED
    return Index.of(Observation(Answer(answered, tuple(queue)), Answer(answered, rows)))


def planned(one: Table, index: Index) -> Plan:
    running = index.running(BOUND)
    files = Files(claim=claim())
    seen = {(BOUND.name, n): Evidence(files, running.get(n) or index.look(BOUND, n)) for n in range(2)}
    found = index.job_named(LOST)
    return one.plan(seen, unbound={LOST.name: Unbound(found, answered=True)})


def unnamed(made: Plan) -> tuple[Any, ...]:
    """A plan without the names of what is not ours."""
    events = [
        event.model_copy(update={"evidence": {k: v for k, v in event.evidence.items() if k != "not_ours"}})
        if isinstance(event, ev.TryEnded | ev.RunParked)
        else event
        for event in made.events
    ]
    lines = [(line.subject, line.rule, line.verdict, line.reason, line.needs) for line in made.lines]
    return events, lines, made.abandon, made.archive, made.close


@given(
    st.lists(st.tuples(ours_queued, ours_accounted, others_queued, others_accounted, namesakes), max_size=3),
    st.sampled_from([1.0, POLICY.soft_window_s, POLICY.submit_lag_s, POLICY.grace_s]),
    st.randoms(use_true_random=False),
)
def test_rows_that_are_not_ours_change_nothing(story: list[tuple[Any, ...]], wait: float, chance: Any) -> None:
    alone, among = world()[0], world()[0]
    for queue, accounting, other_queue, other_accounting, names in story:
        assert not any(matches(row, ref_of(LOST)) for row in names)
        assert not any(matches(row, ref_of(BOUND)) for row in other_queue)
        assert not any(matches(group[0], ref_of(BOUND)) for group in other_accounting)
        plainly = observed(queue, accounting)
        in_queue = shuffled(queue, [*other_queue, *names], chance)
        mixed = observed(in_queue, shuffled(accounting, other_accounting, chance))
        assert unnamed(planned(among.wait(wait), mixed)) == unnamed(planned(alone.wait(wait), plainly))


@given(words, words, spoils)
def test_a_row_that_is_not_ours_is_named_in_the_evidence(queue: str, accounting: str, how: str) -> None:
    row = spoilt(account(0, "", accounting, AT, AT + 60), how)
    index = observed([QueueRow("7", frozenset({0}), "somebody.else", "ann", queue)], [[row]])
    assert len(Evidence(Files(), index.look(BOUND, 0)).summary()["not_ours"]) == 2
