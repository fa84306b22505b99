"""kill -9 of a lane's jobs before every effect of their own: one session a claim, one change open, in the end the same."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.local.site import CHECKOUT, environment, wait_for
from tests.local.steward.lane import Lane, new_lane

pytestmark = [pytest.mark.local, pytest.mark.timeout(1200)]

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
        self.orders = [self.lane.order(f"Order {number}") for number in range(orders)]

    def settle(self) -> None:
        """Tick until every order has a change that is open and told."""

        def done() -> bool:
            wait_for(self.lane.site.jobs_gone, "what was started has ended", 600)
            self.lane.tick()
            return len(self.lane.changes()) == len(self.orders) and not self._unsaid()

        wait_for(done, "every order has its change", 900)

    def diaries(self, step: str) -> list[list[str]]:
        return [path.read_text(encoding="utf-8").split("\n")[:-1] for path in sorted(self.marks.glob(f"{step}-*"))]

    def _unsaid(self) -> list[str]:
        return [order for order in self.orders if "proposes" not in self.lane.comments(order)[-1].body]


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    for site in tmp_path.glob("site"):
        assert site.exists()


def test_probe(root: Path) -> None:
    killed = Killed(root, ("session", "validate", "measure"), 3)
    killed.settle()
    for step in ("session", "validate", "measure"):
        for d in killed.diaries(step)[-1:]:
            print(step, d)
    print(Counter(json.dumps(killed.lane.markers(o)) for o in killed.orders))
    print(len(killed.lane.sessions()))
