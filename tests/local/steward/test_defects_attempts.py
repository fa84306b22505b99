"""What was counted wrongly elsewhere: what costs an attempt, what pauses a role, what is refused early."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.local.site import document, wait_for
from tests.local.steward.lane import FAIL, NO_CHANGE, OUTAGE, Lane

pytestmark = [pytest.mark.local, pytest.mark.timeout(600)]

_MINUTE = 60.0
_START = "command submitit.local"
#: As a service says it, with the status of any other failure.
_PLAIN_429 = 'sys.stderr.write("Error: 429 Too Many Requests: rate limit reached\\n")\nsys.exit(1)\n'


def lose_a_submission(lane: Lane) -> None:
    """Let a pass die where a submission would have been made; passes that only give up the last one come before."""

    def died() -> bool:
        assert lane.site.driver is not None
        return lane.site.driver.order("--config", str(lane.site.config), "tick", at=_START, when="before").status < 0

    wait_for(died, "a submission came to nothing")


def test_submissions_that_come_to_nothing_never_use_up_an_order(swift: Lane) -> None:
    """Row 2: a submit that failed counted as an attempt; maintenance over three ticks gave the order up for good."""
    swift.measured()
    order = swift.order()
    for _ in range(4):
        lose_a_submission(swift)
    assert (swift.markers(order), swift.sessions()) == (["claimed"], [])
    swift.until_open()
    found = swift.standing(order)
    assert (found.attempts, found.failed, len(swift.sessions())) == (1, 0, 1)


def test_a_pause_begins_when_the_service_refused_and_not_when_the_job_began(swift: Lane) -> None:
    """Row 5: the pause was stamped with the start of the job, so that a refusal at its end paused nothing."""
    swift.script(swift.gated(OUTAGE))
    order = swift.order()
    swift.tick()
    swift.until_bought()
    opened = datetime.now(UTC)
    swift.gate().touch()
    swift.until_told(order, "claimed", "ended:outage")
    (said,) = (json.loads(document(path)) for path in swift.site.state.glob("outages/steward/*.json"))
    assert datetime.fromisoformat(said["at"]) >= opened
    for minutes in (0, 20, 44):
        swift.later(minutes * _MINUTE)
        swift.tick()
    assert len(swift.sessions()) == 1, "the role pauses for 45 minutes"
    swift.later(46 * _MINUTE)
    swift.script(NO_CHANGE)
    swift.until_told(order, "claimed", "ended:outage", "claimed", "ended:answered")
    assert swift.standing(order).failed == 0


def test_a_clock_far_ahead_pauses_nobody(swift: Lane) -> None:
    """Row 5: a refusal from the future is a mistake of a clock, and not a pause without end."""
    folder = swift.site.state / "outages" / "steward"
    folder.mkdir(parents=True)
    said = {"schema": "role-outage/1", "role": "steward", "run": "r", "at": "2099-01-01T00:00:00Z", "outage": "refused"}
    (folder / "r.json").write_text(json.dumps(said))
    swift.script(NO_CHANGE)
    swift.until_told(swift.order(), "claimed", "ended:answered")


def test_a_key_that_is_missing_is_said_by_the_tick_and_no_order_is_claimed(swift: Lane, tmp_path: Path) -> None:
    """Row 15: the job found out, ahead of any record: the claim was held for four hours, and cost an attempt."""
    key = tmp_path / "key"
    swift.configure({"key_file": str(key), "key_env": "API_KEY"})
    order = swift.order()
    assert str(key) in swift.site.cli("tick", expect=(4,)).err
    assert (swift.markers(order), swift.stewards(), swift.comments(order)) == ([], [], [])
    key.write_text("sk-0001\n")
    key.chmod(0o600)
    swift.until_open()
    assert swift.sessions()[0]["env"]["API_KEY"] == "sk-0001"


def test_a_disk_that_is_full_where_the_job_runs_is_a_refusal_that_costs_nothing(swift: Lane) -> None:
    """Row 15: the same, found out by the job: released at once, with a record, and due again after a pause."""
    jobs = swift.site.state / "jobs"
    jobs.mkdir(exist_ok=True)
    (jobs / "session.toml").write_text("min_free_gb = 1e9\n")
    order = swift.order()
    swift.until_told(order, "claimed", "ended:refused")
    assert (swift.endings(), swift.sessions(), swift.standing(order).failed) == (["refused"], [], 0)
    (record, *_) = sorted(swift.stewards()[0].glob("tries/*/*.record.json"))
    assert "free" in json.loads(document(record))["reason"]
    (jobs / "session.toml").unlink()
    swift.tick()
    assert len(swift.stewards()) == 1, "it is not asked for again at once"
    swift.later(11 * _MINUTE)
    swift.until_told(order, "claimed", "ended:refused", "claimed")
    swift.until_open()


def test_a_key_that_is_gone_when_the_job_begins_is_a_refusal_too(swift: Lane, tmp_path: Path) -> None:
    """Row 15: what the tick saw may be gone on the node."""
    key = tmp_path / "key"
    key.write_text("sk-0001\n")
    key.chmod(0o600)
    swift.configure({"key_file": str(key), "key_env": "API_KEY"})
    swift.measured()
    order = swift.order()
    lose_a_submission(swift)
    key.unlink()
    swift.until_told(order, "claimed", "ended:refused")
    assert swift.sessions() == []
    assert "key" in swift.claim_ends()[0]["why"]
    assert swift.standing(order).failed == 0


def test_a_session_that_no_container_can_express_is_a_refusal_and_costs_no_attempt(swift: Lane) -> None:
    """It was noted as begun before its command line was made: three refusals, and the order was stuck."""
    swift.configure({"command": [""]})
    order = swift.order()
    swift.until_told(order, "claimed", "ended:refused")
    assert swift.standing(order).failed == 0
    assert not list(swift.stewards()[0].glob("tries/*/*.begun.json"))


def test_a_validation_that_needs_a_shell_is_said_before_a_session_is_bought(swift: Lane) -> None:
    """`a && b` was refused by the job that ran after the session; `a; b` ran a alone, and passed."""
    lane = replace(swift, validation="true; false")
    lane.configure()
    order = lane.order()
    lane.tick(expect=(4,))
    assert (lane.markers(order), lane.sessions()) == ([], [])


def test_a_plain_429_is_an_outage_and_costs_no_attempt(swift: Lane) -> None:
    """Row 26: it was filed as the steward's own error, and three of them gave the order up."""
    swift.script(_PLAIN_429)
    order = swift.order()
    swift.until_told(order, "claimed", "ended:outage")
    assert swift.standing(order).failed == 0
    (said,) = (json.loads(document(path)) for path in swift.site.state.glob("outages/steward/*.json"))
    assert (said["outage"], "429" in said["text"]) == ("throttled", True)
    swift.tick()
    assert len(swift.sessions()) == 1
    swift.later(6 * _MINUTE)
    swift.script(NO_CHANGE)
    swift.until_told(order, "claimed", "ended:outage", "claimed", "ended:answered")


def test_three_failures_are_enough_until_a_person_asks_once_more(swift: Lane) -> None:
    """Row 2: the cap holds for what really failed, is said once, and a word of a person buys one more."""
    swift.script(FAIL)
    order = swift.order()
    tale = ["claimed", "ended:failed"] * 3
    swift.until_told(order, *tale)
    for _ in range(3):
        swift.tick()
    stuck = [one for one in swift.comments(order) if "This order is stuck" in one.body]
    assert (len(stuck), len(swift.sessions())) == (1, 3)
    swift.forge.say(order, author="ada", body="I have mended the agent.")
    swift.until_told(order, *tale, "claimed", "ended:failed")
    for _ in range(2):
        swift.tick()
    assert len(swift.sessions()) == 4
    assert sum("This order is stuck" in one.body for one in swift.comments(order)) == 2
