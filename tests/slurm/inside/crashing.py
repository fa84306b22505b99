"""Runs the command line and kills it with KILL at a chosen effect: ``crashing.py before|after KIND REGEX ARGS…``."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Callable
from typing import Any

from outerloop_hpc import effects
from outerloop_hpc.cli.main import main


def install(when: str, kind: str, pattern: str) -> None:
    """Die at the first effect of that kind whose subject matches."""

    def around(what: str, subject: str, action: Callable[[], Any]) -> Any:
        fatal = what == kind and re.search(pattern, subject) is not None
        if fatal and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        result = action()
        if fatal:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    effects.install(around)


if __name__ == "__main__":
    install(*sys.argv[1:4])
    sys.argv = ["outerloop-hpc", *sys.argv[4:]]
    main()
