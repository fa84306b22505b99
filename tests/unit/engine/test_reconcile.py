"""Planning one run: what is submitted, repeated, asked, given up, archived and closed, and in which order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outerloop_hpc.engine import events as ev
from outerloop_hpc.engine.closing import archive_note
from outerloop_hpc.engine.kind import Ask, Cancel, Conclude, Decision, End, Submit, View, view_of
from outerloop_hpc.engine.plan import Unbound
from outerloop_hpc.engine.records import RecordOutcome
from outerloop_hpc.engine.rules import Policy
from outerloop_hpc.engine.state import RunState
from outerloop_hpc.slurm.port import Availability
from outerloop_hpc.slurm.states import TABLE
from tests.unit.engine.made import (
    ABSENT,
    DOWN,
    OFF,
    POLICY,
    RUN,
    Table,
    Told,
    claim,
    decided,
    evidence,
    interrupted,
    look,
    record,
    rules_of,
    step,
    submission,
    types,
)

pytestmark = pytest.mark.unit

ONE = (step("measure-1"),)
GONE = evidence(look(ABSENT, "FAILED"))


def table(*steps: Any, then: Any = lambda _view: (), **more: Any) -> Table:
    return Table(Told(steps or ONE, then), **more)


def ends(view: View) -> tuple[Decision, ...]:
    """End as soon as every step has its last word."""
    if view.under_way:
        return ()
    return (End("measured", "all settled", {"words": sorted(o.word for o in view.outcomes.values())}),)


def lose(one: Table, seen: Any = GONE) -> None:
    """Let every open try end as ``seen`` says."""
    one.plan(seen)
    one.wait(POLICY.soft_window_s).plan(seen)


# --- submitting -----------------------------------------------------------------------------------------------------


def test_the_intent_is_planned_before_anything_is_bound() -> None:
    one = table()
    made = one.plan()
    assert types(made) == ["run.started", "steps.wanted", "submission.intended"]
    (sub,) = one.state.submissions.values()
    assert (sub.status, sub.job_id, sub.compute, sub.user) == ("intended", "", "slurm", "ann")
    assert [t.outcome for t in one.state.steps["measure-1"].tries] == [None]


def test_a_replay_from_the_same_state_gives_the_same_intents() -> None:
    first, second = table().plan(), table().plan()
    assert first == second


def test_a_step_with_an_open_try_is_not_submitted_again() -> None:
    one = table()
    one.start()
    for _ in range(3):
        assert one.wait(10_000).plan().events == ()


def test_steps_that_the_kind_wants_again_are_found_by_their_key() -> None:
    one = table(then=lambda _view: (Submit(ONE, "again"),))
    one.start()
    made = one.plan()
    assert made.events == ()
    assert list(one.state.steps) == ["measure-1"]


def test_tries_that_were_submitted_after_the_look_are_left_alone() -> None:
    one = table(step("a"), step("b"))
    one.start()
    assert one.wait(100_000).plan({}).events == ()


def test_held_launches_still_settle() -> None:
    one = table(step("a"), step("b"), launches=0)
    made = one.plan()
    assert types(made) == ["run.started", "steps.wanted"]
    assert rules_of(made) == ["kind.submit", "launch.held"]
    one.launches = 20
    one.start()
    one.launches = 0
    assert set(types(one.plan(evidence(look(), record=record())))) == {"try.ended"}
    assert one.settled("a") == "record"


def test_a_pass_adds_no_more_submissions_than_it_may() -> None:
    one = table(*(step(f"s{n}", minutes=n) for n in range(1, 6)), launches=2)
    assert types(one.plan()).count("submission.intended") == 2
    assert types(one.plan()).count("submission.intended") == 2
    assert types(one.plan()).count("submission.intended") == 1
    assert types(one.plan()) == []


def test_arrays_are_cut_to_what_the_scheduler_takes() -> None:
    one = table(*(step(f"s{n}") for n in range(7)), largest=3)
    made = one.plan()
    sizes = [len(event.elements) for event in made.events if isinstance(event, ev.SubmissionIntended)]
    assert sizes == [3, 3, 1]


def test_a_parked_run_launches_nothing_and_still_settles() -> None:
    one = table(step("a"), step("b"))
    one.start()
    one.say(ev.RunParked(question="?", reason="!"))
    lose(one)
    assert one.outcomes("a") == ["lost"]
    assert one.wait(100_000).plan().events == ()
    assert one.phase() == "parked"


# --- repeating ------------------------------------------------------------------------------------------------------


def test_a_lost_try_is_repeated_under_another_name_after_a_pause() -> None:
    one = table()
    (first,) = one.start()
    lose(one)
    assert one.outcomes() == ["lost"]
    assert one.wait(POLICY.backoff_s - 1).plan().events == ()
    made = one.wait(1).plan()
    assert types(made) == ["submission.intended"]
    (second,) = one.bind("8")
    assert second != first
    assert [t.number for t in one.state.steps["measure-1"].tries] == [1, 2]


def test_the_pause_doubles_with_each_loss_and_stays_under_an_hour() -> None:
    one = table(step(max_tries=12))
    pauses = []
    for _ in range(10):
        one.start()
        lose(one)
        pause = 0
        while not one.wait(30).plan().events:
            pause += 30
        pauses.append(pause + 30)
    assert pauses[:6] == [60, 120, 240, 480, 960, 1920]
    assert pauses[6:] == [3600] * 4


def test_lost_tries_are_repeated_up_to_the_cap_and_then_the_kind_is_told() -> None:
    one = table(step(max_tries=3), then=ends)
    for number in (1, 2, 3):
        one.wait(4000).plan()
        one.bind(str(number))
        lose(one)
    assert one.settled() == "tries exhausted"
    assert one.state.ended is not None
    assert one.state.ended.result == {"words": ["tries exhausted"]}
    assert one.outcomes() == ["lost"] * 3


def test_infrastructure_in_the_record_is_a_loss_and_no_answer() -> None:
    one = table()
    one.start()
    one.plan(evidence(look(), record=record("infrastructure", reason="no scratch")))
    assert one.outcomes() == ["lost"]
    assert one.settled() is None


@pytest.mark.parametrize("outcome", ["completed", "failed", "refused"])
def test_an_answer_in_the_record_is_never_repeated(outcome: Any) -> None:
    one = table()
    one.start()
    one.plan(evidence(look("RUNNING"), record=record(outcome, payload={"value": 1.5})))
    assert one.settled() == "record"
    assert one.state.steps["measure-1"].payload == {"value": 1.5}
    assert one.wait(100_000).plan().events == ()


def test_a_timeout_is_the_steps_last_word() -> None:
    one = table()
    one.start()
    lose(one, evidence(look(ABSENT, "TIMEOUT"), claim=claim(), interrupted=interrupted()))
    assert one.settled() == "timed out"
    assert one.wait(100_000).plan().events == ()


def test_a_node_that_failed_is_avoided_by_the_next_try() -> None:
    one = table()
    one.start()
    lose(one, evidence(look(ABSENT, "NODE_FAIL", node="n7")))
    (intent,) = one.wait(4000).plan().events
    assert isinstance(intent, ev.SubmissionIntended)
    assert intent.exclude_nodes == ("n7",)


@pytest.mark.parametrize(("unfit", "expected"), [(True, ("node7",)), (False, ())])
def test_a_node_that_the_job_itself_found_unfit_is_avoided_by_the_next_try(unfit: bool, expected: Any) -> None:
    one = table()
    one.start()
    one.plan(evidence(look(), record=record("infrastructure", reason="no scratch", node_unfit=unfit)))
    (intent,) = one.wait(4000).plan().events
    assert isinstance(intent, ev.SubmissionIntended)
    assert intent.exclude_nodes == expected


def test_what_a_try_was_lost_with_is_kept() -> None:
    one = table()
    one.start()
    lose(one, evidence(look(), record=record("infrastructure", reason="later", part="candidate")))
    (step,) = one.state.steps.values()
    assert step.tries[0].part == "candidate"


def test_a_kind_learns_what_a_job_was_lost_with_also_when_a_later_try_does_not_say() -> None:
    one = table(step(max_tries=2))
    one.start()
    one.plan(evidence(look(), record=record("infrastructure", part="candidate")))
    one.wait(4000).plan()
    one.bind()
    one.plan(evidence(look(), record=record("infrastructure")))
    outcome = view_of(lambda: one.spec, one.state, one.now).outcomes["measure-1"]
    assert (outcome.word, outcome.part) == ("tries exhausted", "candidate")


def test_a_run_of_the_cluster_is_not_repeated_on_the_host_of_a_pass_without_sbatch() -> None:
    one = table()
    one.start()
    lose(one)
    began = {name: was.model_copy(update={"compute": "other"}) for name, was in one.state.submissions.items()}
    one.state = one.state.model_copy(update={"submissions": began})
    made = one.wait(4000).plan()
    assert not [event for event in made.events if isinstance(event, ev.SubmissionIntended)]
    assert "launch.elsewhere" in [line.rule for line in made.lines]


def test_a_job_that_never_got_a_node_excludes_none() -> None:
    one = table()
    one.start()
    lose(one, evidence(look(ABSENT, "BOOT_FAIL", node="None assigned")))
    (intent,) = one.wait(4000).plan().events
    assert isinstance(intent, ev.SubmissionIntended)
    assert intent.exclude_nodes == ()


@pytest.mark.parametrize(
    "ending",
    [
        lambda one: lose(one, evidence(look(ABSENT, "OUT_OF_MEMORY"))),
        lambda one: one.plan(evidence(look("RUNNING", "RUNNING"), record=record("out_of_memory"))),
    ],
    ids=["by accounting", "by its record"],
)
def test_running_out_of_memory_is_repeated_once_with_twice_as_much(ending: Callable[[Table], object]) -> None:
    one = table(step(memory_mb=500))
    asked = []
    for _ in range(2):
        made = one.wait(4000).plan()
        asked += [e.resources.memory_mb for e in made.events if isinstance(e, ev.SubmissionIntended)]
        one.bind()
        ending(one)
    assert asked == [500, 1000]
    assert one.settled() == "out of memory"
    assert one.wait(100_000).plan().events == ()


def test_running_out_of_memory_that_nobody_asked_for_is_not_repeated() -> None:
    one = table()
    one.start()
    lose(one, evidence(look(ABSENT, "COMPLETED", steps=("OUT_OF_MEMORY",))))
    assert one.settled() == "out of memory"


# --- refusals -------------------------------------------------------------------------------------------------------


def refuse(one: Table) -> None:
    for name in [s.name for s in one.state.submissions.values() if s.status == "intended"]:
        one.say(ev.SubmissionRefused(name=name, complaint="invalid account"))


@pytest.mark.parametrize("outcome", ["out_of_memory", "timed_out"])
def test_a_larger_ask_that_sbatch_never_takes_is_given_up_for_the_first_one(outcome: RecordOutcome) -> None:
    """No node has twice the memory, or no partition gives so long: the run was parked, and again after each resume."""
    one = table(step("a", memory_mb=500, longer=1.5), then=lambda _: ())
    one.start()
    one.plan(evidence(look(), record=record(outcome)))
    one.wait(4000).plan()
    asked = []
    for _ in range(4):
        (new,) = [s for s in one.state.submissions.values() if s.status == "intended"]
        asked.append((new.resources.memory_mb, new.resources.minutes))
        if len(asked) < 4:
            refuse(one)
            one.wait(4000).plan()
    assert asked == [(1000, 10) if outcome == "out_of_memory" else (500, 15)] * 3 + [(500, 10)]
    one.bind()
    one.plan(evidence(look(), record=record(outcome, try_number=5)))
    assert one.settled("a") == outcome.replace("_", " ")
    assert one.wait(100_000).plan().events == ()


def test_refused_submissions_use_up_no_tries_and_are_repeated_more_and_more_slowly() -> None:
    one = table(step(max_tries=1))
    names = set()
    for number in range(5):
        made = one.plan()
        names |= {e.name for e in made.events if isinstance(e, ev.SubmissionIntended)}
        refuse(one)
        assert one.wait(POLICY.backoff_s * 2**number - 1).plan().events == ()
        one.wait(1)
    assert len(names) == 5
    assert one.settled() is None
    assert one.phase() == "running"


def test_eight_refusals_in_a_row_are_a_question_and_a_resume_starts_anew() -> None:
    one = table()
    for _ in range(POLICY.refusals):
        one.wait(4000).plan()
        assert one.state.parked is None
        refuse(one)
    made = one.wait(4000).plan()
    assert types(made) == ["run.parked"]
    assert one.state.parked is not None
    assert "8 submissions in a row" in one.state.parked.question
    assert one.state.parked.reason == "invalid account"
    assert one.wait(4000).plan().events == ()
    assert types(one.plan(inbox=[decided("resume")])) == ["person.decided", "submission.intended"]


def test_submissions_that_always_vanish_are_not_made_for_ever() -> None:
    one = table()
    for _ in range(POLICY.refusals):
        one.wait(4000).plan()
        assert one.state.parked is None
        (name,) = [s.name for s in one.state.submissions.values() if s.status == "intended"]
        one.say(ev.SubmissionAbandoned(name=name, reason="never surfaced"))
    assert types(one.wait(4000).plan()) == ["run.parked"]


def test_a_refusal_is_forgotten_after_a_submission_that_was_taken() -> None:
    one = table()
    for _ in range(3):
        one.wait(4000).plan()
        refuse(one)
    one.wait(4000).start()
    assert one.state.steps["measure-1"].refusals() == 0


# --- people ---------------------------------------------------------------------------------------------------------


def asks_when_cancelled(view: View) -> tuple[Decision, ...]:
    if any(outcome.word == "cancelled by a person" for outcome in view.outcomes.values()):
        return (Ask("go on?", "somebody cancelled it"),)
    return ends(view)


def test_a_cancelled_job_parks_the_run_and_a_resume_tries_again() -> None:
    one = table(then=asks_when_cancelled)
    one.start()
    lose(one, evidence(look(ABSENT, "CANCELLED", uid=1000)))
    assert one.settled() == "cancelled by a person"
    assert one.phase() == "parked"
    assert one.wait(100_000).plan().events == ()
    made = one.plan(inbox=[decided("resume")])
    assert types(made) == ["person.decided", "submission.intended"]
    assert one.phase() == "running"
    one.bind("8")
    one.plan(evidence(look(), record=record(submission="x")))
    assert one.settled() == "record"


def test_a_resume_does_not_measure_again_what_has_a_record() -> None:
    one = table(step("a"), step("b"), then=asks_when_cancelled)
    one.start()
    (name,) = one.state.submissions
    seen = {(name, 0): evidence(look(), record=record()), (name, 1): evidence(look(ABSENT, "CANCELLED"))}
    one.plan(seen)
    one.wait(100).plan(seen)
    assert one.phase() == "parked"
    (intent,) = [e for e in one.plan(inbox=[decided("resume")]).events if isinstance(e, ev.SubmissionIntended)]
    assert [element.step for element in intent.elements] == ["b"]


def test_a_resume_forgives_the_tries_before_it() -> None:
    one = table(step(max_tries=2), then=asks_when_cancelled)
    for seen in (GONE, evidence(look(ABSENT, "CANCELLED"))):
        one.wait(4000).plan()
        one.bind()
        lose(one, seen)
    one.plan(inbox=[decided("resume")])
    one.bind("9")
    lose(one)
    assert one.settled() is None
    assert one.state.steps["measure-1"].counted() == 1


def test_a_decision_is_taken_once() -> None:
    one = table()
    one.start()
    one.say(ev.RunParked(question="?", reason="!"))
    assert "person.decided" in types(one.plan(inbox=[decided("resume")]))
    one.say(ev.RunParked(question="?", reason="!"))
    assert one.plan(inbox=[decided("resume")]).events == ()
    assert "person.decided" in types(one.plan(inbox=[decided("resume", "b.json")]))


def test_a_person_ends_a_run_and_its_jobs_are_withdrawn() -> None:
    one = table()
    (name,) = one.start()
    made = one.plan(evidence(look("RUNNING")), inbox=[decided("end")])
    assert types(made) == ["person.decided", "cancel.asked", "run.ended"]
    assert one.state.ended is not None
    assert one.state.ended.ending == "operator"
    assert one.state.submissions[name].cancel_asked
    lose(one, evidence(look(ABSENT, "CANCELLED", uid=1000)))
    assert one.settled() == "withdrawn"
    assert one.wait(100_000).plan().events == ()


def test_a_resume_of_a_try_that_nobody_can_account_for_uses_up_no_tries() -> None:
    one = table(step(max_tries=1), then=ends)
    one.start()
    nowhere = evidence(look())
    one.plan(nowhere)
    one.wait(POLICY.grace_s).plan(nowhere)
    assert one.phase() == "parked"
    made = one.wait(60).plan(nowhere, inbox=[decided("resume")])
    assert types(made) == ["person.decided", "try.ended", "submission.intended"]
    assert one.outcomes() == ["lost", None]


def test_an_ended_run_listens_to_nobody_and_launches_nothing() -> None:
    one = table(step("a"), step("b"))
    one.start()
    lose(one)
    one.say(ev.RunEnded(ending="operator", reason="r"))
    assert one.wait(100_000).plan(inbox=[decided("resume"), decided("end", "b.json")]).events == ()


# --- kinds' decisions -----------------------------------------------------------------------------------------------


def test_a_kind_cancels_only_what_is_under_way_and_only_once() -> None:
    one = table(step("a"), step("b", minutes=20), then=lambda _: (Cancel(("b",), "not needed"),))
    one.start()
    made = one.plan(evidence(look("RUNNING")))
    assert types(made) == ["cancel.asked"]
    asked = [s for s in one.state.submissions.values() if s.cancel_asked]
    assert [e.step for s in asked for e in s.elements] == ["b"]
    assert one.plan(evidence(look("RUNNING"))).events == ()


def test_a_step_that_waits_for_its_next_try_is_not_submitted_only_to_be_cancelled() -> None:
    def impatient(view: View) -> tuple[Decision, ...]:
        if not view.under_way:
            return (End("over", "all settled", {k: [o.word, o.reason] for k, o in view.outcomes.items()}),)
        return (Cancel(tuple(view.steps), "too slow"),) if view.outcomes else ()

    one = table(step("a"), step("b", minutes=20), then=impatient)
    one.start()
    lost, other = (name for name in one.state.submissions)
    one.say(ev.SubmissionAbandoned(name=lost, reason="never seen"))
    about = {(other, 0): evidence(look(), record=record("timed_out"))}
    made = one.wait(100_000).plan(about)
    assert types(made) == ["try.ended", "cancel.asked", "run.ended"]
    assert one.state.ended is not None
    assert one.state.ended.result == {
        "a": ["withdrawn", "never seen"],
        "b": ["timed out", "the job's record says timed_out"],
    }
    assert one.plan(about).events == ()


def test_a_step_that_its_kind_withdrew_is_tried_again_when_a_person_resumes() -> None:
    def wary(view: View) -> tuple[Decision, ...]:
        if view.resumed:
            return ()
        return (Cancel(("a",), "no use"), Ask("go on?", "it went wrong"))

    one = table(step("a"), then=wary)
    one.start()
    (name,) = one.state.submissions
    one.say(ev.SubmissionAbandoned(name=name, reason="never seen"))
    assert types(one.wait(100_000).plan()) == ["cancel.asked", "run.parked"]
    assert one.state.steps["a"].settled() == "withdrawn"
    assert types(one.plan(inbox=[decided("resume")])) == ["person.decided", "submission.intended"]


def test_a_conclusion_is_kept_and_the_kind_goes_on_from_it_at_once() -> None:
    def careful(view: View) -> tuple[Decision, ...]:
        if view.under_way:
            return ()
        if "gate" not in view.conclusions:
            return (Conclude("gate", {"p": 0.04}, "p is 0.04"),)
        return (End("promoted", "it is better", dict(view.conclusions["gate"])),)

    one = table(then=careful)
    one.start()
    made = one.plan(evidence(look(), record=record()))
    assert types(made) == ["try.ended", "conclusion.reached", "run.ended"]
    assert one.state.ended is not None
    assert one.state.ended.result == {"p": 0.04}
    one.say(ev.ConclusionReached(key="gate", document={"p": 0.5}, reason="computed otherwise"))
    assert one.state.conclusions == {"gate": {"p": 0.04}}, "the first one stays"


def test_a_step_that_may_be_longer_gets_one_more_try_with_more_time() -> None:
    one = table(step("a", longer=1.5), then=lambda _: ())
    one.start()
    one.plan(evidence(look(), record=record("timed_out")))
    (again,) = [s for s in one.state.submissions.values() if s.elements[0].try_number == 2]
    assert again.resources.minutes == 15
    one.bind()
    one.plan(evidence(look(), record=record("timed_out", try_number=2)))
    assert one.state.steps["a"].settled() == "timed out"
    assert len(one.state.submissions) == 2


def counting(seen: list[Mapping[str, int]]) -> Callable[[View], tuple[Decision, ...]]:
    """Return a plan that wants nothing and notes what was lost in a row."""

    def plan(view: View) -> tuple[Decision, ...]:
        seen.append(view.lost_in_a_row)
        return ()

    return plan


def test_a_kind_sees_how_many_executions_in_a_row_were_lost_to_machines() -> None:
    seen: list[Mapping[str, int]] = []
    one = table(step("a"), step("b", minutes=20), step("c", minutes=30), then=counting(seen))
    a, b, c = one.start()
    lost = evidence(look(), record=record("infrastructure"))
    with_a_part = evidence(look(), record=record("infrastructure", part="candidate"))
    one.plan({(a, 0): lost, (b, 0): with_a_part})
    one.wait(1).plan({(c, 0): evidence(look(), record=record())})
    assert seen[-2:] == [{"": 1, "candidate": 1}, {}]


def test_what_runs_out_of_memory_is_not_counted_as_lost_to_machines() -> None:
    """Ten candidates that want more memory than they asked for would stop a sweep as if the cluster were broken."""
    seen: list[Mapping[str, int]] = []
    one = table(step("a", memory_mb=100), step("b", minutes=20), then=counting(seen))
    a, b = one.start()
    one.plan(
        {
            (a, 0): evidence(look(), record=record("out_of_memory")),
            (b, 0): evidence(look(), record=record("infrastructure")),
        }
    )
    assert seen[-1] == {"": 1}


def test_an_end_withdraws_what_is_still_under_way() -> None:
    one = table(step("a"), then=lambda _: (End("failed", "no use", {}),))
    one.start()
    assert types(one.plan(evidence(look("RUNNING")))) == ["cancel.asked", "run.ended"]


def test_nothing_is_decided_after_a_question() -> None:
    one = table(then=lambda _: (Ask("?", "!"), End("failed", "never reached", {})))
    one.start()
    assert types(one.plan()) == ["run.parked"]


# --- unbound submissions --------------------------------------------------------------------------------------------


def unbound_table(**more: Any) -> tuple[Table, str]:
    one = table(**more)
    one.plan()
    (name,) = one.state.submissions
    return one, name


def test_a_job_found_by_its_name_is_adopted_on_the_cluster_that_it_was_sent_to() -> None:
    one, name = unbound_table(cluster="hpc2")
    made = one.plan(unbound={name: Unbound("77", answered=True)})
    assert types(made) == ["submission.bound"]
    sub = one.state.submissions[name]
    assert (sub.status, sub.job_id, sub.cluster) == ("bound", "77", "hpc2")
    assert one.plan(unbound={name: Unbound("77", answered=True)}).events == ()


def test_a_job_that_is_adopted_when_it_has_ended_already_keeps_its_accounting() -> None:
    """Its tries ended by their records in the same plan, and it was archived as one that never got a job id."""
    one, name = unbound_table()
    ended = {(name, 0): evidence(look(), record=record(submission=name))}
    made = one.plan(ended, unbound={name: Unbound("77", answered=True)}, archivable={name: "it never got a job id"})
    assert types(made) == ["try.ended", "submission.bound"]
    assert (made.archive, made.close) == ((), False)
    assert one.plan(archivable={name: ""}).archive == ((name, ""),)


@pytest.mark.parametrize("seconds", [0, 10, 100_000])
def test_a_submission_is_never_given_up_while_the_scheduler_is_silent(seconds: float) -> None:
    one, name = unbound_table()
    made = one.wait(seconds).plan(unbound={name: Unbound(None, answered=False)})
    assert (made.events, made.abandon) == ((), ())
    assert rules_of(made) == ["submission.unknown"]


def test_a_submission_that_does_not_surface_is_waited_for_and_then_given_up() -> None:
    one, name = unbound_table()
    nothing = {name: Unbound(None, answered=True)}
    made = one.wait(POLICY.submit_lag_s - 1).plan(unbound=nothing)
    assert (made.abandon, rules_of(made)) == ((), ["submission.lagging"])
    made = one.wait(1).plan(unbound=nothing)
    assert (made.abandon, made.events) == ((name,), ())
    one.say(ev.SubmissionAbandoned(name=name, reason="never surfaced"))
    assert one.outcomes() == ["abandoned"]
    assert types(one.wait(POLICY.backoff_s).plan()) == ["submission.intended"]
    assert one.state.steps["measure-1"].counted() == 0


def test_another_hosts_submission_is_waited_for_longer() -> None:
    one, name = unbound_table()
    one.host = "tick2"
    nothing = {name: Unbound(None, answered=True)}
    assert one.wait(POLICY.submit_lag_s + POLICY.skew_s - 1).plan(unbound=nothing).abandon == ()
    assert one.wait(1).plan(unbound=nothing).abandon == (name,)


def test_the_record_of_a_submission_whose_answer_was_lost_is_taken() -> None:
    one, name = unbound_table(then=ends)
    seen = {(name, 0): evidence(look(), record=record())}
    made = one.plan(seen, unbound={name: Unbound("7", answered=True)})
    assert types(made) == ["try.ended", "submission.bound", "run.ended"]


def test_a_claim_of_a_submission_whose_answer_was_lost_keeps_its_try_open() -> None:
    one, name = unbound_table()
    seen = {(name, 0): evidence(look(), claim=claim())}
    assert one.wait(100_000).plan(seen, unbound={name: Unbound("7", answered=True)}).abandon == ()
    assert one.state.steps["measure-1"].open_try is not None


def test_an_unreadable_file_of_an_unbound_submission_is_shown_and_keeps_it_from_being_given_up() -> None:
    one, name = unbound_table()
    seen = {(name, 0): evidence(look(), fault="e0000.record.json: not a readable record document")}
    made = one.wait(100_000).plan(seen, unbound={name: Unbound(None, answered=True)})
    assert (made.events, made.abandon) == ((), ())
    assert rules_of(made) == ["record.unreadable", "submission.unreadable"]


# --- archive and close ----------------------------------------------------------------------------------------------


def test_a_run_is_archived_before_it_is_closed() -> None:
    one = table(then=ends)
    (name,) = one.start()
    made = one.plan(evidence(look(), record=record()), archivable={})
    assert types(made) == ["try.ended", "run.ended"]
    assert (made.archive, made.close) == ((), False)
    assert one.plan().idle
    made = one.plan(archivable={name: ""})
    assert (made.archive, made.close) == (((name, ""),), True)
    one.say(ev.AccountingArchived(submission=name, rows=1))
    made = one.plan()
    assert (made.archive, made.close) == ((), True)
    one.say(ev.RunClosed())
    assert one.plan().idle


def test_nothing_is_archived_while_a_try_is_open() -> None:
    one = table(step("a"), step("b"))
    (name,) = one.start()
    one.plan({(name, 0): evidence(look(), record=record())})
    assert one.plan(archivable={name: ""}).archive == ()


def test_a_run_with_an_open_try_is_not_closed_however_it_ended() -> None:
    one = table()
    one.start()
    made = one.plan(evidence(look("RUNNING")), inbox=[decided("end")])
    assert not made.close
    assert not one.plan(evidence(look(DOWN, DOWN))).close


@pytest.mark.parametrize("waited", [0.0, POLICY.archive_wait_s, 1e6])
def test_the_archive_is_not_given_up_while_accounting_does_not_answer(waited: float) -> None:
    note = archive_note(
        submission(), complete=False, availability=Availability.UNAVAILABLE, ended_for_s=waited, policy=POLICY
    )
    assert note is None


@pytest.mark.parametrize(
    ("complete", "availability", "waited", "status", "expected"),
    [
        (True, Availability.ANSWERED, 0, "bound", ""),
        (False, Availability.ANSWERED, 0, "bound", None),
        (False, Availability.ANSWERED, POLICY.archive_wait_s, "bound", "partly measured"),
        (False, Availability.DISABLED, 0, "bound", "not measured"),
        (False, Availability.ANSWERED, 0, "intended", "never got a job id"),
    ],
)
def test_what_is_missing_in_the_archive_is_said(
    complete: bool, availability: Availability, waited: float, status: str, expected: str | None
) -> None:
    note = archive_note(
        submission(status=status), complete=complete, availability=availability, ended_for_s=waited, policy=POLICY
    )
    assert note == expected if not expected else note is not None and expected in note


# --- properties -----------------------------------------------------------------------------------------------------

words = st.sampled_from([ABSENT, *TABLE, "ODD_NEW_WORD"])
seen_things = st.builds(
    lambda queue, accounting, files: evidence(look(queue, accounting), **files),
    st.sampled_from([DOWN]) | words,
    st.sampled_from([DOWN, OFF]) | words,
    st.sampled_from([{}, {"claim": claim()}, {"record": record()}, {"record": record("infrastructure")}]),
)


@given(st.lists(st.tuples(seen_things, st.floats(0, 5000)), max_size=8))
def test_planning_again_with_the_same_evidence_wants_nothing_more(story: list[tuple[Any, float]]) -> None:
    one = table(step("a"), step("b", minutes=20), then=asks_when_cancelled)
    one.start()
    for seen, pause in story:
        one.wait(pause)
        given_evidence = one.about_all(seen)
        one.plan(given_evidence)
        assert one.plan(given_evidence).events == ()
        one.bind()


@given(st.lists(st.tuples(st.sampled_from([DOWN, "ODD_NEW_WORD"]), st.floats(0, 1e6)), max_size=6), words)
def test_what_is_unknown_never_submits_again(story: list[tuple[str, float]], accounting: str) -> None:
    one = table()
    one.start()
    for queue, pause in story:
        made = one.wait(pause).plan(evidence(look(queue, accounting)))
        assert "submission.intended" not in types(made)
        assert "try.ended" not in types(made)
        assert made.abandon == ()


@given(st.lists(st.tuples(seen_things, st.floats(0, 5000)), max_size=8))
def test_a_plan_never_changes_the_state_that_it_was_given(story: list[tuple[Any, float]]) -> None:
    one = table(then=ends)
    one.start()
    for seen, pause in story:
        before, data = one.state, one.state.model_dump_json()
        one.wait(pause).plan(seen)
        assert before.model_dump_json() == data


def test_a_run_that_is_new_is_started_once() -> None:
    one = Table(Told(()), RunState(run=RUN), policies={"slurm": Policy()})
    assert types(one.plan()) == ["run.started"]
    assert one.plan().idle
