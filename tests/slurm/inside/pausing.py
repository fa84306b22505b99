"""Runs the command line and holds it at a chosen effect: ``pausing.py before|after KIND REGEX FOLDER ARGS…``.

At the first such effect it makes ``FOLDER/here`` and goes on when somebody makes ``FOLDER/on``.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from outerloop_hpc import effects
from outerloop_hpc.cli.main import main

_LIMIT_S = 400.0


def install(when: str, kind: str, pattern: str, folder: Path) -> None:
    """Wait at the first effect of that kind whose subject matches."""
    folder.mkdir(parents=True, exist_ok=True)

    def around(what: str, subject: str, action: Callable[[], Any]) -> Any:
        here = what == kind and re.search(pattern, subject) is not None and not (folder / "here").exists()
        if here and when == "before":
            _hold(folder)
        result = action()
        if here and when == "after":
            _hold(folder)
        return result

    effects.install(around)


def _hold(folder: Path) -> None:
    (folder / "here").touch()
    limit = time.monotonic() + _LIMIT_S
    while not (folder / "on").exists():
        if time.monotonic() > limit:
            sys.exit(f"nobody made {folder / 'on'}")
        time.sleep(0.05)


if __name__ == "__main__":
    when, kind, pattern, folder = sys.argv[1:5]
    install(when, kind, pattern, Path(folder))
    sys.argv = ["outerloop-hpc", *sys.argv[5:]]
    main()
