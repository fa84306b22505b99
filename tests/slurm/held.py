"""A command of the tool that is held in the middle, so that something can go wrong right there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from outerloop_hpc.process import Finished
from tests.cluster.machine import Spawned
from tests.slurm.project import Project


class Held:
    """One command of the tool that waits at an effect until it is let go."""

    def __init__(self, project: Project, folder: str, command: Spawned) -> None:
        self._project, self._folder, self._command = project, folder, command

    def arrive(self) -> None:
        """Wait until it is there."""

        def there() -> bool:
            if self._command.running:
                return self._project.cluster.run(["test", "-e", f"{self._folder}/here"]).ok
            raise AssertionError(f"it never came there: {self._command.wait()}")

        self._project.wait(there, f"a command at {self._folder}")

    def finish(self, status: int, limit_s: float = 400.0) -> Finished:
        """Let it go on, wait for its end and expect its exit status."""
        self._project.cluster.check(["touch", f"{self._folder}/on"], user=self._project.user)
        done = self._command.wait(limit_s)
        assert done.status == status, f"{done.status}: {done.stdout}\n{done.stderr}"
        return done


@contextmanager
def held(project: Project, at: tuple[str, str, str], *arguments: str) -> Iterator[Held]:
    """Run a command of the tool up to an effect.

    Args:
        project: whose.
        at: (``before`` or ``after``, kind of effect, regular expression of its subject).
        arguments: of the command line.
    """
    folder = f"{project.folder}/held-{len(project.held)}"
    project.held.append(folder)
    command = project.start_script("pausing", *at, folder, *arguments)
    try:
        one = Held(project, folder, command)
        one.arrive()
        yield one
    finally:
        if command.running:
            command.kill()
