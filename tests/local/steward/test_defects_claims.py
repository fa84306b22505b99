"""What claims got wrong elsewhere, told again on a whole site: who holds an order, and what frees it."""

from __future__ import annotations

import json

import pytest

from outerloop_hpc.clock import SystemClock
from outerloop_hpc.engine.evidence import Evidence, Files, Look
from outerloop_hpc.forge.local import LocalForge
from outerloop_hpc.forge.markers import Marker
from outerloop_hpc.slurm.port import Availability
from tests.local.site import wait_for
from tests.local.steward.lane import BRIEF, FAIL, MEND, NO_CHANGE, Lane
from tests.unit.engine.made import ABSENT, Table, Told, evidence, look, queue_row, step

pytestmark = [pytest.mark.local, pytest.mark.timeout(600)]

_HOUR = 3600.0
ANSWERED = Availability.ANSWERED


@pytest.mark.parametrize("asks", ["comment", "label"])
def test_an_honest_no_change_is_an_answer_and_not_bought_again_until_a_person_asks(swift: Lane, asks: str) -> None:
    """Row 1: the run ended without its claim, and the next pass took it for a crash: three sessions for one answer."""
    swift.script(NO_CHANGE)
    order = swift.order()
    swift.until_told(order, "claimed", "ended:answered")
    for _ in range(3):
        swift.tick()
    assert (len(swift.sessions()), swift.claim_ends()[0]["reason"]) == (1, "answered")
    if asks == "comment":
        swift.forge.say(order, author="ada", body="Look at the second fold, please.")
    else:
        swift.forge.relabel(order, author="ada", added=("urgent",), removed=())
    swift.until_told(order, "claimed", "ended:answered", "claimed", "ended:answered")
    for _ in range(2):
        swift.tick()
    assert len(swift.sessions()) == 2, "one word of a person buys one more session"


def test_the_dead_record_of_the_first_attempt_does_not_free_the_second(swift: Lane) -> None:
    """Row 3: records were matched by the order's number, so that attempt 1's record released attempt 2's claim."""
    swift.script(FAIL)
    order = swift.order()
    swift.tick()
    swift.until_over()
    swift.script(swift.gated(MEND))
    swift.until_told(order, "claimed", "ended:failed", "claimed")
    swift.until_bought(2)
    for _ in range(4):
        swift.tick()
    assert swift.markers(order) == ["claimed", "ended:failed", "claimed"]
    first, second = (json.loads((f / "spec.json").read_bytes())["work"]["claim"] for f in swift.stewards())
    held = swift.standing(order).held
    assert held is not None
    assert held.claim == second != first
    swift.gate().touch()
    swift.until_open()
    assert len(swift.sessions()) == 2


def test_a_claim_whose_job_is_there_is_never_released_for_its_age(swift: Lane) -> None:
    """Row 4: no record after four hours released a claim, though jobs wait for days in a queue."""
    swift.script(swift.gated(NO_CHANGE))
    order = swift.order()
    swift.tick()
    swift.until_bought()
    for hours in (5, 30, 500):
        swift.later(hours * _HOUR)
        swift.tick()
    assert swift.markers(order) == ["claimed"]
    assert len(swift.sessions()) == len(swift.stewards()) == 1
    swift.gate().touch()
    swift.until_told(order, "claimed", "ended:answered")


@pytest.mark.parametrize("reason", ["Priority", "QOSMaxGRESPerUser", "JobHeldUser", "Dependency"])
def test_a_job_that_waits_in_the_queue_is_alive_however_long_it_waits(reason: str) -> None:
    """Row 4: the same for a job of Slurm, which has neither record nor claim while it is pending."""
    table = Table(Told((step("s"),)))
    table.start()
    for days in (1, 30, 365):
        table.wait(days * 86_400)
        made = table.plan(Evidence(Files(), Look(ANSWERED, ANSWERED, queue_row("PENDING", reason=reason))))
        assert [line.verdict for line in made.lines] == ["alive"]
    assert table.outcomes("s") == [None]


def test_the_same_number_on_another_target_is_another_order(swift: Lane) -> None:
    """Row 7: any record with the same issue number freed a claim, of whatever repository."""
    source = json.dumps(str(swift.site.source()))
    swift.site.extend(f'[targets.second]\nrepository = {source}\nbenchmarks = ["other"]\n')
    waits = swift.gated("")
    swift.script(BRIEF + "if ' of second' in BRIEF:\n" + "".join(f"    {line}\n" for line in waits.splitlines()) + FAIL)
    second = LocalForge(swift.site.state / "forge" / "second", identity="outerloop", clock=SystemClock())
    order, other = (
        swift.order(),
        second.open_order(
            author="ada", title="The score can be gamed", body="benchmark: score", labels=("outerloop:steward",)
        ),
    )
    assert order == other == "1"
    swift.until_told(order, "claimed", "ended:failed", "claimed", "ended:failed", "claimed", "ended:failed")
    swift.tick()
    assert len(second.comments(other)) == 1, "the claim there is held by its own run, which is alive"
    claims = {json.loads((f / "spec.json").read_bytes())["work"]["claim"] for f in swift.stewards()}
    assert len(claims) == len(swift.stewards()) == 4
    swift.gate().touch()
    wait_for(lambda: bool(swift.tick()) or len(second.comments(other)) > 1, "the other one has ended by its own word")


def test_neither_a_stranger_nor_an_old_claim_counts_as_the_claim_of_an_order(swift: Lane) -> None:
    """Row 8: the job's own check accepted a stranger's comment, and a claim that had been released long ago."""
    swift.script(swift.gated(NO_CHANGE))
    order = swift.order()
    run = "steward-tiny-20260101T000000Z-00000001"
    fake = Marker(claim="a" * 16, run=run, attempt=1)
    swift.forge.say(order, author="mallory", body=f"{fake.line()}\nTaken.")
    swift.forge.comment(order, "old", f"{fake.line()}\nTaken.")
    swift.forge.comment(order, "old-end", f"{fake.model_copy(update={'reason': 'failed'}).line()}\nReleased.")
    swift.tick()
    swift.until_bought()
    held = swift.standing(order).held
    assert held is not None
    assert (held.run, held.attempt) == (swift.stewards()[0].name, 2)
    swift.forge.say(order, author="mallory", body=held.model_copy(update={"reason": "outage"}).line())
    for _ in range(3):
        swift.tick()
    assert swift.standing(order).held == held
    assert len(swift.sessions()) == 1


def test_a_job_that_neither_queue_nor_accounting_knows_yet_is_not_dead(swift: Lane) -> None:
    """Row 9: a missing accounting row counted as dead at once, and a second job was sent after a living one."""
    swift.script(swift.gated(NO_CHANGE))
    swift.measured()
    order = swift.order()
    swift.tick()
    swift.until_bought()
    (events,) = swift.site.local_files()
    events.rename(events.with_name(".hidden"))
    for _ in range(4):
        swift.tick()
    assert swift.markers(order) == ["claimed"]
    assert swift.site.local_files() == [], "nothing was submitted again"
    events.with_name(".hidden").rename(events)
    swift.gate().touch()
    swift.until_told(order, "claimed", "ended:answered")
    assert len(swift.sessions()) == 1


def absent(table: Table) -> bool:
    return table.state.steps["s"].tries[0].absent_since is not None


def test_a_requeued_job_that_is_seen_alive_again_is_not_ended_by_what_was_seen_before() -> None:
    """Row 10: the first COMPLETED sighting of a preempted job ended it, since the kill stamp was never cleared."""
    table = Table(Told((step("s"),)))
    table.start()
    table.plan(evidence(look(ABSENT, "PREEMPTED")))
    assert absent(table)
    table.wait(60).plan(evidence(look("RUNNING", "RUNNING", end=False)))
    assert not absent(table)
    made = table.wait(10_000).plan(evidence(look(ABSENT, "COMPLETED")))
    assert [line.rule for line in made.lines] == ["accounting.settling"]
    assert table.outcomes("s") == [None], "the window begins anew, and it is the same try"
    table.wait(61).plan(evidence(look(ABSENT, "COMPLETED")))
    assert table.outcomes("s")[0] == "lost"


def test_an_unreadable_record_blocks_its_own_order_alone_and_is_shown(swift: Lane) -> None:
    """Row 11: a record of no bytes was skipped in silence, its lane looked free, and saving that run raised."""
    swift.configure({"live": 2})
    swift.script(swift.gated(NO_CHANGE))
    order = swift.order()
    swift.tick()
    swift.until_bought()
    (run,) = swift.stewards()
    (swift.submission(run) / "e0000.record.json").touch()
    swift.gate().touch()
    wait_for(swift.site.jobs_gone, "the session is over")
    later = swift.order("Another one")
    swift.until_told(later, "claimed", "ended:answered")
    ended = swift.site.cli("tick", expect=(4,))
    assert run.name in ended.err
    assert "record.json" in ended.err
    assert (swift.markers(order), len(swift.stewards())) == (["claimed"], 2)
    swift.site.cli("runs", "end", run.name, "--reason", "its disk was full")
    swift.until_told(order, "claimed", "ended:answered")
    assert swift.site.events(run)[-1]["type"] == "run.closed"
    assert "run.ended" in {event["type"] for event in swift.site.events(run)}


def test_sightings_say_who_looked_so_that_another_host_adds_its_skew() -> None:
    """Row 10: ages are of one clock; a first sighting by another host counts later, never sooner."""
    table = Table(Told((step("s"),)))
    table.start()
    table.plan(evidence(look(ABSENT, "FAILED")))
    table.host = "tick2"
    table.wait(61).plan(evidence(look(ABSENT, "FAILED")))
    assert table.outcomes("s") == [None]
    table.wait(300).plan(evidence(look(ABSENT, "FAILED")))
    assert table.outcomes("s")[0] == "lost"
