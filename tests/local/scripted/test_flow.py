"""The undisturbed flow on a scripted cluster of each version, as on a real one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.fakeslurm.model import Settings
from tests.local.scripted.scripted import Scripted
from tests.local.site import archived, outcome

pytestmark = [pytest.mark.local, pytest.mark.timeout(600)]


def test_a_head_is_measured_by_one_array_and_accounted_for(made: Callable[..., Scripted], version: str) -> None:
    scripted = made(Settings(version=version))
    scripted.cli("tick")
    scripted.settle()
    found = outcome(scripted.site)
    assert [word for word, _ in found["endings"]] == ["measured"]
    assert found["started"] == [2]
    assert [row["State"] for row in archived(scripted.site.run_folder())] == ["COMPLETED", "COMPLETED"]
    (name,) = scripted.slurm.taken()
    assert name.startswith("ol.tiny.measure.")
    assert len(scripted.slurm.calls("sbatch")) == 1
