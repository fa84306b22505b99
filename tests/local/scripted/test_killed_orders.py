"""kill -9 of a pass before each of its effects and after the last, on a lane with two orders at once."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.local.scripted.rehearsal import Rehearsal, killed_everywhere, moments_of

pytestmark = [pytest.mark.local, pytest.mark.timeout(1800)]


@pytest.mark.parametrize(("name", "number"), moments_of("two_orders"))
def test_a_command_killed_at_any_effect_loses_no_order_and_doubles_none(
    rehearsed: Callable[[str], Rehearsal], name: str, number: int, tried: Callable[[str, int], None]
) -> None:
    tried("kill points", killed_everywhere(rehearsed(name), number))
