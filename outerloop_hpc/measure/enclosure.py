"""The port to whatever contains a command; ``outerloop_hpc.container.enclosure`` has the real one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol


class Launch(Protocol):
    """A command line that runs inside."""

    @property
    def argv(self) -> tuple[str, ...]:
        """The whole command line."""
        ...

    @property
    def env(self) -> Mapping[str, str]:
        """Its complete environment."""
        ...

    @property
    def cwd(self) -> Path:
        """Host folder to start in."""
        ...

    @property
    def network(self) -> str:
        """``off``, ``on`` or ``host``."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """Deviations from what was asked."""
        ...


class Enclosure(Protocol):
    """Where measurements run."""

    @property
    def name(self) -> str:
        """The runtime's name."""
        ...

    @property
    def image_sha256(self) -> str | None:
        """The image's digest, if there is one."""
        ...

    def command(self, argv: Sequence[str], env: Mapping[str, str], folder: Path) -> Launch:
        """Build the command line for ``argv`` in the writable ``folder``."""
        ...

    def start_failure(self, status: int | None, stderr: str) -> str | None:
        """Return why the container did not start; None when the command itself ran."""
        ...
