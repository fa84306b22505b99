"""Which evidence the next proposer is given: bounded, the telling rows first, and nothing that the machines did."""

from __future__ import annotations

from typing import Any

import pytest

from outerloop_hpc.evolve.findings import ArmFound, ProposalFound, Refused
from outerloop_hpc.evolve.given import CellGiven, ProposeGiven
from outerloop_hpc.evolve.selection import MOST_ROWS, given
from outerloop_hpc.evolve.work import AskTell, Parameter
from tests.unit.evolve.past import POLICY, A, B, Past, arm, candidate, costs, work

pytestmark = pytest.mark.unit

BETTER = costs(base=10.0, a=8.0, b=9.9)
WORSE = costs(base=10.0, a=10.0, b=11.0)


def screened(found: Any = WORSE, **more: Any) -> Past:
    """One generation, with two candidates that were screened."""
    past = Past(work(**more))
    past.candidates(0, A, B)
    past.screen(0, [A, B], found)
    return past


def told(past: Past, generation: int = 1) -> ProposeGiven:
    return given(past.work, past.view, generation)


def test_the_first_proposal_is_told_nothing() -> None:
    past = Past()
    assert told(past, 0) == ProposeGiven(generation=0, count=2)


def test_what_failed_comes_first_by_its_place_and_then_what_took_longest() -> None:
    def found(cell: CellGiven, name: str) -> ArmFound:
        if name == "candidate" and cell.overlay == B:
            return arm(name, None, overlay=cell.overlay)
        return arm(name, 10.0 + cell.repeat + (5 if cell.task == "two" else 0), overlay="")

    rows = told(screened(found)).rows
    failed = [(row["task"], row["arm"], row["repeat"]) for row in rows if row["word"] == "failed"]
    assert failed == [
        ("one", "candidate", 0),
        ("one", "candidate", 1),
        ("two", "candidate", 0),
        ("two", "candidate", 1),
    ]
    assert [row["word"] for row in rows[:4]] == ["failed"] * 4
    costly = [row["cpu_s"] for row in rows[4:]]
    assert costly == sorted(costly, reverse=True)
    assert costly[0] == 16.0


def test_a_run_that_was_measured_and_found_wrong_is_not_solved() -> None:
    def found(cell: CellGiven, name: str) -> ArmFound:
        wrong = (cell.task, cell.repeat, cell.overlay, name) == ("two", 1, A, "candidate")
        return arm(name, 10.0, overlay=cell.overlay, success=not wrong)

    first = told(screened(found)).rows[0]
    assert (first["task"], first["repeat"], first["success"], first["word"]) == ("two", 1, False, "measured")


def test_seconds_stand_in_where_no_cpu_time_was_measured() -> None:
    def found(cell: CellGiven, name: str) -> ArmFound:
        return arm(name, 1.0, cpu_s=0.0, seconds=100.0 if cell.task == "two" and cell.repeat == 1 else 1.0)

    assert [row["task"] for row in told(screened(found)).rows[:4]] == ["two"] * 4


def test_rows_have_a_bound_and_what_had_no_room_is_said() -> None:
    found = told(screened())
    assert len(found.rows) == MOST_ROWS
    assert found.dropped == ("4 more rows: 12 have room, first what was not solved, then what took longest",)


def test_a_cell_that_the_machines_lost_is_no_row_and_is_counted() -> None:
    def found(cell: CellGiven, name: str) -> ArmFound | None:
        return None if cell.task == "two" else arm(name, 10.0, overlay=cell.overlay)

    said = told(screened(found))
    assert {row["task"] for row in said.rows} == {"one"}
    assert said.dropped[0].startswith("4 cells without a result")


def test_a_candidate_that_alone_ran_out_of_memory_twice_is_told_as_its_failure() -> None:
    past = Past(work(unit="cell"))
    past.candidates(0, A)
    _, name = past.measure(0, "screen", [A], 2, costs(base=10.0, a=9.0))
    step = next(s for s in past.state.steps.values() if s.spec.parameters.get("overlay") == A)
    lost = step.tries[-1].model_copy(update={"outcome": "out_of_memory", "reason": "it was killed"})
    steps = past.state.steps | {step.spec.key: step.model_copy(update={"tries": (lost,), "payload": {}})}
    past.state = past.state.model_copy(update={"steps": steps})
    row = told(past).rows[0]
    assert (row["word"], row["reason"], row["overlay"]) == ("out-of-memory", "it was killed", A)
    assert row["log"]["submission"] == name


def test_rows_of_the_generation_itself_are_not_told() -> None:
    past = screened()
    assert {row["generation"] for row in told(past, 1).rows} == {0}
    assert given(past.work, past.view, 0).rows == ()


def test_a_row_names_its_log_its_seed_and_its_tasks_kind() -> None:
    past = screened()
    steps = {step.spec.key: step for step in past.state.steps.values() if step.spec.job == "cell"}
    for row in told(past).rows:
        assert row["kind"] == "small"
        element = past.state.submissions[row["log"]["submission"]].elements[row["log"]["index"]]
        cell = steps[element.step].spec.parameters
        assert (cell["task"], cell["repeat"], cell["seed"]) == (row["task"], row["repeat"], row["seed"])
        assert row["overlay"] == (cell.get("overlay", "") if row["arm"] == "candidate" else "")


def test_the_end_of_a_long_reason_and_the_gates_own_metrics_are_kept() -> None:
    many = {f"m{number:03}": 1.0 for number in range(100)}

    def found(cell: CellGiven, name: str) -> ArmFound:
        one = arm(name, 10.0, overlay=cell.overlay, reason="x" * 1000 + "the end")
        return one.model_copy(update={"metrics": {**many, "zz": 1.0, "cost": 10.0}})

    said = told(screened(found))
    row = said.rows[0]
    assert len(row["reason"]) == 600
    assert row["reason"].endswith("the end")
    assert len(row["metrics"]) == 32
    assert row["metrics"]["cost"] == 10.0
    assert any("metrics beyond 32" in one for one in said.dropped)


def test_each_decision_is_summed_up_with_at_most_three_reasons() -> None:
    past = screened(BETTER)
    said = past.confirm(0, A, costs(base=10.0, a=10.5))
    screening, confirming = told(past).gates
    assert (screening["stage"], screening["decision"], screening["overlay"]) == ("screen", "confirm", A)
    assert len(screening["reasons"]) == 3
    assert (confirming["stage"], confirming["look"], confirming["decision"]) == ("confirm", 1, said.decision)
    assert confirming["reasons"] == list(said.reasons[:3])
    assert confirming["gain"] == said.gain


def test_the_prior_proposal_is_the_confirmed_one_and_why_it_lost() -> None:
    past = screened(BETTER)
    said = past.confirm(0, A, costs(base=10.0, a=10.5))
    prior = told(past).prior
    assert (prior.digest, prior.reason) == (A, "; ".join(said.reasons))


def test_where_nothing_was_confirmed_the_prior_is_the_candidate_that_came_closest() -> None:
    past = screened(costs(base=10.0, a=12.0, b=11.0))
    prior = told(past).prior
    assert prior.digest == B
    assert "is below" in prior.reason


def test_a_refused_proposal_is_told_with_its_reason() -> None:
    past = Past()
    past.proposal(0, ProposalFound(refused=(Refused(reason="dirs[0]: same as base", kind="invalid-overlay"),)))
    said = told(past)
    assert (said.prior.digest, said.prior.reason) == ("", "dirs[0]: same as base")
    assert [(one["decision"], one["reasons"]) for one in said.gates] == [("refused", ["dirs[0]: same as base"])]


def test_a_proposal_that_timed_out_is_told() -> None:
    past = Past()
    past.proposal(0, None, "it reached its walltime")
    assert told(past).prior.reason == "timed out: it reached its walltime"


def test_an_overlay_that_comes_back_is_told_as_measured_before() -> None:
    past = screened()
    past.candidates(1, A)
    assert told(past, 2).prior.reason == "dirs[a]: was measured before"


def test_a_search_is_told_what_each_point_gained_and_which_ones_gave_nothing() -> None:
    search = AskTell(template={"solver": "{{x}}"}, parameters=(Parameter(name="x", kind="int", low=1, high=9),))
    past = Past(work(proposer=search))
    refused = Refused(reason="no", kind="invalid-overlay", values={"x": 1})
    found = (candidate(A, values={"x": 3}), candidate(B, values={"x": 2}))
    past.proposal(0, ProposalFound(candidates=found, refused=(refused,)))
    said = past.screen(0, [A, B], costs(base=10.0, a=8.0, b=None))
    points = told(past).told
    assert [dict(one.values) for one in points] == [{"x": 3}, {"x": 2}, {"x": 1}]
    assert points[0].gain == next(one.gain for one in said.candidates if one.digest == A)
    assert points[0].gain is not None
    assert (points[1].gain, points[2].gain) == (None, None)


def test_only_a_search_is_told_points() -> None:
    past = Past()
    past.proposal(0, ProposalFound(candidates=(candidate(A, values={"x": 3}),)))
    assert told(past).told == ()


def test_more_decisions_than_have_room_are_dropped_from_the_oldest_on() -> None:
    policy = POLICY.model_copy(update={"generations": 70})
    past = Past(work(gate=policy))
    for generation in range(70):
        past.proposal(generation, ProposalFound(refused=(Refused(reason=f"no {generation}", kind="proposer-failed"),)))
    said = told(past, 70)
    assert [one["generation"] for one in said.gates] == list(range(6, 70))
    assert said.dropped == ("6 earlier decisions: only the newest 64 have room",)


def test_the_same_past_is_told_in_the_same_words() -> None:
    assert told(screened(BETTER)).model_dump_json() == told(screened(BETTER)).model_dump_json()
