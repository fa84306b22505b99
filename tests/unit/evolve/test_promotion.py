"""What was promoted, on which evidence, and when it may be applied."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from outerloop_hpc.cli.gaterows import gate_rows
from outerloop_hpc.engine.state import RunState
from outerloop_hpc.errors import Fault
from outerloop_hpc.evolve.gate.decide import recompute
from outerloop_hpc.evolve.gate.decision import GateDecision
from outerloop_hpc.evolve.promotion import NotApplicable, Unfounded, applicable, documents, promotion
from outerloop_hpc.evolve.reporting.report import report
from outerloop_hpc.evolve.work import dump
from tests.unit.evolve.played import RUN, A, B, Play, answers, policy, proposal, work

pytestmark = pytest.mark.unit

PROMOTED = Play(work()).play(answers(gain=lambda _: 0.2))
SPEC, STATE = PROMOTED.table.spec, PROMOTED.state
LOOK = "confirm-g0-look1"


def decided(**change: Any) -> RunState:
    """The state with something else in the decision."""
    return STATE.model_copy(update={"conclusions": {**STATE.conclusions, LOOK: {**STATE.conclusions[LOOK], **change}}})


def test_a_promotion_binds_all_that_it_holds_for_and_may_be_applied() -> None:
    found = applicable(SPEC, STATE, PROMOTED.table.now)
    assert (found.binding.overlay, found.binding.document, found.binding.base) == (A, "d", {"solver": "0"})
    assert sorted(found.binding.tasks) == ["t0", "t1"]
    assert found.expires_at - found.decided_at == timedelta(days=90)


def test_a_sweep_that_promoted_nothing_has_nothing_to_apply_and_says_how_it_ended() -> None:
    kept = Play(work()).play(answers())
    assert promotion(kept.table.spec, kept.state) is None
    with pytest.raises(NotApplicable, match="ended as 'kept'"):
        applicable(kept.table.spec, kept.state, kept.table.now)


def test_a_sweep_under_way_has_nothing_to_apply() -> None:
    with pytest.raises(NotApplicable, match="has not ended yet"):
        applicable(SPEC, RunState(run=RUN), PROMOTED.table.now)


def test_evidence_that_has_expired_is_not_applied() -> None:
    late = PROMOTED.table.now + timedelta(days=91)
    with pytest.raises(NotApplicable, match="expired"):
        applicable(SPEC, STATE, late)


def test_evidence_from_the_future_is_not_applied() -> None:
    assert STATE.ended is not None
    with pytest.raises(NotApplicable, match="set the clock"):
        applicable(SPEC, STATE, STATE.ended.at - timedelta(hours=2))


@pytest.mark.parametrize("change", [{"gain": 0.9}, {"p": 0.5}, {"reasons": ["because"]}])
def test_a_decision_that_does_not_follow_from_its_pairs_is_a_fault(change: dict[str, Any]) -> None:
    with pytest.raises(Fault, match="does not follow from its pairs"):
        applicable(SPEC, decided(**change), PROMOTED.table.now)


def test_a_decision_without_some_of_its_pairs_is_a_fault() -> None:
    rows = STATE.conclusions[LOOK]["rows"][1:]
    with pytest.raises(Fault, match="does not follow"):
        applicable(SPEC, decided(rows=rows), PROMOTED.table.now)


def test_a_promotion_of_another_overlay_than_its_cells_measured_is_a_fault() -> None:
    """The loser of the screening would be applied on the winner's evidence."""
    one = Play(work(candidates=2)).play(answers({0: proposal(A, B)}, gain=lambda cell: 0.2 * (cell.overlay == A)))
    ended = one.state.ended
    assert ended is not None
    assert applicable(one.table.spec, one.state, one.table.now).binding.overlay == A
    other = ended.model_copy(update={"result": {**ended.result, "overlay": B}})
    with pytest.raises(Unfounded, match=f"not what the cells of overlay {B[:12]} found"):
        applicable(one.table.spec, one.state.model_copy(update={"ended": other}), one.table.now)


def test_pairs_that_no_cell_found_are_a_fault_although_the_decision_follows_from_them() -> None:
    made = GateDecision.model_validate(STATE.conclusions[LOOK])
    first = made.rows[0].pair
    better = first.model_copy(
        update={
            "candidate": first.candidate.model_copy(update={"metrics": {"cost": first.candidate.metrics["cost"] / 2}})
        }
    )
    rows = (made.rows[0].model_copy(update={"pair": better}), *made.rows[1:])
    forged = recompute(made.model_copy(update={"rows": rows}))
    assert forged.decision == "promote"
    with pytest.raises(Unfounded, match="not what the cells"):
        applicable(SPEC, decided(**forged.model_dump(mode="json", by_alias=True)), PROMOTED.table.now)


@pytest.mark.parametrize("change", [{"schema": "gate-decision/2"}, {"rows": "none"}, {"decision": "perhaps"}])
def test_a_decision_that_cannot_be_read_is_a_fault_and_no_traceback(change: dict[str, Any]) -> None:
    state = decided(**change)
    for reads in (
        lambda: applicable(SPEC, state, PROMOTED.table.now),
        lambda: list(gate_rows(state, recompute=True)),
        lambda: report(SPEC, state),
    ):
        with pytest.raises(Fault, match=f"{LOOK}: not a readable gate-decision document"):
            reads()


def test_a_promotion_without_its_decision_is_a_fault() -> None:
    state = STATE.model_copy(update={"conclusions": {"screen-g0": STATE.conclusions["screen-g0"]}})
    with pytest.raises(Unfounded, match="is not in the journal any more"):
        applicable(SPEC, state, PROMOTED.table.now)


@pytest.mark.parametrize("change", [{"gate": policy(level=0.01)}, {"document": "e"}, {"tasks": 3}])
def test_a_decision_on_other_terms_than_the_sweep_s_is_a_fault(change: dict[str, Any]) -> None:
    other = SPEC.model_copy(update={"work": dump(work(**change))})
    with pytest.raises(Fault, match="not made on this sweep's terms"):
        applicable(other, STATE, PROMOTED.table.now)


def test_every_conclusion_is_published_and_the_promotion_beside_them() -> None:
    found = documents(SPEC, STATE)
    folder = f"results/evolve/t/{RUN}"
    assert sorted(found) == [f"{folder}/{name}.json" for name in (LOOK, "promotion", "screen-g0")]
    assert json.loads(found[f"{folder}/promotion.json"])["decision"]["decision"] == "promote"
    assert documents(SPEC, STATE) == found
