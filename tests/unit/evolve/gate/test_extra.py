"""What works without numpy and scipy."""

from __future__ import annotations

import sys

import pytest

from outerloop_hpc.errors import ConfigError
from tests.unit.evolve.gate.made import BETTER, decided, everywhere, policy

pytestmark = pytest.mark.unit


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("numpy", "scipy"):
        monkeypatch.setitem(sys.modules, name, None)


@pytest.mark.usefixtures("bare")
def test_without_the_extra_no_gate_decides_by_half() -> None:
    with pytest.raises(ConfigError, match=r"outerloop-hpc\[stats\]"):
        decided([])


@pytest.mark.usefixtures("bare")
def test_medians_do_without_it() -> None:
    assert decided(everywhere(BETTER[:3]), policy(kind="medians-v5")).decision == "promote"
