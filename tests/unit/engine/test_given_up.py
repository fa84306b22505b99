"""A try that nobody can account for: a person's resume gives it up, and the step is tried again."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import pytest

from outerloop_hpc.engine import events as ev
from outerloop_hpc.engine.evidence import Evidence, Files, Look
from outerloop_hpc.engine.fold import apply
from outerloop_hpc.engine.kind import Decision, Post, Submit, View
from outerloop_hpc.engine.plan import Here, Input, Plan
from outerloop_hpc.engine.reconcile import plan
from outerloop_hpc.engine.rules import Policy
from outerloop_hpc.engine.spec import ResourceAsk, RunSpec, StepSpec
from outerloop_hpc.engine.state import RunState
from outerloop_hpc.slurm.port import Availability, QueueRow

pytestmark = pytest.mark.unit

T0 = datetime(2026, 11, 29, 12, tzinfo=UTC)
POLICY = Policy()
STEP = StepSpec(key="measure-1", job="measure", cause="tree", resources=ResourceAsk(minutes=5), body="x:y")
SPEC = RunSpec(
    run="benchmark-iris-20261129T120000Z-00000000",
    kind="benchmark",
    target="iris",
    commit="c0ffee",
    cause="test",
    made_at=T0,
    made_by="me",
)
RESUME = ev.PersonDecided(file="a.json", action="resume", who="ann", reason="the node burned down")


class OneStep:
    name = "benchmark"

    def plan(self, view: View) -> tuple[Decision, ...]:
        return () if view.steps else (Submit((STEP,), "once"),)

    def farewell(self, spec: RunSpec, state: RunState) -> tuple[Post, ...]:
        return ()

    def report(self, spec: RunSpec, state: RunState) -> str:
        return ""

    def pages(self, spec: RunSpec, state: RunState) -> Mapping[str, str]:
        return {}

    def documents(self, spec: RunSpec, state: RunState) -> Mapping[str, bytes]:
        return {}


def planned(state: RunState, now: datetime, **more: object) -> Plan:
    here = Here(host="h", user="me", compute="slurm", cluster="", launches=9, largest=100)
    given = Input(read_spec=lambda: SPEC, state=state, kind=OneStep(), policies={"slurm": POLICY}, here=here, now=now)
    for name, value in more.items():
        object.__setattr__(given, name, value)
    return plan(given)


def committed(state: RunState, now: datetime, *events: ev.Event) -> RunState:
    by = ev.Author(host="h", pid=1, user="me", version="0")
    return apply(state, ev.Transaction(run=SPEC.run, seq=state.seq + 1, nonce="n", at=now, by=by, events=events))


def nowhere(state: RunState) -> dict[tuple[str, int], Evidence]:
    look = Look(queue=Availability.ANSWERED, accounting=Availability.ANSWERED)
    return {(s.name, t.index): Evidence(Files(), look) for _, t, s in state.open_tries()}


def parked() -> tuple[RunState, datetime]:
    """A run whose only job was never seen again, and when a person was asked about it."""
    state = committed(RunState(run=SPEC.run), T0, *planned(RunState(run=SPEC.run), T0).events)
    (name,) = state.submissions
    state = committed(state, T0, ev.SubmissionBound(name=name, job_id="7"))
    for now in (T0 + timedelta(minutes=5), T0 + timedelta(seconds=301 + POLICY.grace_s)):
        state = committed(state, now, *planned(state, now, evidence=nowhere(state)).events)
    assert state.phase == "parked"
    return state, T0 + timedelta(hours=2)


def test_a_resume_is_not_swallowed_by_the_question_that_it_answers() -> None:
    state, now = parked()
    after = planned(state, now, evidence=nowhere(state), inbox=[RESUME]).after
    assert after.phase == "running"
    (step,) = after.steps.values()
    assert [(one.outcome, one.rule) for one in step.tries] == [("lost", "person.gave-up"), (None, "")]
    assert "the node burned down" in step.tries[0].reason


def test_the_given_up_step_is_tried_again_at_once() -> None:
    state, now = parked()
    events = planned(state, now, evidence=nowhere(state), inbox=[RESUME]).events
    assert [type(event) for event in events] == [ev.PersonDecided, ev.TryEnded, ev.SubmissionIntended]


def test_a_resume_gives_up_nothing_that_was_seen_meanwhile() -> None:
    state, now = parked()
    look = Look(queue=Availability.UNAVAILABLE, accounting=Availability.ANSWERED)
    evidence = {key: Evidence(Files(), look) for key in nowhere(state)}
    after = planned(state, now, evidence=evidence, inbox=[RESUME]).after
    (step,) = after.steps.values()
    assert step.open_try is not None


def test_without_a_word_of_a_person_the_try_stays_open() -> None:
    state, now = parked()
    made = planned(state, now + timedelta(days=9), evidence=nowhere(state))
    assert made.events == ()
    assert [line.rule for line in made.lines] == ["nothing.anywhere"]


END = ev.PersonDecided(file="b.json", action="end", who="ann", reason="enough")


def test_an_ended_run_does_not_stay_live_for_a_try_that_nobody_can_account_for() -> None:
    state, now = parked()
    made = planned(state, now, evidence=nowhere(state), inbox=[END])
    assert [type(event) for event in made.events] == [ev.PersonDecided, ev.CancelAsked, ev.RunEnded, ev.TryEnded]
    (step,) = made.after.steps.values()
    assert [(one.outcome, one.rule) for one in step.tries] == [("lost", "run.over")]


@pytest.mark.parametrize(("state_word", "ends"), [(None, True), ("COMPLETED", True), ("RUNNING", False)])
def test_an_ended_run_waits_for_a_job_with_an_unreadable_record_only_while_it_lives(
    state_word: str | None, ends: bool
) -> None:
    state, now = parked()
    row = None if state_word is None else QueueRow("7", None, "n", "me", state_word)
    look = Look(queue=Availability.ANSWERED, accounting=Availability.ANSWERED, queue_row=row)
    evidence = {key: Evidence(Files(fault="e0000.record.json: garbage"), look) for key in nowhere(state)}
    after = planned(state, now, evidence=evidence, inbox=[END]).after
    assert after.phase == "ended"
    (step,) = after.steps.values()
    assert (step.open_try is None) is ends


def test_an_inbox_file_that_needs_no_more_attention_is_moved_even_when_an_earlier_pass_died_before_that() -> None:
    state, now = parked()
    after = planned(state, now, evidence=nowhere(state), inbox=[RESUME]).after
    again = planned(after, now, inbox=[RESUME])
    assert (again.events, again.taken, again.idle) == ((), ("a.json",), False)
    over = planned(committed(after, now, ev.RunEnded(ending="operator", reason="r")), now, inbox=[END])
    assert (over.events, over.taken) == ((), ("b.json",))
