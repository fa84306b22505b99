"""Process 1 of a test machine: reaps orphans until its standard input closes, which it also does when the test dies.

The kernel then kills everything else in the namespaces and drops their mounts. Standard library only.
"""

from __future__ import annotations

import os
import signal
import sys


def main() -> None:
    """Say that the machine is up, then wait for the end of standard input."""
    signal.signal(signal.SIGCHLD, _reap)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the test process, which then closes our input
    sys.stdout.write("up\n")
    sys.stdout.flush()
    while os.read(0, 4096):
        pass


def _reap(_signal: int, _frame: object) -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


if __name__ == "__main__":
    main()
