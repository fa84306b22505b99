"""kill -9 of a tick before every effect of the lane: the same final state, one session bought, one change open.

After an effect is before the next one, so each place is tried once, and the place after the last effect too.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from outerloop_hpc.slurm.localjobs import parse
from tests.local.driver import Driver, Ended
from tests.local.scratch import git
from tests.local.site import archived, document, wait_for
from tests.local.steward.lane import TARGET, Lane, new_lane

pytestmark = [pytest.mark.local, pytest.mark.timeout(1800)]

_KILLED = -9
_START = ("command", "submitit.local")
_MOST_TICKS = 12


@dataclass
class Story:
    """One lane, to whose state a test goes back again and again."""

    lane: Lane
    driver: Driver
    kept: Path
    order_id: str = ""

    def order(self, *command: str, kill: int = 0, when: str = "before") -> Ended:
        before = self._controlled()
        ended = self.driver.order("--config", str(self.lane.site.config), *command, kill=kill, when=when)
        assert "Traceback" not in ended.err, ended.err
        started = ended.effects.count(_START) - (bool(kill) and when == "before" and ended.effects[-1] == _START)
        wait_for(lambda: len(self._controlled() - before) >= started, "every controller that was started shows up")
        return ended

    def _controlled(self) -> set[str]:
        files = self.lane.site.local_files()
        return {
            path.name for path in files if (job := parse(document(path).decode())[0]) is not None and job.controller
        }

    def advance(self, command: str = "tick") -> None:
        wait_for(self.lane.site.jobs_gone, "what was started has ended")
        assert self.order(command).status == 0

    def until(self, condition: Callable[[], bool], what: str, command: str = "tick") -> None:
        for _ in range(_MOST_TICKS):
            if condition():
                return
            self.advance(command)
        raise AssertionError(f"not after {_MOST_TICKS} ticks: {what}")

    def keep(self) -> None:
        wait_for(self.lane.site.jobs_gone, "what was started has ended")
        shutil.rmtree(self.kept, ignore_errors=True)
        for path in self._places():
            if path.exists():
                (shutil.copytree if path.is_dir() else shutil.copy2)(path, self._copy(path))

    def restore(self) -> None:
        for path in self._places():
            if path.is_dir():
                shutil.rmtree(path)
            path.unlink(missing_ok=True)
            if self._copy(path).exists():
                (shutil.copytree if path != self.lane.diary else shutil.copy2)(self._copy(path), path)

    def outcome(self) -> dict[str, Any]:
        lane = self.lane
        return {
            "runs": [self._run(folder) for folder in lane.stewards()],
            "points": sorted(path.parent.name for path in lane.site.state.glob("results/*/*/*.json")),
            "ledger": [row["benchmark"] for row in lane.site.rows("bench", "ledger", TARGET)],
            "live": len(lane.site.live()),
            "sessions": len(lane.sessions()),
            "markers": lane.markers(self.order_id),
            "said": len(lane.comments(self.order_id)),
            "changes": [(change.status, change.commit != "") for change in lane.changes()],
            "claims": [(end["reason"], end["ending"]) for end in lane.claim_ends()],
        }

    def _run(self, folder: Path) -> dict[str, Any]:
        events = self.lane.site.events(folder)
        return {
            "ended": [event["ending"] for event in events if event["type"] == "run.ended"],
            "done": sorted(
                event["step"].partition("-")[0]
                for event in events
                if event["type"] == "try.ended" and event["outcome"] == "done"
            ),
            "started": sum(row["Start"].isdigit() for row in archived(folder)),
            "report": (folder / "report.md").exists(),
        }

    def _places(self) -> tuple[Path, ...]:
        return self.lane.site.state, self.lane.site.source(), self.lane.diary

    def _copy(self, path: Path) -> Path:
        self.kept.mkdir(exist_ok=True)
        return self.kept / path.name


@pytest.fixture
def story(driver: Driver, tmp_path: Path) -> Iterator[Story]:
    made = Story(new_lane(tmp_path, driver=driver, settings={"submit_lag_s": 0}), driver, tmp_path / "kept")
    made.advance()
    made.until(lambda: not made.lane.site.live(), "the sibling is measured")
    made.order_id = made.lane.order()
    yield made
    made.lane.site.stop_jobs()


def _killed_everywhere(
    story: Story, command: str | tuple[str, ...], goes_on: Callable[[], None], *, every_git: bool = True
) -> int:
    """Kill ``command`` before each of its effects and after the last, go on, and compare with the undisturbed end.

    ``every_git``: of git commands in a row not only the first.
    """
    words = (command,) if isinstance(command, str) else command
    story.keep()
    effects = story.order(*words).effects
    goes_on()
    expected = story.outcome()
    points = [
        kill
        for kill in range(1, len(effects) + 2)
        if every_git or kill > len(effects) or {effects[kill - 2], effects[kill - 1]} != {("command", "git")}
    ]
    for kill in points:
        story.restore()
        last = kill > len(effects)
        died = story.order(*words, kill=kill - last, when="after" if last else "before")
        where = f"killed before effect {kill} of {len(effects)}: {died.effects[-1]}"
        assert died.status == _KILLED, where
        goes_on()
        assert story.outcome() == expected, where
    print(f"{len(points)} kill points of `{' '.join(words)}`")
    return len(points)


def _to_an_open_change(story: Story) -> None:
    story.until(lambda: len(story.lane.comments(story.order_id)) == 2, "a change is open, and told on the order")


def _no_more_than_wanted(story: Story) -> None:
    found = story.outcome()
    assert (found["sessions"], found["changes"], found["markers"]) == (1, [("open", True)], ["claimed"])


def test_a_tick_killed_while_it_takes_an_order_buys_one_session(story: Story) -> None:
    count = _killed_everywhere(story, "tick", lambda: _to_an_open_change(story), every_git=False)
    _no_more_than_wanted(story)
    assert count > 15


def test_a_tick_killed_while_it_sends_a_candidate_to_trial_opens_one_change(story: Story) -> None:
    story.advance()
    _killed_everywhere(story, "tick", lambda: _to_an_open_change(story))
    _no_more_than_wanted(story)


def test_a_tick_killed_while_it_proposes_opens_one_change(story: Story) -> None:
    story.advance()
    story.advance()
    count = _killed_everywhere(story, "tick", lambda: _to_an_open_change(story))
    _no_more_than_wanted(story)
    assert count > 20


def test_a_pass_killed_while_a_merged_run_ends_says_farewell_once(story: Story) -> None:
    _to_an_open_change(story)
    (change,) = story.lane.changes()
    story.lane.forge.merge(change.change_id, author="ada", repository=str(story.lane.site.source()))
    over = lambda: story.until(lambda: not story.lane.site.live(), "the run is closed", "reconcile")  # noqa: E731
    _killed_everywhere(story, "reconcile", over)
    assert story.outcome()["markers"] == ["claimed", "ended:published"]
    assert story.outcome()["claims"] == [("published", "merged")]


def test_a_merge_that_is_killed_anywhere_is_made_once_and_found_again(story: Story) -> None:
    _to_an_open_change(story)
    (change,) = story.lane.changes()
    merge = ("changes", "merge", "tiny", change.change_id, "--author", "ada")

    def again() -> None:
        assert story.order(*merge).status == 0
        story.until(lambda: not story.lane.site.live(), "the run is closed", "reconcile")
        log = git(story.lane.site.source(), "log", "--format=%s", "--first-parent")
        assert log.count("Re-base score") == 1
        assert git(story.lane.site.source(), "status", "--porcelain") == ""

    _killed_everywhere(story, merge, again)
    assert story.outcome()["markers"] == ["claimed", "ended:published"]
    assert not story.lane.forge.order(story.order_id).open
