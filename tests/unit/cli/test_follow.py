"""Following runs on a cluster that others ask about, too."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest

from outerloop_hpc.cli import follow as following
from outerloop_hpc.cli.session import Session
from outerloop_hpc.engine import runs
from outerloop_hpc.engine.passresult import PassResult
from outerloop_hpc.engine.tick import Engine
from outerloop_hpc.errors import Exit
from tests.bench.queue import MemoryCompute
from tests.bench.statefolder import StateFolder, engine

pytestmark = pytest.mark.unit


@dataclass
class Clock:
    """Time passes only by sleeping."""

    slept: list[float] = field(default_factory=list)

    def now(self) -> datetime:
        return datetime(2026, 11, 29, tzinfo=UTC)

    def steady(self) -> float:
        return sum(self.slept)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


class Here(Session):
    """A session with an engine of the test's own."""

    def __init__(self, root: Path) -> None:
        super().__init__(state=root, environ={})
        self.made = engine(root, MemoryCompute())

    @property
    def engine(self) -> Engine:
        return self.made


def test_it_waits_the_interval_out_and_after_two_vain_passes_asks_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody else always asked just before: without the last word the run would never be asked about."""
    folder = StateFolder(tmp_path / "state")
    folder.add_live(1)
    clock, insisted = Clock(), []

    class Spared:
        def __init__(self, *_: object, insists: bool, **__: object) -> None:
            self.insists = insists

        def run(self) -> PassResult:
            insisted.append(self.insists)
            return PassResult(spared_s=0.0 if self.insists else 9.0)

    monkeypatch.setattr(following, "Pass", Spared)
    monkeypatch.setattr(following, "SystemClock", lambda: clock)
    found = following.follow(Here(folder.root), list(runs.live(folder.layout)), wait_s=40)
    assert found == Exit.IN_PROGRESS, "it ends when its time is over, asked or not"
    assert insisted == [False, False, True, False, False, True]
    assert clock.slept == [9.0, 9.0, 4.5, 9.0, 8.5]
