"""Apptainer and Singularity command lines (pure)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath

from outerloop_hpc.container.runtime import Network, Prepared, Sandbox, checked, home, host_environment
from outerloop_hpc.errors import ConfigError

#: HOME inside. Not below the real home's parent by accident: images rarely have users.
HOME_INSIDE = "/home/outerloop"
_EVALUATED = frozenset('$`\\"')


@dataclass(frozen=True, slots=True)
class Apptainer:
    """Runs a SIF image.

    Attributes:
        program: absolute path of ``apptainer`` or ``singularity``.
        image: the SIF file.
        name: ``apptainer`` or ``singularity``; decides the prefix of the variables.
        cuts_network: whether ``--net --network none`` works here (found by the probe).
        no_eval: whether ``--no-eval`` is known here. Without it a shell in the container evaluates every variable's
            value, commands in it included, so that values with shell characters are refused.
        environ: the caller's environment; only what the runtime itself needs is taken from it.
    """

    program: str
    image: Path
    name: str = "apptainer"
    cuts_network: bool = True
    no_eval: bool = True
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)

    def command(self, argv: Sequence[str], sandbox: Sandbox) -> Prepared:
        """Build the command line.

        Raises:
            ConfigError: a path holds ``:`` or ``,``, which ``--bind`` reads as its own syntax; or a value holds
                shell characters where they would be evaluated.
        """
        checked(argv, sandbox)
        self._require_plain_values(sandbox)
        options = ["--quiet", "exec", "--containall", "--cleanenv", *(["--no-eval"] if self.no_eval else [])]
        # Not --no-home: with it apptainer 1.4 leaves HOME without a folder. --home alone hides the real one.
        options += ["--home", f"{_plain(home(sandbox.scratch))}:{HOME_INSIDE}"]
        # The default /tmp is a small tmpfs; --workdir puts /tmp and /var/tmp on the node's own disk.
        options += ["--workdir", str(_plain(sandbox.scratch))]
        for bind in sandbox.binds:
            mode = "rw" if bind.writable else "ro"
            options += ["--bind", f"{_plain(bind.source)}:{_plain(bind.target)}:{mode}"]
        network, notes = self._network(sandbox)
        if network is Network.OFF:
            options += ["--net", "--network", "none"]
        if sandbox.gpus:
            options.append("--nv")
        options += ["--pwd", str(sandbox.workdir)]
        prefix = f"{self.name.upper()}ENV_"
        inside = {prefix + name: value for name, value in sandbox.env.items()}
        env = {**host_environment(self.environ, sandbox.scratch), **inside}
        return Prepared((self.program, *options, str(self.image), *argv), env, sandbox.scratch, network, notes)

    def _require_plain_values(self, sandbox: Sandbox) -> None:
        for name, value in sandbox.env.items():
            if not self.no_eval and not _EVALUATED.isdisjoint(value):
                raise ConfigError(
                    f'the sandbox variable {name} holds one of $ ` \\ " and this {self.name} has a shell evaluate '
                    "values (it lacks --no-eval); change the value, or use a newer apptainer"
                )

    def _network(self, sandbox: Sandbox) -> tuple[Network, tuple[str, ...]]:
        if sandbox.network:
            return Network.ON, ()
        if self.cuts_network:
            return Network.OFF, ()
        return Network.HOST, (f"{self.name} cannot switch the network off on this host; the command could use it",)


def _plain(path: PurePath) -> PurePath:
    if ":" in str(path) or "," in str(path):
        raise ConfigError(f"{str(path)!r} cannot be bound into a container: ':' and ',' belong to --bind; rename it")
    return path
