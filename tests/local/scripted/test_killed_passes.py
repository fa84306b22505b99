"""kill -9 of a pass before each of its effects and after the last: the same end, commits and jobs.

Nothing durable happens between two effects, so after one is before the next; programs of Slurm are the exception, see
``rehearsal.points``. Where the next pass leaves on disk what the undisturbed one left, the rest is the undisturbed one;
where it does not, the flow goes on to its end.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.local.scripted.rehearsal import Rehearsal, killed_everywhere, moments_of

pytestmark = [pytest.mark.local, pytest.mark.timeout(1800)]


@pytest.mark.parametrize(("name", "number"), moments_of("benchmark", "steward"))
def test_a_command_killed_at_any_effect_changes_nothing_in_the_end(
    rehearsed: Callable[[str], Rehearsal], name: str, number: int, tried: Callable[[str, int], None]
) -> None:
    tried("kill points", killed_everywhere(rehearsed(name), number))
