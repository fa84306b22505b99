"""Whole sweeps, played with made-up outcomes: every verdict, what stops one, and what goes on where it was."""

from __future__ import annotations

from collections import UserDict
from collections.abc import ValuesView
from dataclasses import replace
from typing import NoReturn

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outerloop_hpc.engine.kind import Conclude, Submit
from outerloop_hpc.engine.spec import StepSpec
from outerloop_hpc.errors import Fault
from outerloop_hpc.evolve.cells import JOB
from outerloop_hpc.evolve.course import outdated
from outerloop_hpc.evolve.gate.policy import Repeats
from outerloop_hpc.evolve.given import CellGiven
from outerloop_hpc.evolve.plan import EvolveKind
from tests.unit.engine.made import decided
from tests.unit.evolve.played import (
    A,
    Answer,
    B,
    C,
    Ending,
    Play,
    answers,
    done,
    lost,
    measured,
    of,
    policy,
    proposal,
    refused,
    work,
)

pytestmark = pytest.mark.unit

BETTER = answers(gain=lambda _: 0.2)


def play(answer: Answer, *, reverse: bool = False, **more: object) -> Play:
    return Play(work(**more)).play(answer, reverse=reverse)


# --- verdicts -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", ["cell", "pair"])
def test_a_better_candidate_is_promoted_at_the_first_look(unit: str) -> None:
    one = play(BETTER, unit=unit)
    assert one.ending()[0] == "promoted"
    assert list(one.state.conclusions) == ["screen-g0", "confirm-g0-look1"]
    assert one.state.ended is not None
    assert one.state.ended.result["overlay"] == A
    assert one.state.ended.result["conclusion"] == "confirm-g0-look1"
    per_pair = 1 if unit == "pair" else 2
    assert len(one.cells(stage="screen")) == 2 * 2 * per_pair
    assert len(one.cells(stage="confirm")) == 2 * 4 * per_pair


def unsteady(cell: CellGiven) -> float:
    """Nothing sure in the first four confirming pairs of a task, then a gain."""
    return 0.2 if cell.stage == "screen" or cell.repeat >= 4 else (0.3, -0.1)[cell.repeat % 2]


def test_a_first_look_that_is_not_sure_is_extended_and_may_be_promoted() -> None:
    one = play(answers(gain=unsteady))
    assert one.ending()[0] == "promoted"
    assert one.state.conclusions["confirm-g0-look1"]["decision"] == "extend"
    assert one.state.conclusions["confirm-g0-look2"]["decision"] == "promote"
    assert len(one.cells(stage="confirm")) == 2 * 8 * 2


def test_a_candidate_that_is_no_better_is_not_confirmed_and_the_incumbent_is_kept() -> None:
    one = play(answers())
    assert one.ending()[0] == "kept"
    assert one.cells(stage="confirm") == []


def test_a_candidate_that_screens_well_and_confirms_badly_is_kept_out() -> None:
    """The screen's pairs never enter the test."""
    one = play(answers(gain=of("screen", 0.3)))
    assert one.ending()[0] == "kept"
    assert one.state.conclusions["confirm-g0-look1"]["decision"] == "keep_incumbent"


def lose_confirming(step: StepSpec, cell: CellGiven) -> Ending:
    return lost() if cell.stage == "confirm" and cell.task == "t0" and cell.repeat % 2 else None


def test_a_task_that_keeps_losing_its_pairs_is_insufficient_and_never_a_promotion() -> None:
    one = play(answers(gain=lambda _: 0.2, cells=lose_confirming), max_tries=1)
    assert one.ending()[0] == "insufficient"


def test_a_screening_whose_pairs_were_lost_is_insufficient_and_not_a_verdict_on_the_candidate() -> None:
    def lose(step: StepSpec, cell: CellGiven) -> Ending:
        return lost() if cell.task == "t0" else None

    one = play(answers(gain=lambda _: 0.2, cells=lose), max_tries=1, tasks=4)
    assert one.ending()[0] == "insufficient"


def test_an_incumbent_that_solves_nothing_is_a_broken_harness() -> None:
    one = play(answers(cells=lambda step, _: measured(step, failed=frozenset({"incumbent"}))))
    assert one.ending()[0] == "harness broken"


def test_an_incumbent_that_solves_nothing_in_confirming_is_a_broken_harness_too() -> None:
    def broken(step: StepSpec, cell: CellGiven) -> Ending:
        return measured(step, failed=frozenset({"incumbent"})) if cell.stage == "confirm" else None

    assert play(answers(gain=lambda _: 0.2, cells=broken)).ending()[0] == "harness broken"


def test_a_pilot_that_could_compare_nothing_ends_and_says_so() -> None:
    """It raised in every pass, and the sweep never ended."""
    one = play(answers(cells=lambda step, _: measured(step, failed=frozenset({"incumbent"}))), pilot=3)
    assert one.ending()[0] == "insufficient"


def test_a_pilot_of_a_later_version_is_a_fault_of_its_run_and_no_crash_of_the_pass() -> None:
    one = Play(work(pilot=3))
    one.play(answers(), rounds=1)
    later = {"schema": "pilot/2", "spread": "in other words"}
    with pytest.raises(Fault, match=r"pilot/2 is newer"):
        EvolveKind().plan(replace(one.view(), steps={}, outcomes={}, conclusions={"pilot": later}))


# --- proposals ------------------------------------------------------------------------------------------------------


def test_three_proposals_in_a_row_that_fail_end_the_sweep() -> None:
    failed = done({}, "failed", "exit 3")
    one = play(
        answers({0: failed, 1: proposal(because="b: not allowed"), 2: {"outcome": "timed_out"}}),
        gate=policy(generations=5),
    )
    word, reason = one.ending()
    assert word == "proposer gave up"
    assert "3 in a row" in reason
    assert len(one.state.steps) == 3


def test_a_sweep_whose_only_proposal_fails_says_so_and_not_that_the_incumbent_was_kept() -> None:
    word, reason = play(answers({0: proposal(because="a: identical to the base")})).ending()
    assert (word, "identical" in reason) == ("proposer gave up", True)


def test_a_candidate_between_failures_starts_their_count_anew() -> None:
    no = proposal(because="no")
    one = play(answers({0: no, 1: no, 2: proposal(A), 3: no, 4: no}), gate=policy(generations=5))
    assert one.ending()[0] == "kept"
    assert len([s for s in one.state.steps.values() if s.spec.job != JOB]) == 5


def test_a_record_of_a_proposal_that_cannot_be_read_is_a_failed_proposal_and_not_a_crash() -> None:
    word, reason = play(answers({0: done({"candidates": "many"})})).ending()
    assert (word, "cannot be read" in reason) == ("proposer gave up", True)


def test_no_more_ideas_end_a_sweep_well() -> None:
    assert play(answers({0: proposal(exhausted=True)}), gate=policy(generations=3)).ending()[0] == "exhausted"


def test_a_proposer_that_said_that_these_were_the_last_is_not_asked_again() -> None:
    one = play(answers({0: proposal(A, exhausted=True)}), gate=policy(generations=3))
    assert one.ending()[0] == "exhausted"
    assert [s.spec.round for s in one.state.steps.values() if s.spec.job != JOB] == [0]


def test_an_overlay_that_was_measured_before_is_not_measured_again() -> None:
    one = play(answers({1: proposal(A, B), 2: proposal(B)}), gate=policy(generations=3), candidates=2)
    assert {cell.overlay for cell in one.cells()} == {"", A, B}
    assert all("g2" not in key for key in one.state.conclusions)
    assert "was measured before" in one.ending()[1]


@pytest.mark.parametrize(("unit", "per_pair"), [("cell", 4), ("pair", 3)])
def test_of_several_candidates_the_best_is_confirmed(unit: str, per_pair: int) -> None:
    gains = {"": 0.0, A: 0.06, B: 0.3, C: -0.1}
    one = play(answers({0: proposal(A, B, C)}, gain=lambda cell: gains[cell.overlay]), unit=unit, candidates=3)
    assert one.ending()[0] == "promoted"
    assert {cell.overlay for cell in one.cells(stage="confirm")} - {""} == {B}
    assert len(one.cells(stage="screen")) == 2 * 2 * per_pair


def test_no_two_stages_share_a_seed_and_arms_of_a_pair_do() -> None:
    one = play(answers({1: proposal(B)}, gain=of("screen", 0.2)), gate=policy(generations=2))
    stages: dict[tuple[str, str], set[int]] = {}
    for step in one.state.steps.values():
        if step.spec.job == JOB:
            cell = CellGiven.model_validate(step.spec.parameters)
            stages.setdefault((step.spec.cause, cell.task), set()).add(cell.seed)
    assert len(stages) == 8
    assert sum(map(len, stages.values())) == len(set().union(*stages.values()))


# --- refills --------------------------------------------------------------------------------------------------------


def test_a_lost_pair_is_replaced_by_one_with_a_fresh_seed() -> None:
    def lose(step: StepSpec, cell: CellGiven) -> Ending:
        return lost() if (cell.stage, cell.task, cell.repeat) == ("confirm", "t0", 1) else None

    one = play(answers(gain=lambda _: 0.2, cells=lose))
    assert one.ending()[0] == "promoted"
    t0, t1 = (one.cells(stage="confirm", task=task) for task in ("t0", "t1"))
    assert sorted({cell.repeat for cell in t0}) == [0, 1, 2, 3, 4]
    assert sorted({cell.repeat for cell in t1}) == [0, 1, 2, 3]
    assert len({cell.seed for cell in t0}) == 5


def test_at_most_half_as_many_pairs_again_are_measured_in_the_place_of_lost_ones() -> None:
    def lose(step: StepSpec, cell: CellGiven) -> Ending:
        return lost() if cell.stage == "confirm" and cell.task == "t0" else None

    one = play(answers(gain=lambda _: 0.2, cells=lose), max_tries=1, tasks=8)
    assert len({cell.repeat for cell in one.cells(stage="confirm", task="t0")}) == 6
    assert one.ending()[0] == "insufficient"


def test_losses_of_the_candidate_alone_are_not_filled_up_into_a_promotion() -> None:
    def lose(step: StepSpec, cell: CellGiven) -> Ending:
        return lost() if cell.stage == "confirm" and cell.overlay and cell.repeat == 0 else None

    one = play(answers(gain=lambda _: 0.2, cells=lose), max_tries=1)
    word, reason = one.ending()
    assert (word, "may cause the faults" in reason) == ("insufficient", True)


# --- what stops a sweep ---------------------------------------------------------------------------------------------


def all_lost(step: StepSpec) -> Ending:
    return lost() if step.job == JOB else proposal(A)


def test_a_stage_that_the_machines_lose_is_cancelled_and_a_person_is_asked() -> None:
    one = Play(work(max_tries=5))
    one.look()
    one.end(BETTER)
    one.look()
    assert one.end(all_lost, most=5) == 5
    assert one.look() == ["cancel.asked", "run.parked"]
    assert "evolve resume" in one.question()


def test_fewer_losses_than_five_stop_nothing() -> None:
    one = Play(work(max_tries=5))
    one.look()
    one.end(BETTER)
    one.look()
    one.end(all_lost, most=4)
    assert one.look() == ["submission.intended"]


def test_the_share_of_losses_is_of_the_present_stage_and_not_of_the_whole_sweep() -> None:
    """A second stage could lose all its cells twice before a fifth of all that was ever measured was lost."""
    one = Play(work(max_tries=5, tasks=10, gate=policy(repeats=Repeats(screen=6, confirm=4, most=8))))
    for _ in range(2):
        one.look()
        one.end(BETTER)
    one.look()
    assert len(one.cells()) == 200
    one.end(all_lost, most=16)
    assert one.look() == ["cancel.asked", "run.parked"]


def test_cells_with_one_try_that_are_all_lost_at_once_are_not_taken_for_a_verdict() -> None:
    one = play(all_lost, max_tries=1)
    assert "were lost to the machines" in one.question()
    one.resume().play(BETTER)
    assert one.ending()[0] == "promoted"


@pytest.mark.parametrize("unit", ["cell", "pair"])
def test_a_candidate_that_always_asks_to_be_tried_later_is_not_taken_for_broken_machines(unit: str) -> None:
    """It stopped every sweep that it was in, and a person was sent to mend a cluster that was well."""

    def later(_: StepSpec, cell: CellGiven) -> Ending:
        return lost(part="candidate") if "candidate" in cell.arms else None

    assert play(answers(cells=later), unit=unit).ending()[0] == "insufficient"


def test_an_incumbent_that_always_asks_to_be_tried_later_stops_the_sweep() -> None:
    def later(_: StepSpec, cell: CellGiven) -> Ending:
        return lost(part="incumbent") if "incumbent" in cell.arms else None

    assert "were lost to the machines" in play(answers(cells=later), unit="pair").question()


def test_a_resumed_sweep_goes_on_without_repeating_what_is_finished() -> None:
    one = Play(work(max_tries=5))
    one.look()
    one.end(BETTER)
    one.look()
    one.end(BETTER, most=2)
    one.end(all_lost, most=5)
    one.look()
    one.end(lambda _: {"outcome": "withdrawn"})
    one.resume().play(BETTER)
    assert one.ending()[0] == "promoted"
    tries = [step.tries for step in one.state.steps.values()]
    assert max(sum(t.outcome == "done" for t in of_step) for of_step in tries) == 1
    assert sum(len(of_step) == 1 for of_step in tries) == len(tries) - 6


def test_a_candidate_that_wants_more_memory_is_not_taken_for_broken_machines() -> None:
    def greedy(step: StepSpec, cell: CellGiven) -> Ending:
        first = {key: one for key, one in memory.items() if key == step.key}
        memory[step.key] = 1
        return {"outcome": "out_of_memory"} if cell.overlay and not first else None

    memory: dict[str, int] = {}
    one = work(max_tries=5)
    roomy = one.tasks[0].resources.model_copy(update={"memory_mb": 100})
    one = one.model_copy(update={"tasks": tuple(t.model_copy(update={"resources": roomy}) for t in one.tasks)})
    assert Play(one).play(answers(gain=lambda _: 0.2, cells=greedy)).ending()[0] == "promoted"


def test_a_job_that_a_person_cancels_stops_the_sweep_until_it_is_resumed() -> None:
    one = Play(work())
    one.look()
    one.end(BETTER)
    one.look()
    one.end(lambda _: {"outcome": "cancelled", "reason": "by uid 7"}, most=1)
    assert one.look() == ["run.parked"]
    assert "somebody cancelled a job of it" in one.question()
    one.resume().play(BETTER)
    assert one.ending()[0] == "promoted"


def test_a_sweep_that_a_person_stops_half_way_ends_like_an_undisturbed_one() -> None:
    one = Play(work())
    one.look()
    one.end(BETTER)
    one.look()
    one.end(BETTER, most=3)
    one.look(decided("park", "p.json"))
    one.end(lambda _: {"outcome": "withdrawn"})
    one.resume().play(BETTER)
    whole = play(BETTER)
    assert one.ending() == whole.ending()
    assert one.state.conclusions == whole.state.conclusions


@pytest.mark.parametrize("unit", ["cell", "pair"])
def test_a_candidate_that_ran_out_of_memory_gets_no_other_chance_by_a_resume(unit: str) -> None:
    """Stopped and resumed, a sweep promoted what it would have kept out otherwise."""
    tries: dict[str, int] = {}

    def hungry(step: StepSpec, cell: CellGiven) -> Ending:
        bad = cell.stage == "confirm" and cell.repeat in {0, 1} and "candidate" in cell.arms
        tries[step.key] = tries.get(step.key, 0) + bad
        return {"outcome": "out_of_memory"} if bad and tries[step.key] == 1 else None

    told = answers(gain=lambda _: 0.2, cells=hungry)
    one = Play(work(unit=unit))
    while not one.cells(stage="confirm"):
        one.look()
        one.end(told) if not one.cells(stage="confirm") else None
    one.end(told, most=len(one.cells(stage="confirm")) - 1)
    one.look(decided("park", "p.json"))
    one.end(lambda _: {"outcome": "withdrawn"})
    one.resume().play(told)
    assert one.ending()[0] != "promoted"
    assert max(tries.values()) == 1


def test_a_resume_measures_nothing_again_that_was_decided_without_it_long_ago() -> None:
    def failing(step: StepSpec, cell: CellGiven) -> Ending:
        return lost() if (cell.stage, cell.repeat, cell.task) == ("screen", 0, "t0") else None

    one = Play(work(gate=policy(generations=2)))
    told = answers({0: {"outcome": "timed_out"}, 1: proposal(A)}, gain=lambda _: 0.2, cells=failing)
    while not one.cells(stage="confirm"):
        one.look()
        one.end(told) if not one.cells(stage="confirm") else None
    before = {key: len(step.tries) for key, step in one.state.steps.items()}
    one.look(decided("park", "p.json"))
    one.end(lambda _: {"outcome": "withdrawn"})
    one.resume().play(told)
    again = {s.spec.cause for key, s in one.state.steps.items() if len(s.tries) > before.get(key, 9)}
    assert (one.ending()[0], again) == ("promoted", {"confirm of generation 1"})


def test_what_a_generation_was_confirmed_without_is_outdated_before_the_next_one_is_proposed() -> None:
    """The next proposal may wait for accounting, and a person stop and resume the sweep meanwhile."""
    one = Play(work())
    while not one.cells(stage="confirm"):
        one.look()
        one.end(BETTER) if not one.cells(stage="confirm") else None
    cell = next(step for step in one.state.steps.values() if step.spec.parameters.get("stage") == "confirm").spec
    view = one.view()
    told = {
        word: replace(view, conclusions={"confirm-g0-look1": {"decision": word}})
        for word in ("extend", "keep_incumbent")
    }
    assert [outdated(told[word], [cell.key]) for word in ("extend", "keep_incumbent")] == [(), (cell.key,)]


class Counted(UserDict[str, StepSpec]):
    """Counts how often it is gone through."""

    gone_through = 0

    def values(self) -> ValuesView[StepSpec]:
        self.gone_through += 1
        return super().values()


def test_thousands_of_cells_that_wait_are_not_each_compared_with_thousands_of_others() -> None:
    """A pass over 3,000 cells that waited took three seconds, and one over 10,000 half a minute."""
    view = SCREENED.view()
    steps = Counted(view.steps)
    assert outdated(replace(view, steps=steps), list(steps)) == ()
    assert steps.gone_through == 1


def test_something_that_is_not_what_was_frozen_halts_at_once_and_withdraws_the_rest() -> None:
    one = Play(work())
    one.look()
    one.end(BETTER)
    one.look()
    one.end(lambda _: refused("candidate is not what was frozen"), most=1)
    assert one.look() == ["cancel.asked", "run.ended"]
    word, reason = one.ending()
    assert (word, "not what was frozen" in reason) == ("halted", True)
    assert one.state.conclusions == {}


def test_a_prepared_overlay_that_is_not_what_was_frozen_halts_and_is_no_failed_proposal() -> None:
    assert play(answers({0: refused("other bytes")})).ending()[0] == "halted"


@pytest.mark.parametrize("change", [{"cell": "0" * 16}, {"seed": 1}, {"arms": []}, {"task": "t9"}])
def test_a_record_of_another_cell_halts_the_sweep(change: dict[str, object]) -> None:
    def foreign(step: StepSpec, cell: CellGiven) -> Ending:
        told = measured(step)
        return {**told, "payload": {**told["payload"], **change}} if cell.repeat == 1 else None

    word, reason = play(answers(gain=lambda _: 0.2, cells=foreign)).ending()
    assert (word, "its record" in reason) == ("halted", True)


# --- conclusions and purity -----------------------------------------------------------------------------------------


def test_a_conclusion_stays_when_the_gate_would_now_compute_otherwise() -> None:
    one = Play(work())
    for _ in range(2):
        one.look()
        one.end(BETTER)
    one.look()
    assert one.state.conclusions["screen-g0"]["decision"] == "confirm"
    view = one.view()
    worse = {
        key: replace(found, payload=measured(view.steps[key], lambda _: -0.5)["payload"])
        for key, found in view.outcomes.items()
        if view.steps[key].job == JOB
    }
    steps = {key: step for key, step in view.steps.items() if key in view.outcomes}
    again = EvolveKind().plan(replace(view, steps=steps, outcomes={**view.outcomes, **worse}))
    assert [type(one) for one in again] == [Submit]
    assert "confirm" in again[0].reason


def pending(one: Play) -> Play:
    """Up to where all cells of the screen are settled and nothing was concluded on them."""
    one.look()
    one.end(answers({0: proposal(A, B)}))
    one.look()
    one.end(answers(gain=lambda _: 0.2))
    return one


@given(st.data())
@settings(max_examples=25, deadline=None)
def test_nothing_is_decided_before_all_cells_of_a_stage_are_settled(data: st.DataObject) -> None:
    view = SCREENED.view()
    cells = [key for key in view.outcomes if view.steps[key].job == JOB]
    known = data.draw(st.sets(st.sampled_from(cells)))
    outcomes = {key: one for key, one in view.outcomes.items() if key in known or view.steps[key].job != JOB}
    made = EvolveKind().plan(replace(view, outcomes=outcomes))
    assert [type(one) for one in made] == ([Conclude] if len(known) == len(cells) else [])


@given(st.permutations(range(13)))
@settings(max_examples=25, deadline=None)
def test_the_order_of_outcomes_and_of_steps_changes_nothing(order: list[int]) -> None:
    view = SCREENED.view()
    keys = list(view.outcomes)
    assert len(keys) == len(order)
    outcomes = {keys[place]: view.outcomes[keys[place]] for place in order}
    steps = {keys[place]: view.steps[keys[place]] for place in reversed(order)}
    assert EvolveKind().plan(replace(view, outcomes=outcomes, steps=steps)) == EvolveKind().plan(view)


def test_the_same_cells_are_wanted_whatever_order_outcomes_come_in() -> None:
    one, other = play(answers(gain=unsteady)), play(answers(gain=unsteady), reverse=True)
    assert set(one.state.steps) == set(other.state.steps)
    assert one.state.conclusions == other.state.conclusions
    assert one.ending() == other.ending()


@given(st.sets(st.integers(0, 31), min_size=1, max_size=31), st.sampled_from(["lost", "timed_out", "withdrawn"]))
@settings(max_examples=20, deadline=None)
def test_what_is_lost_for_good_never_promotes_what_whole_evidence_does_not(places: set[int], word: str) -> None:
    """A candidate that is worse in some pairs: losing any of them must not make it win."""
    number = iter(range(10_000))

    def drop(step: StepSpec, cell: CellGiven) -> Ending:
        if cell.stage == "confirm" and next(number) in places:
            return {"outcome": word, "reason": "gone"}
        return None

    def mixed(cell: CellGiven) -> float:
        return 0.2 if cell.stage == "screen" else (0.02, -0.02)[cell.seed % 2]

    one = play(answers(gain=mixed, cells=drop), max_tries=1)
    assert one.state.ended is None or one.ending()[0] in {"kept", "insufficient"}


def test_a_candidate_with_whose_pairs_jobs_run_out_of_memory_does_not_choose_its_seeds_so() -> None:
    def hungry(_: StepSpec, cell: CellGiven) -> Ending:
        bad = cell.stage == "confirm" and cell.repeat in {0, 2} and cell.task == "t0"
        return {"outcome": "out_of_memory", "reason": "OUT_OF_MEMORY"} if bad else None

    one = play(answers(gain=lambda _: 0.2, cells=hungry), unit="pair")
    assert one.ending()[0] == "insufficient"
    assert "the candidate may cause the faults" in one.ending()[1]


@pytest.mark.parametrize("unit", ["cell", "pair"])
def test_a_candidate_that_asks_to_be_tried_later_where_it_does_badly_is_not_promoted(unit: str) -> None:
    """It would choose the seeds that it is judged on: each pair that it drops is replaced by a fresh one."""

    def choosy(_: StepSpec, cell: CellGiven) -> Ending:
        bad = cell.stage == "confirm" and cell.repeat in {0, 2} and cell.task == "t0" and "candidate" in cell.arms
        return lost(part="candidate") if bad else None

    one = play(answers(gain=lambda _: 0.2, cells=choosy), unit=unit)
    assert one.ending()[0] == "insufficient"
    assert "the candidate may cause the faults" in one.ending()[1]


@pytest.mark.parametrize("unit", ["cell", "pair"])
def test_planning_twice_says_the_same_and_wants_no_settled_cell_again(unit: str) -> None:
    one = Play(work(unit=unit))
    answer = answers(gain=unsteady)
    seen: set[tuple[str, int, str, tuple[str, ...]]] = set()
    for _ in range(12):
        view = one.view()
        first = EvolveKind().plan(view)
        assert first == EvolveKind().plan(view)
        for decision in first:
            new = [s for s in getattr(decision, "steps", ()) if s.key not in view.steps and s.job == JOB]
            for step in new:
                cell = CellGiven.model_validate(step.parameters)
                what = (f"{cell.stage}{cell.task}", cell.repeat, cell.overlay, cell.arms)
                assert what not in seen
                seen.add(what)
        one.look()
        one.end(answer)
    assert one.ending()[0] == "promoted"


def test_a_pass_over_cells_that_are_under_way_reads_nothing() -> None:
    one = pending(Play(work()))
    view = one.view()
    open_ = dict(list(view.outcomes.items())[:-1])

    def never() -> NoReturn:
        raise AssertionError("it was read")

    few = replace(view, outcomes=open_, read_spec=never, read_spend=never, lost_in_a_row={"": 4, "candidate": 9})
    assert EvolveKind().plan(few) == ()


SCREENED = pending(Play(work(candidates=2)))


def test_a_proposal_that_may_cost_money_is_not_tried_as_often_as_a_cell() -> None:
    one = Play(work(max_tries=5)).play(lambda _: lost())
    assert one.ending()[0] == "proposer gave up"
    assert [len(step.tries) for step in one.state.steps.values()] == [2]
