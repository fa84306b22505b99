"""Waiting for one steward run: as long as machines have something to do, and no longer."""

from __future__ import annotations

import pytest

from tests.local.steward.lane import Lane

pytestmark = pytest.mark.local


def test_following_a_run_stops_before_its_open_change_which_waits_for_a_person(lane: Lane) -> None:
    order = lane.order()
    lane.tick()
    (run,) = (folder.name for folder in lane.stewards())
    lane.site.cli("advance", run, "--wait", "500", expect=(20,))
    (change,) = lane.changes()
    assert "proposes" in lane.comments(order)[-1].body, "what it had to say has been said"
    lane.forge.merge(change.change_id, author="ada", repository=str(lane.site.source()))
    lane.site.cli("advance", run, "--wait", "500", expect=(0,))
    assert lane.endings() == ["merged"]
