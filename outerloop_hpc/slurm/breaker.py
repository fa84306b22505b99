"""A circuit breaker over Slurm's commands: a daemon that hangs costs a pass one time limit, not one for each command.

Each controller has a circuit, and slurmdbd, which sacct asks, has one of its own: either may be away without the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from outerloop_hpc.process import Finished, Runner
from outerloop_hpc.slurm.answers import unreachable

#: Who answers sacct, of whatever cluster.
ACCOUNTING = "slurmdbd"
#: sacct options for which nobody but sacct itself is asked.
_NO_QUESTION = "--helpformat"


def controller(cluster: str) -> str:
    """Name the controller of a cluster; empty for the default one."""
    return f"slurmctld of {cluster}" if cluster else "slurmctld"


class Breaker:
    """Runs commands, until their daemon fails to answer one; then says of each further one that it was not started.

    Attributes:
        failed: daemons that could not be spoken to since ``reset``, and what was said.
        answered: daemons that answered a command since then.
    """

    def __init__(self, run: Runner) -> None:
        self._run = run
        self._open: dict[str, str] = {}
        self.failed: dict[str, str] = {}
        self.answered: set[str] = set()

    def reset(self, opened: Mapping[str, str]) -> None:
        """Begin anew, as each pass does; ``opened`` are daemons that are not to be asked at all, and why."""
        self._open, self.failed, self.answered = dict(opened), {}, set()

    def why_not(self, daemon: str) -> str:
        """Say why this daemon is not asked now; empty when it may be."""
        return self._open.get(daemon, "")

    def __call__(
        self,
        argv: Sequence[str],
        *,
        timeout: float,
        env: Mapping[str, str] | None = None,
        stdin: bytes | None = None,
        cwd: Path | None = None,
    ) -> Finished:
        """Run one command of Slurm, or answer in its place that it was withheld."""
        daemon = _daemon_of(argv)
        if why := self._open.get(daemon):
            return Finished(tuple(argv), None, "", f"not asked: {why}", timed_out=False, seconds=0.0, withheld=True)
        finished = self._run(argv, timeout=timeout, env=env, stdin=stdin, cwd=cwd)
        if unreachable(finished):
            self.failed[daemon] = finished.complaint()
            self._open[daemon] = f"{daemon} did not answer in this pass ({finished.complaint()})"
        elif finished.ok and _NO_QUESTION not in argv:
            self.answered.add(daemon)
        return finished


def _daemon_of(argv: Sequence[str]) -> str:
    if Path(argv[0]).name == "sacct":
        return ACCOUNTING
    return controller(argv[argv.index("-M") + 1] if "-M" in argv else "")
