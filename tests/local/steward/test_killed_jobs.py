"""kill -9 of a lane's jobs before every effect of their own: one session a claim, one change open at the end."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.local.site import CHECKOUT, environment, wait_for
from tests.local.steward.lane import new_lane

pytestmark = [pytest.mark.local, pytest.mark.timeout(2400)]

#: Read by every Python that is started; of each kind of step the n-th element to start dies before its effect n + 1.
_DEADLY = """\
import os, signal, sys
STEP = next((word.split(".")[2] for word in sys.orig_argv for word in word.split("/") if word.startswith("ol.")), "")
if "outerloop_hpc.slurm.element" in sys.orig_argv and STEP in DEADLY:
    number = 0
    while True:
        try:
            os.close(os.open(os.path.join(MARKS, f"{STEP}-{number:04d}"), os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            break
        except FileExistsError:
            number += 1
    from outerloop_hpc import effects
    count = 0
    with open(os.path.join(MARKS, f"{STEP}-{number:04d}"), "a") as diary:
        diary.write(next(word for word in sys.orig_argv if "/tries/" in word) + "\\n")
    def around(what, subject, action):
        global count
        count += 1
        if count == number + 1:
            os.kill(os.getpid(), signal.SIGKILL)
        with open(os.path.join(MARKS, f"{STEP}-{number:04d}"), "a") as diary:
            diary.write(f"{what} {os.path.basename(subject)}\\n")
        return action()
    effects.install(around)
"""


class Killed:
    """A lane with so many orders that the jobs of the last ones are not killed."""

    def __init__(self, root: Path, steps: tuple[str, ...], orders: int) -> None:
        self.marks, patches = root / "marks", root / "patches"
        self.marks.mkdir()
        patches.mkdir()
        text = _DEADLY.replace("MARKS", repr(str(self.marks))).replace("DEADLY", repr(steps))
        (patches / "sitecustomize.py").write_text(text, encoding="utf-8")
        env = {**environment(), "PYTHONPATH": os.pathsep.join([str(patches), str(CHECKOUT)])}
        self.lane = new_lane(root, env=env, steward={"live": orders, "seeds": 1})
        self.lane.site.extend(f"[limits]\nsubmissions_per_tick = 1000\nlive_runs = {2 * orders}\n")
        self.orders = [self.lane.order(f"Order {number}") for number in range(orders)]

    def settle(self) -> None:
        """Tick until every order has a change that is open and told."""

        def done() -> bool:
            wait_for(self.lane.site.jobs_gone, "what was started has ended", 600)
            self.lane.tick()
            return len(self.lane.changes()) == len(self.orders) and not self._unsaid()

        wait_for(done, "every order has its change", 900)

    def diaries(self, step: str) -> list[list[str]]:
        return [_lines(path)[1:] for path in sorted(self.marks.glob(f"{step}-*"))]

    def died_before(self, step: str) -> dict[str, int]:
        """Return, by order, before which effect (from 0) the first job of its first run died."""
        found = {}
        for number, path in enumerate(sorted(self.marks.glob(f"{step}-*"))[: len(self.orders)]):
            spec = json.loads((Path(_lines(path)[0]).parents[2] / "spec.json").read_bytes())
            found[spec["work"]["order"]["order_id"]] = number
        return found

    def _unsaid(self) -> list[str]:
        return [order for order in self.orders if "proposes" not in self.lane.comments(order)[-1].body]

    def sessions_of(self, order: str) -> int:
        """Count the sessions that were bought for an order."""
        return sum(f"## The order ({order}, by" in session["brief"] for session in self.lane.sessions())


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").split("\n")[:-1]


#: More than a job of the step has effects.
_SESSIONS, _TRIALS = 40, 28


def test_a_session_whose_job_is_killed_at_any_effect_is_bought_once_for_its_claim(tmp_path: Path) -> None:
    killed = Killed(tmp_path, ("session",), _SESSIONS)
    killed.settle()
    whole = killed.diaries("session")[_SESSIONS - 1]
    begun, held = whole.index("publish e0000.begun.json"), whole.index("publish e0000.session.json")
    agent = next(number for number, effect in enumerate(whole) if number > begun and effect.startswith("command "))
    assert agent < held
    assert whole[-1] == "publish e0000.record.json"
    assert len(whole) < _SESSIONS
    died = killed.died_before("session")
    assert sorted(died) == sorted(killed.orders)
    for order, number in died.items():
        # The jobs of the last ones did not die.
        lost = begun < number <= agent
        markers = ["claimed", "ended:failed", "claimed"] if lost else ["claimed"]
        where = f"killed before effect {number}: {whole[number] if number < len(whole) else 'none'}"
        assert killed.lane.markers(order) == markers, where
        assert killed.sessions_of(order) == 1, where
    assert [change.status for change in killed.lane.changes()] == ["open"] * _SESSIONS
    print(f"{len(whole)} kill points of a session's job, the session is lost before {agent - begun} of them: {whole}")


def test_a_trial_whose_jobs_are_killed_at_any_effect_opens_one_change(tmp_path: Path) -> None:
    killed = Killed(tmp_path, ("validate", "measure"), _TRIALS)
    killed.settle()
    for step in ("validate", "measure"):
        whole = max(killed.diaries(step), key=len)
        assert whole[-1] == "publish e0000.record.json"
        assert len(whole) < _TRIALS
        print(f"{len(whole)} kill points of a {step} job: {whole}")
    for order in killed.orders:
        assert (killed.lane.markers(order), killed.sessions_of(order)) == (["claimed"], 1)
    assert [change.status for change in killed.lane.changes()] == ["open"] * _TRIALS
