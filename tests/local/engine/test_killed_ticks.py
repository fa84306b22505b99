"""kill -9 of a pass before and after every effect of a whole run: the next passes end in the same final state."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.local.driver import Driver, Ended
from tests.local.site import Site, new_site, outcome, tiny_target, wait_for

pytestmark = [pytest.mark.local, pytest.mark.timeout(1800)]

_KILLED = -9
_START = ("command", "submitit.local")
#: A pass that dies costs at most a few more; a run that needs more than this does not converge.
_MOST_PASSES = 12
#: Sites whose jobs run at the same time.
_AT_ONCE = 5


@dataclass
class Story:
    """One site and what has been done to it."""

    driver: Driver
    site: Site
    where: str = ""
    starts: int = 0

    def order(self, *arguments: str, kill: int = 0, when: str = "before") -> Ended:
        ended = self.driver.order("--config", str(self.site.config), *arguments, kill=kill, when=when)
        assert "Traceback" not in ended.err, ended.err
        if _START in ended.effects and not (kill and when == "before" and ended.effects[-1] == _START):
            self.starts += 1
            wait_for(lambda: bool(self.site.local_jobs()), "the controller that was started shows up")
        return ended

    def die(self, *arguments: str, kill: int, when: str) -> None:
        died = self.order(*arguments, kill=kill, when=when)
        self.where = f"killed {when} effect {kill}: {died.effects[-1]}"
        assert died.status == _KILLED, self.where

    def advance(self, command: str) -> bool:
        """Make a pass once the jobs have ended; return whether nothing is live then."""
        wait_for(self.site.jobs_gone, "what was started has ended")
        ended = self.order(command)
        assert ended.status == 0, ended.err
        return not self.site.live()

    def settle(self) -> None:
        for _ in range(_MOST_PASSES):
            if self.advance("reconcile"):
                return
        raise AssertionError(f"{self.where}: not quiet after {_MOST_PASSES} passes: {self.site.live()}")


@dataclass
class Stories:
    """Makes fresh sites on one target."""

    driver: Driver
    folder: Path
    source: Path
    count: int = 0

    def fresh(self) -> Story:
        self.count += 1
        # No waiting for late submissions: the tests themselves wait for what was started.
        site = new_site(self.folder / f"site-{self.count}", targets={"tiny": self.source}, submit_lag_s=0)
        return Story(self.driver, site)


@pytest.fixture
def stories(driver: Driver, tmp_path: Path) -> Stories:
    return Stories(driver, tmp_path, tiny_target(tmp_path / "target"))


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_tick_killed_at_any_effect_of_a_launch_changes_nothing_in_the_end(stories: Stories, when: str) -> None:
    whole = stories.fresh()
    launch = whole.order("tick").effects
    whole.settle()
    expected = outcome(whole.site)
    assert expected["started"] == [2]
    assert len(expected["measured"]) == 2
    # After a git command is before the next effect: those are tried once.
    points = [k for k, effect in enumerate(launch, 1) if when == "before" or effect != ("command", "git")]
    for first in range(0, len(points), _AT_ONCE):
        told = []
        for kill in points[first : first + _AT_ONCE]:
            story = stories.fresh()
            story.die("tick", kill=kill, when=when)
            story.order("tick")
            told.append(story)
        for story in told:
            story.settle()
            assert outcome(story.site) == expected, story.where
            assert story.starts == 1, story.where
            shutil.rmtree(story.site.root)
    print(f"{len(points)} kill points of a launching tick, killed {when} each")


@pytest.mark.parametrize("after", ["/claims/", "/spec.json"])
def test_a_claimed_order_is_not_lost_when_its_tick_dies_and_the_head_moves_on(stories: Stories, after: str) -> None:
    launch = stories.fresh().order("tick").effects
    kill = next(k for k, (what, subject) in enumerate(launch, 1) if what == "publish" and after in subject)
    story = stories.fresh()
    story.die("tick", kill=kill, when="after")
    assert story.site.live() == []
    story.site.change("print('{\"score\": 1}')\n", "tiny")
    story.order("tick")
    story.settle()
    assert len(story.site.runs()) == 2
    assert not list((story.site.state / "making").iterdir())


def test_a_ledger_is_not_forgotten_when_the_tick_dies_just_before_it_is_written(stories: Stories) -> None:
    story = stories.fresh()
    story.order("tick")
    wait_for(story.site.jobs_gone, "both seeds ran")
    story.site.save()
    ledger = story.site.state / "results" / "tiny" / "leader.json"
    written = story.order("reconcile").effects.index(("replace", str(ledger)))
    story.site.restore()
    story.die("reconcile", kill=written + 1, when="before")
    assert not ledger.exists()
    story.settle()
    assert json.loads(ledger.read_bytes())["rows"][0]["best_run"] == story.site.run_folder().name


@pytest.mark.parametrize(("person", "when"), [("", "before"), ("", "after"), ("end", "before")])
def test_a_pass_killed_at_any_effect_of_an_ending_changes_nothing_in_the_end(
    stories: Stories, when: str, person: str
) -> None:
    story = stories.fresh()
    story.order("tick")
    wait_for(story.site.jobs_gone, "both seeds ran")
    if person:
        story.order("runs", person, story.site.run_folder().name, "--reason", "enough")
    story.site.save()
    ending = story.order("reconcile").effects
    assert story.site.live() == []
    expected = outcome(story.site)
    assert [word for word, _ in expected["endings"]] == ["operator" if person else "measured"]
    for kill in range(1, len(ending) + 1):
        story.site.restore()
        story.die("reconcile", kill=kill, when=when)
        story.settle()
        assert outcome(story.site) == expected, story.where
        assert story.starts == 1, story.where
    print(f"{len(ending)} kill points of an ending pass, killed {when} each")
