"""Lanes and targets take turns; what one of them raises stays with it; remarks and alarms reach the forge."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from outerloop_hpc import fsio
from outerloop_hpc.engine.alarm import BAD_TICKS
from outerloop_hpc.engine.lane import Order, Remark
from outerloop_hpc.engine.layout import Layout
from outerloop_hpc.engine.serve import Counter, Service
from outerloop_hpc.engine.spec import RunSpec
from outerloop_hpc.errors import ConfigError, OuterloopError, TryLater
from tests.unit.engine.made import SPEC, T0
from tests.unit.engine.memoryforge import MemoryForge

pytestmark = pytest.mark.unit


@dataclass
class Wishes:
    """A lane with a list of wishes for each target; a wish that is an exception is raised."""

    name: str
    wishes: dict[str, list[Order | Remark | Exception]]

    def targets(self) -> Sequence[str]:
        return list(self.wishes)

    def orders(self, target: str) -> Iterator[Order | Remark]:
        for wish in self.wishes[target]:
            if isinstance(wish, Exception):
                raise wish
            yield wish


@dataclass
class Hall:
    """Where lanes are served in a test, with room for so many runs."""

    root: Path
    room: int = 100
    dry_run: bool = False
    forge: MemoryForge = field(default_factory=MemoryForge)
    begun: list[str] = field(default_factory=list)
    lines: list[tuple[str, str]] = field(default_factory=list)
    faults: list[tuple[str, str]] = field(default_factory=list)

    def isolate(self, who: str, act: Callable[[], None]) -> None:
        try:
            act()
        except OuterloopError as error:
            self.faults.append((who, str(error)))

    def begin(self, spec: RunSpec) -> None:
        Layout(self.root).run(spec.run).journal.mkdir(parents=True)
        self.begun.append(spec.run)
        self.room -= 1

    def serve(self, *lanes: Wishes) -> list[str]:
        """Serve once; returns the runs that were begun in this pass, in order."""
        (self.root / "tick").mkdir(parents=True, exist_ok=True)
        before = len(self.begun)
        counter = Counter(
            layout=Layout(self.root),
            forges=lambda _target: self.forge,
            now=T0,
            dry_run=self.dry_run,
            held=lambda: "" if self.room > 0 else "full",
            begin=self.begin,
            isolate=self.isolate,
            say=lambda lane, wish, rule, _verdict, _reason: self.lines.append((f"{lane} {wish.target}", rule)),
        )
        Service(counter, lanes).run()
        return self.begun[before:]


def order(target: str, key: str) -> Order:
    return Order(target, key, "why", lambda: SPEC.model_copy(update={"run": key, "target": target}))


def orders(target: str, *keys: str) -> list[Order | Remark | Exception]:
    return [order(target, f"benchmark-{target}-20261129T120000Z-{key * 8}") for key in keys]


def targets_of(begun: Sequence[str]) -> list[str]:
    return [run.split("-")[1] for run in begun]


def test_a_target_with_many_wishes_leaves_room_for_the_others(tmp_path: Path) -> None:
    """Reconciling and launching in the order of names let a busy first lane starve every other."""
    hall = Hall(tmp_path, room=4)
    begun = hall.serve(Wishes("benchmark", {"a": orders("a", *"123456789"), "b": orders("b", "1", "2")}))
    assert targets_of(begun) == ["a", "b", "a", "b"]


def test_the_next_pass_begins_after_the_one_that_was_served_last(tmp_path: Path) -> None:
    hall = Hall(tmp_path)
    lane = Wishes("benchmark", {name: orders(name, *"123") for name in "abc"})
    got = []
    for _ in range(6):
        hall.room = 1
        got += targets_of(hall.serve(lane))
    assert got == ["a", "b", "c", "a", "b", "c"]


def test_an_unreadable_list_of_turns_costs_no_more_than_a_turn(tmp_path: Path) -> None:
    hall = Hall(tmp_path)
    (tmp_path / "tick").mkdir()
    (tmp_path / "tick" / "turns.json").write_bytes(b"\xff\x00[")
    assert targets_of(hall.serve(Wishes("benchmark", {"a": orders("a", "1")}))) == ["a"]


@pytest.mark.parametrize("error", [ConfigError("bad contract"), TryLater("no answer"), OSError(5, "I/O error")])
def test_a_target_that_cannot_be_read_stops_no_other(tmp_path: Path, error: Exception) -> None:
    hall = Hall(tmp_path)
    begun = hall.serve(Wishes("benchmark", {"a": [error], "b": orders("b", "1")}))
    assert targets_of(begun) == ["b"]
    assert [who for who, _ in hall.faults] == ["benchmark a"]


def test_a_remark_is_said_on_its_order_and_not_in_a_dry_run(tmp_path: Path) -> None:
    remark = Remark("a", "7", "unclear", "Which benchmark?", "names two")
    dry = Hall(tmp_path, dry_run=True)
    dry.serve(Wishes("steward", {"a": [remark]}))
    assert (dry.lines, dry.forge.calls) == ([("steward a", "lane.remark")], [])
    hall = Hall(tmp_path)
    hall.serve(Wishes("steward", {"a": [remark]}))
    assert hall.forge.said == {("7", "unclear"): "Which benchmark?"}


def test_a_remark_that_cannot_be_made_is_one_order_s_trouble(tmp_path: Path) -> None:
    """One failing comment ended the lane for the tick, and the same issue stayed first in line for ever."""
    hall = Hall(tmp_path, forge=MemoryForge(silent=True))
    remark = Remark("a", "7", "unclear", "Which benchmark?", "names two")
    assert targets_of(hall.serve(Wishes("steward", {"a": [remark, *orders("a", "1")]}))) == ["a"]
    assert hall.faults == [("steward a", "the forge does not answer")]


BROKEN: list[Order | Remark | Exception] = [ConfigError("iris:.outerloop.yaml: <b>unknown key</b>")]


def test_a_contract_that_stays_broken_is_told_after_three_ticks_and_closed_when_healthy(tmp_path: Path) -> None:
    hall = Hall(tmp_path)
    lane = Wishes("benchmark", {"iris": BROKEN})
    for number in range(1, BAD_TICKS + 3):
        hall.serve(lane, Wishes("steward", {"iris": BROKEN}))
        assert bool(hall.forge.alarms) == (number >= BAD_TICKS), number
    assert hall.forge.calls == ["raise"]
    assert ": <b>unknown key</b>`" in hall.forge.alarms["contract"]
    hall.serve(Wishes("benchmark", {"iris": []}))
    assert hall.forge.alarms == {}
    assert not (tmp_path / "tick" / "contract-iris.json").exists()


def test_a_count_of_bad_ticks_that_cannot_be_read_leaves_no_notice_open(tmp_path: Path) -> None:
    """The notice stayed open for ever, and the file that nobody could read was complained of by every tick."""
    hall = Hall(tmp_path)
    for _ in range(BAD_TICKS):
        hall.serve(Wishes("benchmark", {"iris": BROKEN}))
    (tmp_path / "tick" / "contract-iris.json").write_bytes(b"")
    hall.serve(Wishes("benchmark", {"iris": []}))
    assert hall.forge.alarms == {}
    assert not (tmp_path / "tick" / "contract-iris.json").exists()


def test_an_alarm_that_the_forge_did_not_take_is_raised_by_a_later_tick(tmp_path: Path) -> None:
    hall = Hall(tmp_path, forge=MemoryForge(silent=True))
    lane = Wishes("benchmark", {"iris": BROKEN})
    for _ in range(BAD_TICKS):
        hall.serve(lane)
    hall.forge.silent = False
    hall.serve(lane)
    assert list(hall.forge.alarms) == ["contract"]


def test_a_notice_whose_tick_died_right_after_it_is_closed_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody had noted that it was raised, and so it stayed open for ever."""
    hall, lane = Hall(tmp_path), Wishes("benchmark", {"iris": BROKEN})
    for _ in range(BAD_TICKS - 1):
        hall.serve(lane)
    replaced = fsio.replace

    def dies(path: Path, data: bytes) -> None:
        if hall.forge.alarms:
            raise KeyboardInterrupt
        replaced(path, data)

    monkeypatch.setattr(fsio, "replace", dies)
    with pytest.raises(KeyboardInterrupt):
        hall.serve(lane)
    monkeypatch.undo()
    assert list(hall.forge.alarms) == ["contract"]
    hall.serve(Wishes("benchmark", {"iris": []}))
    assert hall.forge.alarms == {}


@pytest.mark.parametrize("error", [TryLater("no answer"), OSError(5, "I/O error")])
def test_a_contract_that_nobody_could_look_at_is_not_healthy(tmp_path: Path, error: Exception) -> None:
    """One tick in which the repository did not answer closed the notice, though nothing was mended."""
    hall = Hall(tmp_path)
    for _ in range(BAD_TICKS):
        hall.serve(Wishes("benchmark", {"iris": BROKEN}))
    assert list(hall.forge.alarms) == ["contract"]
    hall.serve(Wishes("benchmark", {"iris": [error]}))
    assert list(hall.forge.alarms) == ["contract"]
    hall.serve(Wishes("benchmark", {"iris": [error]}), Wishes("steward", {"iris": []}))
    assert hall.forge.alarms == {}, "one lane that could look is enough"
