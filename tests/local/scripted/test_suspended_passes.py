"""A pass that sleeps for an hour before any of its effects, while others go on until all is quiet."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.local.scripted.interleaved import suspended_everywhere
from tests.local.scripted.rehearsal import Rehearsal, moments_of

pytestmark = [pytest.mark.local, pytest.mark.timeout(1800)]


@pytest.mark.parametrize(("name", "number"), moments_of("benchmark", "steward"))
def test_a_command_that_sleeps_for_an_hour_at_any_effect_doubles_nothing(
    rehearsed: Callable[[str], Rehearsal], name: str, number: int, tried: Callable[[str, int], None]
) -> None:
    tried("suspensions", suspended_everywhere(rehearsed(name), number))
