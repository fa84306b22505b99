"""The runtime port: a sandbox described in values, and the command line that makes it.

Builders are pure. Nothing here starts a process; the caller runs ``Prepared.argv`` with exactly ``Prepared.env``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path, PurePosixPath
from typing import Protocol

from outerloop_hpc.errors import ConfigError, NodeUnfit, TryLater

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
#: What a runtime itself may need of the caller's environment; nothing else of it is handed on.
HOST_VARIABLES = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TERM", "TZ", "XDG_RUNTIME_DIR", "USER", "LOGNAME")
DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"


class NotOnThisNode(ConfigError, NodeUnfit):  # noqa: N818 - states what happened
    """An image or its runtime is missing here; another node may well have it."""


class NotWorkingHere(TryLater, NodeUnfit):
    """An image or its runtime is here but cannot be read or started; another node may well do better."""


class Network(StrEnum):
    """What the command can reach. ``HOST``: it should have had nothing, but this runtime here cannot cut it off."""

    OFF = "off"
    ON = "on"
    HOST = "host"


@dataclass(frozen=True, slots=True)
class Bind:
    """One folder or file of the host inside the sandbox; read-only unless it says otherwise."""

    source: Path
    target: PurePosixPath
    writable: bool = False


@dataclass(frozen=True, slots=True)
class Sandbox:
    """What a command may see.

    Attributes:
        binds: what of the host is visible, and where.
        workdir: absolute path inside, where the command starts.
        scratch: existing folder on a node-local disk; /tmp and HOME of the sandbox live in it (``make_scratch``).
        env: the whole environment of the command beside what the image sets; never visible on a command line.
        network: whether the command may use the network.
        gpus: whether GPUs were asked for.
    """

    binds: tuple[Bind, ...]
    workdir: PurePosixPath
    scratch: Path
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    network: bool = False
    gpus: bool = False


@dataclass(frozen=True, slots=True)
class Prepared:
    """What to run.

    Attributes:
        argv: the command line; holds no value of the sandbox's environment.
        env: the complete environment for it.
        cwd: host folder to start it in.
        network: what it will be able to reach.
        notes: deviations from what was asked, for the record.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(repr=False)  # values must not reach a log by way of a traceback
    cwd: Path
    network: Network
    notes: tuple[str, ...] = ()


class Runtime(Protocol):
    """A way to run a command in a sandbox."""

    @property
    def name(self) -> str:
        """``apptainer``, ``singularity``, ``bubblewrap`` or ``none``."""
        ...

    def command(self, argv: Sequence[str], sandbox: Sandbox) -> Prepared:
        """Build the command line; raises ConfigError for what this runtime cannot express."""
        ...


def home(scratch: Path) -> Path:
    """Return the host folder that becomes HOME inside."""
    return scratch / "home"


def tmp(scratch: Path) -> Path:
    """Return the host folder that becomes /tmp inside."""
    return scratch / "tmp"


def make_scratch(scratch: Path) -> None:
    """Make the folders that a sandbox's HOME and /tmp are bound from; private to the user."""
    for folder in (scratch, home(scratch), tmp(scratch)):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def host_environment(environ: Mapping[str, str], scratch: Path) -> dict[str, str]:
    """Return the scrubbed environment in which a runtime itself starts: its own HOME and TMPDIR, no secrets."""
    kept = {name: environ[name] for name in HOST_VARIABLES if name in environ}
    kept.setdefault("PATH", DEFAULT_PATH)
    return {**kept, "HOME": str(home(scratch)), "TMPDIR": str(tmp(scratch))}


def checked(argv: Sequence[str], sandbox: Sandbox) -> None:
    """Refuse what no runtime can carry out.

    Raises:
        ConfigError: an empty command, a relative path, a bad variable name, or a NUL byte; the text names it.
    """
    if not argv or not argv[0]:
        raise ConfigError("the command to run in the sandbox is empty; give a program and its arguments")
    if any("\0" in part for part in argv):
        raise ConfigError(f"the command {argv[0]!r} has an argument with a NUL byte; no program can receive that")
    for path in (sandbox.workdir, sandbox.scratch, *(p for b in sandbox.binds for p in (b.source, b.target))):
        if not path.is_absolute() or "\0" in str(path) or ".." in path.parts:
            raise ConfigError(f"the sandbox path {str(path)!r} must be absolute, without '..' and NUL bytes")
    for name, value in sandbox.env.items():
        if not _NAME.match(name):
            raise ConfigError(f"the sandbox variable {name!r} is not a valid name; use letters, digits and '_'")
        if "\0" in value:
            raise ConfigError(f"the sandbox variable {name} holds a NUL byte; no program can receive that")


def on_host(sandbox: Sandbox, inside: PurePosixPath) -> Path:
    """Translate a path inside into the host path behind it (the deepest bind wins); unbound paths stay as they are."""
    best = max(
        (b for b in sandbox.binds if inside.is_relative_to(b.target)), key=lambda b: len(b.target.parts), default=None
    )
    return Path(inside) if best is None else best.source / inside.relative_to(best.target)


def current_environment() -> dict[str, str]:
    """Return this process's environment; builders take it as an argument, so that tests own it."""
    return dict(os.environ)
