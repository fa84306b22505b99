"""No container at all: own HOME, own TMPDIR, environment by allowlist, and nothing more (pure)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from outerloop_hpc.container.runtime import Network, Prepared, Sandbox, checked, host_environment, on_host
from outerloop_hpc.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Uncontained:
    """Runs a command as it is, only for somebody who said so.

    Attributes:
        consent: must be True; the command can read and change whatever the user can.
        environ: the caller's environment; only what ``host_environment`` names is taken from it.
    """

    consent: bool
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)
    name: str = "none"

    def __post_init__(self) -> None:
        if self.consent is not True:
            raise ConfigError(
                "running without a container was not allowed: the command could read and change everything that you "
                "can; install apptainer or bubblewrap, or set `[container] uncontained = true`"
            )

    def command(self, argv: Sequence[str], sandbox: Sandbox) -> Prepared:
        """Build the command line; the working folder is the host folder behind ``sandbox.workdir``."""
        checked(argv, sandbox)
        env = {**host_environment(self.environ, sandbox.scratch), **sandbox.env}
        network = Network.ON if sandbox.network else Network.HOST
        notes = ("not contained: host files and network were within reach",)
        return Prepared(tuple(argv), env, on_host(sandbox, sandbox.workdir), network, notes)
