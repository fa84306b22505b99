"""One of several passes at the very same moment: ``together.py COUNT FOLDER``.

No polite lock. Each pass waits at its first order claim, and again at its first journal commit, until all are there:
so all of them have looked, planned and decided before any of them commits.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from outerloop_hpc import effects
from outerloop_hpc.cli.session import Session
from outerloop_hpc.cli.wiring import build_lanes
from outerloop_hpc.engine.tick import Pass

_BARRIERS = {"claim": r"/claims/", "commit": r"/journal/00000001\.json$"}
_LIMIT_S = 400.0


def install(count: int, folder: Path) -> None:
    """Wait for the others at the first publication of each kind."""
    waiting = dict(_BARRIERS)

    def around(what: str, subject: str, action: Callable[[], Any]) -> Any:
        for name, pattern in list(waiting.items()):
            if what == "publish" and re.search(pattern, subject):
                del waiting[name]
                _meet(folder / name, count)
        return action()

    effects.install(around)


def _meet(folder: Path, count: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / str(os.getpid())).touch()
    limit = time.monotonic() + _LIMIT_S
    while len(list(folder.iterdir())) < count:
        if time.monotonic() > limit:
            sys.exit(f"nobody else came to {folder}")
        time.sleep(0.01)


if __name__ == "__main__":
    install(int(sys.argv[1]), Path(sys.argv[2]))
    here = Session()
    with here.targets() as targets:
        result = Pass(here.engine, launch=True, lanes=build_lanes(targets, here.engine.hands.forges)).run()
    print(json.dumps({"submitted": result.submitted, "faults": result.faults, "problems": result.problems}))
