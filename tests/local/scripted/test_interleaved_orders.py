"""Two passes at the same moment, with locks that always succeed, on a lane with two orders at once."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.local.scripted.interleaved import interleaved_everywhere, interleaved_twice
from tests.local.scripted.rehearsal import Rehearsal, moments_of

pytestmark = [pytest.mark.local, pytest.mark.timeout(1800)]

_PAIRS = 60


@pytest.mark.parametrize(("name", "number"), moments_of("two_orders"))
def test_a_command_that_stands_still_while_another_serves_both_orders_changes_nothing(
    rehearsed: Callable[[str], Rehearsal], name: str, number: int, tried: Callable[[str, int], None]
) -> None:
    tried("interleavings", interleaved_everywhere(rehearsed(name), number))


def test_two_commands_that_take_turns_anywhere_serve_each_order_once(
    rehearsed: Callable[[str], Rehearsal], tried: Callable[[str, int], None]
) -> None:
    tried("interleavings", interleaved_twice(rehearsed("two_orders"), _PAIRS))
