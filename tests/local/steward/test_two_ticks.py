"""Ticks at the same moment, without any lock, on one lane: one session, one claim, one change for each order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.local.driver import Driver, Ended
from tests.local.site import environment, wait_for
from tests.local.steward.lane import Lane

pytestmark = [pytest.mark.local, pytest.mark.timeout(1200)]

_RIVALS = 3


@pytest.fixture
def rivals(tmp_path: Path) -> Iterator[Sequence[Driver]]:
    with ExitStack() as stack:
        yield [stack.enter_context(Driver(tmp_path, environment())) for _ in range(_RIVALS)]


def at_once(rivals: Sequence[Driver], lane: Lane) -> list[Ended]:
    for rival in rivals:
        rival.send("--config", str(lane.site.config), "tick", polite=False)
    ended = [rival.answer() for rival in rivals]
    for one in ended:
        assert (one.status, "Traceback" in one.err) == (0, False), one.err
    return ended


def test_ticks_at_once_buy_one_session_and_open_one_change_for_each_order(
    swift: Lane, rivals: Sequence[Driver]
) -> None:
    swift.configure(steward={"live": 1})
    swift.measured()
    orders = [swift.order(f"Order {number}") for number in range(2)]
    for number, order in enumerate(orders, start=1):

        def opened(number: int = number) -> bool:
            at_once(rivals, swift)
            assert len([name for name in swift.site.live() if name.startswith("steward-")]) <= 1
            return len(swift.changes()) == number

        wait_for(opened, f"{number} changes are open")
        at_once(rivals, swift)
        assert len(swift.sessions()) == len(swift.stewards()) == number
        (change,) = [one for one in swift.changes() if one.status == "open"]
        swift.forge.close_change(change.change_id, author="ada", body="no")
        at_once(rivals, swift)
        assert swift.markers(order) == ["claimed", "ended:published"]
    wait_for(swift.site.jobs_gone, "every job has ended")
    for run in swift.stewards():
        kinds = Counter(event["type"] for event in swift.site.events(run))
        assert (kinds["run.started"], kinds["change.bound"], kinds["run.ended"], kinds["run.closed"]) == (1, 1, 1, 1)
    assert [one["reason"] for one in swift.claim_ends()] == ["published"] * 2
