"""A node whose scratch is too small for a session: nothing is bought there, the node is blamed, no attempt is lost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.local.site import CHECKOUT, document
from tests.local.steward.lane import new_lane

pytestmark = pytest.mark.local


def test_a_session_is_not_bought_where_scratch_is_too_small(tmp_path: Path) -> None:
    lane = new_lane(tmp_path)
    definition = (CHECKOUT / "jobs" / "session.toml").read_text(encoding="utf-8")
    own = lane.site.state / "jobs" / "session.toml"
    own.parent.mkdir()
    small = definition.replace("min_free_gb = 2 ", "min_free_gb = 1e9 ")
    own.write_text(small.replace("max_tries = 3", "max_tries = 2"), encoding="utf-8")
    order = lane.order()
    lane.until_ended()
    (run,) = lane.stewards()[:1]
    records = [json.loads(document(path)) for path in sorted(run.glob("tries/*/*.record.json"))]
    assert [(one["outcome"], one["node_unfit"]) for one in records] == [("infrastructure", True)] * 2
    assert all("GB free, 1000000000.0 wanted" in one["reason"] for one in records)
    assert lane.sessions() == []
    assert list(run.glob("tries/*/*.begun.json")) == []
    assert (lane.endings()[0], lane.markers(order)[:2]) == ("refused", ["claimed", "ended:refused"])
    lane.site.stop_jobs()
