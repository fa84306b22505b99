"""Every scenario of every file, on each version that it names: what Slurm may do, and what must come of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fakeslurm.scenario import Scenario, load
from tests.local.scripted.play import Play
from tests.local.scripted.scripted import Scripted

pytestmark = [pytest.mark.local, pytest.mark.timeout(600)]

FOLDER = Path(__file__).parents[2] / "fakeslurm" / "scenarios"
CASES = [
    pytest.param(scenario, version, id=f"{path.stem}: {scenario.name} [{version}]")
    for path in sorted(FOLDER.glob("*.toml"))
    for scenario in load(path)
    for version in scenario.versions
]


@pytest.mark.parametrize(("scenario", "version"), CASES)
def test_a_scenario_ends_as_it_must(
    scenario: Scenario, version: str, made: Callable[..., Scripted], tried: Callable[[str, int], None]
) -> None:
    play = Play(made(scenario.settings(version), tool=scenario.tool))
    play.perform(scenario)
    play.verify(scenario)
    tried("scenario plays", 1)
