"""Which orders the lane yields: one that fails stops no other, and a forge that is away stops all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from outerloop_hpc import fsio
from outerloop_hpc.agents.pauses import RoleOutage, outage_path
from outerloop_hpc.engine.claims import ClaimEnded, ended_path
from outerloop_hpc.engine.lane import Order as Wish
from outerloop_hpc.engine.lane import Remark, Trouble
from outerloop_hpc.engine.layout import Layout
from outerloop_hpc.engine.targets import Targets
from outerloop_hpc.errors import ConfigError, TryLater
from outerloop_hpc.forge.markers import Marker
from outerloop_hpc.forge.port import Comment, NotThere, Order
from outerloop_hpc.steward.lane import StewardLane
from tests.unit.engine.made import T0
from tests.unit.engine.memoryforge import MemoryForge
from tests.unit.steward.made import RUN, minutes, order

pytestmark = pytest.mark.unit


@dataclass
class Desk(MemoryForge):
    """A forge with these orders; the threads of some cannot be had."""

    listed: list[Order] = field(default_factory=list)
    deaf: dict[str, Exception] = field(default_factory=dict)

    def orders(self, label: str) -> Sequence[Order]:
        super().orders(label)
        return self.listed

    def comments(self, order_id: str, since: datetime | None = None) -> Sequence[Comment]:
        if order_id in self.deaf:
            raise self.deaf[order_id]
        return super().comments(order_id, since)


def desk(*names: str, **more: Any) -> Desk:
    return Desk(listed=[order(order_id=name) for name in names], **more)


def lane(
    root: Path,
    forge: Desk,
    *,
    now: datetime = T0,
    contract: bool = True,
    steward: bool = True,
    keep: bool = True,
    **more: object,
) -> StewardLane:
    """``more`` are settings of the steward."""
    given: dict[str, object] = {
        "command": ("agent",),
        "label": "outerloop:steward",
        "authors": (),
        "attempts": 3,
        "outages": 5,
        "live": 1,
        "outage_minutes": 45,
        "throttle_minutes": 5,
        "key_file": "",
        "key_env": "",
        "files": "",
        **more,
    }

    def look(name: str) -> SimpleNamespace:
        if not contract:
            raise ConfigError(f"{name}: broken contract")
        terms = SimpleNamespace(steward=object() if steward else None, benchmarks=[SimpleNamespace(name="score")])
        return SimpleNamespace(target=name, loaded=SimpleNamespace(contract=terms))

    targets = SimpleNamespace(
        settings=SimpleNamespace(steward=SimpleNamespace(**given)),
        layout=Layout(root),
        clock=SimpleNamespace(now=lambda: now),
        names=["iris"],
        look=look,
    )
    return StewardLane(cast("Targets", targets), lambda _target: forge, keep=keep)


def wishes(made: StewardLane) -> list[str]:
    """Say in words what the lane yields."""
    found = []
    for wish in made.orders("iris"):
        match wish:
            case Wish(key=key):
                found.append(key)
            case Remark(order=name, key=key):
                found.append(f"remark {name} {key}")
            case Trouble(what=what):
                found.append(f"trouble {what}")
    return found


def test_orders_come_in_the_forge_s_order(tmp_path: Path) -> None:
    assert wishes(lane(tmp_path, desk("3", "7", "12"))) == ["steward/3/1", "steward/7/1", "steward/12/1"]


def test_each_thread_is_read_once_in_a_pass(tmp_path: Path) -> None:
    """One listing of comments for each order, twice a tick."""
    forge = desk("3", "7", "12")
    wishes(lane(tmp_path, forge))
    assert forge.calls.count("comments") == 3


@pytest.mark.parametrize("error", [TryLater("502"), NotThere("deleted meanwhile"), ConfigError("odd")])
def test_a_thread_that_cannot_be_had_stops_no_other_order(tmp_path: Path, error: Exception) -> None:
    """One order whose comments timed out ended the lane for its target in every pass."""
    forge = desk("3", "7", deaf={"3": error})
    assert wishes(lane(tmp_path, forge)) == ["trouble order 3", "steward/7/1"]
    assert wishes(lane(tmp_path, forge, now=T0 + minutes(0.5))) == ["steward/7/1"], "it is left alone for a while"


def test_a_forge_that_is_away_is_not_asked_about_every_order(tmp_path: Path) -> None:
    forge = desk("1", "2", "3", "4", deaf={name: TryLater("timeout") for name in "1234"})
    with pytest.raises(TryLater):
        wishes(lane(tmp_path, forge))
    assert wishes(lane(tmp_path, desk("1", "2", "3"), now=T0 + minutes(0.5))) == ["steward/3/1"]


def test_an_order_that_cannot_be_read_is_told_and_not_taken(tmp_path: Path) -> None:
    forge = desk("7")
    forge.listed.insert(0, order(order_id="3", fault="00000001.json: empty"))
    assert wishes(lane(tmp_path, forge)) == ["trouble order 3", "steward/7/1"]


def test_a_role_without_its_key_is_told_once_and_takes_nothing(tmp_path: Path) -> None:
    made = lane(tmp_path, desk("3", "7"), key_file=str(tmp_path / "missing"), key_env="KEY")
    assert wishes(made) == ["trouble steward role"]


def test_without_an_identity_nothing_is_scanned(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="identity is empty"):
        wishes(lane(tmp_path, desk("3", identity="")))


def refuse(root: Path, at: datetime) -> None:
    path = root / outage_path("steward", RUN)
    fsio.make_folder(path.parent)
    fsio.publish(path, RoleOutage(role="steward", run=RUN, at=at, outage="refused").encoded())


def test_a_role_that_pauses_takes_nothing_and_still_looks_at_the_contract(tmp_path: Path) -> None:
    refuse(tmp_path, T0 - timedelta(minutes=10))
    assert wishes(lane(tmp_path, desk("3"))) == []
    with pytest.raises(ConfigError, match="broken contract"):
        wishes(lane(tmp_path, desk("3"), contract=False))
    assert wishes(lane(tmp_path, desk("3"), now=T0 + minutes(36))) == ["steward/3/1"]


@pytest.mark.parametrize("where", ["live", "making"])
def test_runs_that_are_live_or_being_made_use_up_the_limit(tmp_path: Path, where: str) -> None:
    name = f"{RUN}.json" if where == "making" else RUN
    (tmp_path / where).mkdir()
    (tmp_path / where / name).touch()
    assert wishes(lane(tmp_path, desk("3"))) == []
    assert wishes(lane(tmp_path, desk("3"), live=2)) == ["steward/3/1"]
    (tmp_path / where / name).rename(tmp_path / where / name.replace("-iris-", "-iris2-"))
    assert wishes(lane(tmp_path, desk("3"))) == ["steward/3/1"], "another target's run"


def test_a_run_that_has_ended_and_cannot_say_so_keeps_no_other_order_waiting(tmp_path: Path) -> None:
    """One order that could not be written kept its run live, and the lane of its target closed, for ever."""
    (tmp_path / "live").mkdir()
    (tmp_path / "live" / RUN).touch()
    report = Layout(tmp_path).run(RUN).report
    fsio.make_folder(report.parent)
    assert wishes(lane(tmp_path, desk("3"))) == []
    report.touch()
    assert wishes(lane(tmp_path, desk("3"))) == ["steward/3/1"]


def test_a_dry_run_shows_no_more_orders_than_would_be_taken(tmp_path: Path) -> None:
    shown = lane(tmp_path, desk("1", "2", "3"), keep=False, live=2)
    assert len(wishes(shown)) == 2
    assert len(wishes(shown)) == 2, "and the same when it is asked again"


def end_attempt(root: Path, attempt: int, run: str = RUN, reason: str = "refused") -> Path:
    key = f"steward/3/{attempt}"
    path = root / ended_path("iris", key)
    fsio.make_folder(path.parent)
    over = ClaimEnded(
        run=run, order=key, claim="a" * 16, reason=reason, ending=reason, why="gone", at=T0 - timedelta(days=1)
    )
    fsio.publish(path, over.encoded())
    return path


def test_an_attempt_that_never_got_onto_its_order_is_counted_all_the_same(tmp_path: Path) -> None:
    end_attempt(tmp_path, 1)
    end_attempt(tmp_path, 2)
    assert wishes(lane(tmp_path, desk("3"))) == ["steward/3/3"]


@pytest.mark.parametrize("reason", ["answered", "published"])
def test_a_settled_order_whose_thread_lost_that_is_not_bought_again(tmp_path: Path, reason: str) -> None:
    """With the tool's comments deleted, or a new name of its own, the order looked like one that nobody ever took."""
    end_attempt(tmp_path, 1, reason=reason)
    forge = desk("3", "4")
    assert wishes(lane(tmp_path, forge, live=5)) == ["steward/4/1"]
    forge.listed[0] = replace(forge.listed[0], relabelled_at=T0)
    assert wishes(lane(tmp_path, forge, live=5)) == ["steward/3/2", "steward/4/1"]


def test_an_attempt_whose_end_is_not_told_yet_holds_its_order(tmp_path: Path) -> None:
    end_attempt(tmp_path, 1)
    (tmp_path / "live").mkdir()
    (tmp_path / "live" / RUN).touch()
    assert wishes(lane(tmp_path, desk("3", "4"), live=5)) == ["steward/4/1"]


def test_an_end_that_cannot_be_read_holds_its_own_order(tmp_path: Path) -> None:
    end_attempt(tmp_path, 1).write_bytes(b"")
    assert wishes(lane(tmp_path, desk("3", "4"))) == ["trouble order 3", "steward/4/1"]


def test_a_pass_that_slept_since_it_read_an_order_does_not_buy_again_what_was_answered_meanwhile(
    tmp_path: Path,
) -> None:
    """It knew the thread from before, skipped the attempt that had ended, and bought the next one."""
    forge, marker = desk("2", "3"), Marker(claim="a" * 16, run=RUN, attempt=1)
    forge.listed = [replace(one, touched_at=T0 - timedelta(hours=1)) for one in forge.listed]
    wishes(lane(tmp_path, forge, live=9))
    asleep = lane(tmp_path, forge, live=9).orders("iris")
    first = next(iter(asleep))
    assert isinstance(first, Wish)
    assert first.key == "steward/2/1"
    forge.comment("3", "claimed", marker.line())
    end_attempt(tmp_path, 1)
    forge.comment("3", "released", marker.model_copy(update={"reason": "answered"}).line())
    assert list(asleep) == []


def test_a_run_that_is_made_while_runs_are_counted_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It had left ``making`` when that was listed, and had not come into ``live`` when that was: one run too many."""
    live, making = tmp_path / "live", tmp_path / "making"
    for folder in (live, making):
        folder.mkdir()
    (making / f"{RUN}.json").touch()
    listed = fsio.names

    def names(folder: Path) -> list[str]:
        found = listed(folder)
        if folder in {live, making}:
            (live / RUN).touch()
            (making / f"{RUN}.json").unlink(missing_ok=True)
        return found

    monkeypatch.setattr(fsio, "names", names)
    assert wishes(lane(tmp_path, desk("3"))) == []


def test_an_order_under_a_contract_without_a_steward_is_told_so(tmp_path: Path) -> None:
    (wish,) = lane(tmp_path, desk("3"), steward=False).orders("iris")
    assert isinstance(wish, Remark)
    assert (wish.key, wish.reason) == ("steward/no-steward", "the contract has no steward section")


def test_what_cannot_be_taken_is_remarked_once(tmp_path: Path) -> None:
    forge = desk("3")
    forge.listed = [order("no name", order_id="3")]
    assert wishes(lane(tmp_path, forge)) == ["remark 3 steward/benchmark-0-0"]
    forge.comment("3", "steward/benchmark-0-0", "Which one?")
    assert wishes(lane(tmp_path, forge)) == []
