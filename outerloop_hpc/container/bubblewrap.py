"""Bubblewrap command lines (pure): the host's own programs, with nothing else of the host, for development."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from outerloop_hpc.container.runtime import DEFAULT_PATH, Network, Prepared, Sandbox, checked, home, tmp

HOME_INSIDE = "/home/outerloop"
#: What programs of the host need to run; all read-only, each only where it exists.
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt")
ETC = (
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/group",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/nsswitch.conf",
    "/etc/passwd",
    "/etc/pki/tls/certs",
    "/etc/ssl/certs",
)
_ETC_NETWORK = ("/etc/hosts", "/etc/resolv.conf")
_GPU_DEVICES = (*(f"/dev/nvidia{n}" for n in range(16)), "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools")


@dataclass(frozen=True, slots=True)
class Bubblewrap:
    """Runs the host's programs in namespaces of their own.

    Attributes:
        program: absolute path of ``bwrap``.
        tools: further folders of the host to show read-only at the same path (a Python outside /usr).
        cuts_network: whether a network namespace can be made here (found by the probe).
        environ: the caller's environment; only LANG and TZ are taken from it.
    """

    program: str
    tools: tuple[Path, ...] = ()
    cuts_network: bool = True
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)
    name: str = "bubblewrap"

    def command(self, argv: Sequence[str], sandbox: Sandbox) -> Prepared:
        """Build the command line; raises ConfigError for a sandbox that cannot be carried out."""
        checked(argv, sandbox)
        network, notes = self._network(sandbox)
        options = ["--unshare-all", "--die-with-parent", "--new-session", "--hostname", "outerloop"]
        if network is not Network.OFF:
            options.append("--share-net")
        options += ["--cap-drop", "ALL", *self._system(sandbox)]
        options += ["--proc", "/proc", "--dev", "/dev"]
        if sandbox.gpus:
            options += [part for device in _GPU_DEVICES for part in ("--dev-bind-try", device, device)]
        scratch_tmp = str(tmp(sandbox.scratch))
        options += ["--bind", scratch_tmp, "/tmp", "--bind", scratch_tmp, "/var/tmp"]  # noqa: S108 - inside paths
        options += ["--bind", str(home(sandbox.scratch)), HOME_INSIDE]
        for bind in sorted(sandbox.binds, key=lambda one: len(one.target.parts)):
            options += ["--bind" if bind.writable else "--ro-bind", str(bind.source), str(bind.target)]
        options += ["--chdir", str(sandbox.workdir), "--", *argv]
        return Prepared((self.program, *options), self._env(sandbox), sandbox.scratch, network, notes)

    def _system(self, sandbox: Sandbox) -> list[str]:
        shown = [*SYSTEM, *ETC, *(_ETC_NETWORK if sandbox.network else ()), *map(str, self.tools)]
        return [part for path in shown for part in ("--ro-bind-try", path, path)]

    def _env(self, sandbox: Sandbox) -> dict[str, str]:
        # bwrap hands its own environment on; --setenv would show the values to every user of the host.
        kept = {name: self.environ[name] for name in ("LANG", "LC_ALL", "LC_CTYPE", "TZ") if name in self.environ}
        path = ":".join([*(f"{tool}/bin" for tool in self.tools), DEFAULT_PATH])
        return {**kept, "PATH": path, "HOME": HOME_INSIDE, "TMPDIR": "/tmp", **sandbox.env}  # noqa: S108 - inside path

    def _network(self, sandbox: Sandbox) -> tuple[Network, tuple[str, ...]]:
        if sandbox.network:
            return Network.ON, ()
        if self.cuts_network:
            return Network.OFF, ()
        return Network.HOST, ("bubblewrap cannot switch the network off on this host; the command could use it",)
