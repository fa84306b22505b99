"""Two passes at the same moment, with locks that always succeed: the same end, commits and jobs as of one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.local.scripted.interleaved import interleaved_everywhere, interleaved_twice
from tests.local.scripted.rehearsal import Rehearsal, moments_of

pytestmark = [pytest.mark.local, pytest.mark.timeout(1800)]

#: Pairs of places that are tried for each flow.
_PAIRS = 60


@pytest.mark.parametrize(("name", "number"), moments_of("benchmark", "steward"))
def test_a_command_that_stands_still_at_any_effect_while_another_runs_changes_nothing(
    rehearsed: Callable[[str], Rehearsal], name: str, number: int, tried: Callable[[str, int], None]
) -> None:
    tried("interleavings", interleaved_everywhere(rehearsed(name), number))


@pytest.mark.parametrize("name", ["benchmark", "steward"])
def test_two_commands_that_take_turns_anywhere_change_nothing(
    rehearsed: Callable[[str], Rehearsal], name: str, tried: Callable[[str, int], None]
) -> None:
    tried("interleavings", interleaved_twice(rehearsed(name), _PAIRS))
