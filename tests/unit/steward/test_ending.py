"""What the ending of a run publishes: the end of its claim, a pause of its role, the new ruler's first point."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from outerloop_hpc.agents.pauses import RoleOutage
from outerloop_hpc.engine import events as ev
from outerloop_hpc.engine.claims import ClaimEnded, ended_path
from outerloop_hpc.engine.state import RunState
from outerloop_hpc.measure.history import Point
from outerloop_hpc.steward import ending
from outerloop_hpc.steward.findings import SessionFound
from outerloop_hpc.steward.steps import session_step, trial_steps
from outerloop_hpc.steward.work import work_of
from tests.unit.engine.made import T0, after, fold, intended
from tests.unit.steward.made import CANDIDATE, RUN, TREE, found, spec

pytestmark = pytest.mark.unit

A = "ol.iris.session.0001"


def over(
    word: str, session: SessionFound | None, result: dict[str, Any] | None = None, values: tuple[float, ...] = ()
) -> RunState:
    """Return the state of a run that ended an hour after its order was taken."""
    made = spec()
    work = work_of(made)
    steps = (session_step(made, work), *(trial_steps(made, work, found()) if values else ()))
    measured = [step for step in steps if step.job == "measure"]
    told: list[ev.Event] = [ev.RunStarted(spec_digest="d"), ev.StepsWanted(steps=steps, reason="x")]
    told.append(intended(A, *((step.key, 1) for step in steps)))
    if session is not None:
        payload = session.model_dump(mode="json", exclude_none=True)
        told.append(_done(steps[0].key, payload))
    told += [_done(step.key, {"value": value, "node": "n1"}) for step, value in zip(measured, values, strict=False)]
    state = fold(RunState(run=RUN), *told)
    return fold(state, ev.RunEnded(ending=word, reason="because", result=result or {}), at=after(3600))


def _done(key: str, payload: dict[str, Any]) -> ev.TryEnded:
    return ev.TryEnded(
        step=key,
        try_number=1,
        outcome="done",
        rule="record.final",
        reason="",
        evidence={},
        record_outcome="completed",
        payload=payload,
    )


def documents(state: RunState) -> dict[str, bytes]:
    return dict(ending.documents(spec(), work_of(spec()), state))


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("merged", "published"),
        ("rejected", "published"),
        ("answered", "answered"),
        ("operator", "answered"),
        ("outage", "outage"),
        ("refused", "refused"),
        ("aborted", "failed"),
        ("invalid", "failed"),
        ("out-of-scope", "failed"),
        ("budget-exhausted", "failed"),
        ("a word of a later version", "failed"),
    ],
)
def test_every_ending_ends_the_claim_by_one_reason(word: str, reason: str) -> None:
    found_documents = documents(over(word, None))
    said = ClaimEnded.model_validate_json(found_documents[ended_path("iris", "steward/7/1")])
    assert (said.reason, said.ending, said.run, said.why) == (reason, word, RUN, "because")
    assert said.claim == work_of(spec()).claim
    assert len(found_documents) == 1


def test_nothing_is_published_of_a_run_that_goes_on() -> None:
    assert documents(RunState(run=RUN)) == {}


def test_a_refusal_pauses_the_role_from_when_it_happened() -> None:
    at = T0 + timedelta(minutes=50)
    state = over("outage", found("outage", outage="throttled", refused_at=at))
    path = f"outages/steward/{RUN}.json"
    said = RoleOutage.model_validate_json(documents(state)[path])
    assert (said.at, said.outage, said.run) == (at, "throttled", RUN)


def test_a_refusal_without_a_time_counts_from_when_it_was_heard_of() -> None:
    said = documents(over("outage", found("outage", outage="refused")))[f"outages/steward/{RUN}.json"]
    assert RoleOutage.model_validate_json(said).at == after(3600)


def test_an_outage_that_nobody_can_date_or_name_pauses_nothing() -> None:
    assert len(documents(over("outage", found("outage")))) == 1


def test_a_merged_change_begins_the_history_of_the_new_ruler() -> None:
    state = over("merged", found(), {"values": {"11": 4.0, "12": 6.0}}, values=(4.0, 6.0))
    said = documents(state)[f"results/iris/score/{RUN}.json"]
    point = Point.model_validate_json(said)
    assert (point.rebased, point.head, point.median, point.commit, point.tree) == (True, False, 5.0, CANDIDATE, TREE)
    assert [sample.seed for sample in point.samples] == [11, 12]
    assert point.benchmark == "score", "under the name that it was measured by, whatever it is called now"


@pytest.mark.parametrize("word", ["rejected", "invalid", "operator"])
def test_what_was_not_merged_is_no_history(word: str) -> None:
    state = over(word, found(), {"values": {"11": 4.0}}, values=(4.0, 6.0))
    assert not any(path.startswith("results/") for path in documents(state))


def test_doing_it_again_gives_the_same_bytes() -> None:
    state = over("merged", found(), {"values": {"11": 4.0, "12": 6.0}}, values=(4.0, 6.0))
    assert documents(state) == documents(state)
