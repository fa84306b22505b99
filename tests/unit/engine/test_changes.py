"""What became of proposed changes: one question for a forge, and one that cannot be read is its own run's trouble."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from outerloop_hpc.engine import changes
from outerloop_hpc.engine.journal import Journal
from outerloop_hpc.engine.layout import Layout
from outerloop_hpc.engine.state import Change as Known
from outerloop_hpc.engine.state import RunState
from outerloop_hpc.engine.watch import LiveRun
from outerloop_hpc.errors import Fault, OuterloopError
from outerloop_hpc.forge.port import Change, Forge
from tests.unit.engine.made import RUN
from tests.unit.engine.memoryforge import MemoryForge

pytestmark = pytest.mark.unit


@dataclass
class Torn(MemoryForge):
    """A forge on which one change cannot be read."""

    torn: str = ""

    def changes(self, change_ids: Sequence[str]) -> Mapping[str, Change]:
        found = super().changes(change_ids)
        if self.torn in change_ids:
            raise Fault(f"change {self.torn} is broken")
        return found


def waiting(root: Path, number: int, change: str) -> LiveRun:
    run_id = RUN[:-1] + str(number)
    state = RunState(run=run_id, changes={"change": Known(branch="b", change=change, status="open")})
    return LiveRun(Journal(Layout(root).run(run_id)), state)


def looked(forge: Forge, *runs: LiveRun) -> tuple[dict[str, dict[str, Change | None]], list[str]]:
    troubles: list[str] = []

    def trouble(target: str, error: OuterloopError) -> None:
        troubles.append(f"{target}: {error}")

    return changes.look(runs, lambda _target: forge, trouble), troubles


def a_forge(*names: str, **more: object) -> Torn:
    return Torn(opened={name: Change(name, "b", "c", "open", "there") for name in names}, **more)  # type: ignore[arg-type]


def test_all_runs_of_a_target_are_asked_about_in_one_call(tmp_path: Path) -> None:
    forge = a_forge("c1")
    runs = [waiting(tmp_path, 1, "c1"), waiting(tmp_path, 2, "c2")]
    found, troubles = looked(forge, *runs)
    assert (len(forge.calls), troubles) == (1, [])
    assert found[runs[0].run_id]["change"] is not None
    assert found[runs[1].run_id] == {"change": None}


def test_a_change_that_cannot_be_read_is_its_own_run_s_trouble(tmp_path: Path) -> None:
    """None of the target's runs heard anything, for as long as one file of one change was broken."""
    forge = a_forge("c1", "c2", "c3", torn="c2")
    runs = [waiting(tmp_path, number, f"c{number}") for number in (1, 2, 3)]
    found, troubles = looked(forge, *runs)
    assert list(found) == [runs[0].run_id, runs[2].run_id]
    assert troubles == ["iris: change c2 is broken"]


def test_a_forge_that_does_not_answer_is_asked_once(tmp_path: Path) -> None:
    forge = a_forge("c1", "c2", silent=True)
    found, troubles = looked(forge, waiting(tmp_path, 1, "c1"), waiting(tmp_path, 2, "c2"))
    assert (found, len(forge.calls), len(troubles)) == ({}, 1, 1)
