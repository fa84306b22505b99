"""How a claim ends: each rule of it, on a whole site or on the decision table."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from outerloop_hpc.engine import events as ev
from outerloop_hpc.engine.plan import Unbound
from outerloop_hpc.engine.spec import RunSpec
from outerloop_hpc.engine.submissions import job_name
from outerloop_hpc.forge.markers import read
from outerloop_hpc.steward.work import claim_id
from tests.local.site import document
from tests.local.steward.lane import BUDGET, CHEAT, FAIL, MEND, NO_CHANGE, OUTAGE, Lane
from tests.unit.engine.made import ABSENT, DOWN, POLICY, Table, Told, evidence, look, step

pytestmark = [pytest.mark.local, pytest.mark.timeout(600)]

#: By the ending: the script, the reason, and whether it costs an attempt.
ENDINGS = {
    "answered": (NO_CHANGE, "answered", 0),
    "aborted": (FAIL, "failed", 1),
    "budget-exhausted": (BUDGET, "failed", 1),
    "out-of-scope": (CHEAT, "failed", 1),
    "invalid": ('(WORK / "evaluate.py").write_text("broken")\nend(0, "done")\n', "failed", 1),
    "outage": (OUTAGE, "outage", 0),
}


def ended(lane: Lane, run: Path) -> dict[str, Any]:
    (event,) = [e for e in lane.site.events(run) if e["type"] == "run.ended"]
    return event


@pytest.mark.parametrize("ending", list(ENDINGS))
def test_a_claim_ends_by_an_explicit_reason_of_the_reconciler_and_only_failed_costs(swift: Lane, ending: str) -> None:
    """§6: ended only by an explicit reason, written by the reconciler with its evidence; only ``failed`` costs."""
    script, reason, cost = ENDINGS[ending]
    swift.script(swift.gated(script))
    order = swift.order()
    swift.tick()
    swift.until_bought()
    swift.tick()
    assert (swift.claim_ends(), swift.markers(order)) == ([], ["claimed"]), "nothing ends it while its job is alive"
    swift.gate().touch()
    # No pass but these ends it: what the job writes is a record, and a reason is the reconciler's.
    swift.site.until_closed()
    (over,) = swift.claim_ends()
    run = swift.stewards()[0]
    event = ended(swift, run)
    assert (over["reason"], over["ending"], over["why"]) == (reason, ending, event["reason"])
    assert (over["run"], over["claim"]) == (run.name, claim_id("tiny", run.name))
    assert event["reason"]
    tries = [e for e in swift.site.events(run) if e["type"] == "try.ended"]
    assert tries
    assert all(e["evidence"] and e["rule"] for e in tries)
    found = swift.standing(order)
    assert (swift.markers(order), found.failed, found.last) == (["claimed", f"ended:{reason}"], cost, reason)


@pytest.mark.parametrize("merged", [True, False])
def test_what_people_make_of_a_change_is_published_and_costs_nothing(swift: Lane, merged: bool) -> None:
    """§6: ``published``, whether they merge or reject it."""
    order = swift.order()
    change = swift.until_open()
    assert swift.markers(order) == ["claimed"]
    if merged:
        swift.forge.merge(change.change_id, author="ada", repository=str(swift.site.source()))
    else:
        swift.forge.close_change(change.change_id, author="ada", body="no")
    swift.site.until_closed()
    (over,) = swift.claim_ends()
    assert (over["reason"], over["ending"]) == ("published", "merged" if merged else "rejected")
    assert swift.standing(order).failed == 0


def test_one_id_joins_marker_run_jobs_and_records(swift: Lane) -> None:
    """§6: the claim id joins marker, run, job name and record; nothing is joined on the issue number alone."""
    order = swift.order()
    swift.until_open()
    (run,) = swift.stewards()
    spec = RunSpec.model_validate_json(document(run / "spec.json"))
    marker = read(swift.comments(order)[0].body)
    assert marker is not None
    assert (marker.run, marker.claim) == (run.name, claim_id("tiny", run.name))
    assert spec.work["claim"] == marker.claim
    (claim,) = [
        said
        for path in swift.site.state.glob("claims/*/*.json")
        if (said := json.loads(document(path)))["order"].startswith("steward/")
    ]
    assert (claim["spec"]["run"], claim["order"]) == (run.name, f"steward/{order}/1")
    records = [json.loads(document(path)) for path in sorted(run.glob("tries/*/*.record.json"))]
    assert len(records) == 4
    intended = [e for e in swift.site.events(run) if e["type"] == "submission.intended"]
    for event in intended:
        job = event["name"].split(".")[2]
        elements = [ev.Element.model_validate(element) for element in event["elements"]]
        assert event["name"] == job_name(marker.run, "tiny", job, elements), "the job's name follows from the run"
    assert {record["run"] for record in records} == {marker.run}
    assert {record["submission"] for record in records} == {event["name"] for event in intended}


def test_what_cannot_be_read_keeps_holding_its_order(swift: Lane) -> None:
    """§6: an unreadable record keeps holding its order."""
    swift.script(swift.gated(NO_CHANGE))
    order = swift.order()
    swift.tick()
    swift.until_bought()
    (run,) = swift.stewards()
    path = swift.submission(run) / "e0000.record.json"
    path.write_bytes(b"\xff\x00")
    swift.gate().touch()
    swift.until_over()
    for hours in (0, 5, 100):
        swift.later(3600.0 * hours)
        assert str(path) in swift.site.cli("tick", expect=(4,)).err
    assert (swift.markers(order), swift.claim_ends(), len(swift.sessions())) == (["claimed"], [], 1)


def test_stamps_are_taken_when_things_happen(swift: Lane) -> None:
    """§6: stamps are taken when the thing happens: not when its job began, nor when a pass heard of it."""
    swift.script(swift.gated(OUTAGE))
    order = swift.order()
    swift.tick()
    swift.until_bought()
    before = datetime.now(UTC)
    swift.gate().touch()
    swift.until_over()
    after = datetime.now(UTC)
    swift.later(3600.0)
    swift.settle()
    assert swift.markers(order) == ["claimed", "ended:outage"]
    (outage,) = (json.loads(document(path)) for path in swift.site.state.glob("outages/steward/*.json"))
    assert before <= datetime.fromisoformat(outage["at"]) <= after
    (over,) = swift.claim_ends()
    assert datetime.fromisoformat(over["at"]) > after, "the claim ends when the reconciler says so"
    (record,) = (json.loads(document(path)) for path in swift.stewards()[0].glob("tries/*/*.record.json"))
    assert datetime.fromisoformat(record["started_at"]) < before < datetime.fromisoformat(record["ended_at"])


DEAD = look(ABSENT, "FAILED")


def lost(table: Table) -> bool:
    return table.outcomes("s")[0] is not None


def begun() -> Table:
    table = Table(Told((step("s"),)))
    table.start()
    return table


@pytest.mark.parametrize("seen", [look(ABSENT, DOWN), look(DOWN, "FAILED"), look(DOWN, DOWN), look(DOWN, ABSENT)])
def test_absent_is_dead_only_when_accounting_and_the_queue_have_answered(seen: Any) -> None:
    """§6: "absent" counts only when accounting answered, and the queue lacks the job too."""
    table = begun()
    for _ in range(5):
        table.wait(100_000).plan(evidence(seen))
    assert not lost(table)


def test_absent_is_dead_only_when_two_passes_agree() -> None:
    """§6: two passes agree: the first sighting ends nothing, however late it comes."""
    table = begun().wait(1_000_000)
    table.plan(evidence(DEAD))
    assert not lost(table)
    table.plan(evidence(DEAD))
    assert not lost(table), "nor does a second one at the same moment"
    table.wait(POLICY.confirm_s + 1).plan(evidence(DEAD))
    assert lost(table)


def test_a_job_without_any_row_is_asked_about_and_never_ended_by_itself() -> None:
    """§6: and where neither knows it a person is asked, once it is older than any lag."""
    table = begun()
    rules = [line.rule for line in table.plan(evidence(look(ABSENT, ABSENT))).lines]
    assert rules == ["nothing.yet"]
    table.wait(POLICY.grace_s + 1).plan(evidence(look(ABSENT, ABSENT)))
    assert (lost(table), table.phase()) == (False, "parked")


def test_a_submission_is_given_up_only_when_it_is_older_than_the_lag() -> None:
    """§6: the submission is older than the lag bound, and both sources answered."""
    table = Table(Told((step("s"),)))
    table.plan()
    (name,) = table.state.submissions
    unknown, silent = {name: Unbound(None, answered=True)}, {name: Unbound(None, answered=False)}
    assert table.wait(POLICY.submit_lag_s - 1).plan(unbound=unknown).abandon == ()
    assert table.wait(2).plan(unbound=silent).abandon == ()
    assert table.wait(100_000).plan(unbound=silent).abandon == ()
    assert table.plan(unbound=unknown).abandon == (name,)


def test_a_claim_is_not_released_while_its_session_is_lost_and_found(swift: Lane) -> None:
    """§6: the whole of it on a site: the job is alive, unknown, alive again, and only its record ends the claim."""
    swift.measured()
    swift.script(swift.gated(MEND))
    order = swift.order()
    swift.tick()
    swift.until_bought()
    (events,) = swift.site.local_files()
    for _ in range(2):
        events.rename(events.with_name(".hidden"))
        swift.tick()
        events.with_name(".hidden").rename(events)
        swift.tick()
    assert (swift.markers(order), swift.claim_ends()) == (["claimed"], [])
    swift.gate().touch()
    swift.until_open()
    assert len(swift.sessions()) == 1
