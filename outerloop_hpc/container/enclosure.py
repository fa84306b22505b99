"""One runtime, one image and one sandbox together: what a measurement or a session is started through."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from outerloop_hpc.container.failures import classify
from outerloop_hpc.container.image import ImageRef
from outerloop_hpc.container.runtime import Bind, Prepared, Runtime, Sandbox

#: Where the working folder appears inside.
WORK_INSIDE = PurePosixPath("/work")


@dataclass(frozen=True, slots=True)
class Enclosure:
    """Starts commands of one try.

    Attributes:
        runtime: how.
        sandbox: what is visible beside the working folder, which every call names; its ``env`` is the common part.
        image: in what; None for the host's own programs.
    """

    runtime: Runtime
    sandbox: Sandbox
    image: ImageRef | None = None

    @property
    def name(self) -> str:
        """The runtime's name."""
        return self.runtime.name

    @property
    def image_sha256(self) -> str | None:
        """The image's digest; None without an image."""
        return None if self.image is None else self.image.sha256

    def command(self, argv: Sequence[str], env: Mapping[str, str], folder: Path) -> Prepared:
        """Build the command line for ``argv`` in ``folder``, which it may write to.

        Raises:
            ConfigError: the runtime cannot express this sandbox.
        """
        binds = (Bind(folder, WORK_INSIDE, writable=True), *self.sandbox.binds)
        merged = {**self.sandbox.env, **env}
        return self.runtime.command(argv, replace(self.sandbox, binds=binds, env=merged, workdir=WORK_INSIDE))

    def start_failure(self, status: int | None, stderr: str) -> str | None:
        """Return why the container did not start, or None when the command itself ran."""
        found = classify(self.runtime.name, status, stderr)
        return None if found is None else found.message()
