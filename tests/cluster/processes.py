"""Processes of a test machine as the host's /proc shows them."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Process:
    """A process of the machine: its id on the host and inside, its hostname namespace, its name and argv."""

    host_pid: int
    pid: int
    uts: str
    name: str
    argv: tuple[str, ...]

    def kill(self, sig: signal.Signals = signal.SIGKILL) -> None:
        """Send a signal; gone already is fine."""
        with suppress(ProcessLookupError):
            os.kill(self.host_pid, sig)


def namespace(pid: int, kind: str) -> str:
    """Return the identity of a process's namespace (``pid``, ``uts``, …)."""
    return str((_PROC / str(pid) / "ns" / kind).readlink())


def processes_in(pid_namespace: str) -> list[Process]:
    """Return every process of a pid namespace; one that ends meanwhile is left out."""
    found = []
    for pid in _pids():
        with suppress(OSError):
            if namespace(pid, "pid") == pid_namespace:
                found.append(_process(pid))
    return found


def child_of(parent: int) -> int | None:
    """Return a child of a process, if it has one."""
    for pid in _pids():
        with suppress(OSError):
            # The name stands in parentheses and may hold anything; the parent is the second field after it.
            if int(_text(pid, "stat").rpartition(")")[2].split()[1]) == parent:
                return pid
    return None


def _pids() -> Iterator[int]:
    return (int(folder.name) for folder in _PROC.iterdir() if folder.name.isdigit())


def _process(pid: int) -> Process:
    inner = re.search(r"^NSpid:\s+(.+)$", _text(pid, "status"), re.MULTILINE)
    argv = _text(pid, "cmdline").rstrip("\0").split("\0")
    return Process(
        host_pid=pid,
        pid=int(inner.group(1).split()[-1]) if inner else 0,
        uts=namespace(pid, "uts"),
        name=_text(pid, "comm").rstrip("\n"),
        argv=tuple(argv),
    )


def _text(pid: int, name: str) -> str:
    return (_PROC / str(pid) / name).read_bytes().decode("utf-8", errors="replace")
