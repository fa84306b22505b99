"""Processes of this host that cannot be mistaken for later ones with the same number."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from outerloop_hpc.slurm.processid import ProcessId


def boot_id() -> str:
    """Identify this boot of this host, so that a pid of before a reboot is not taken for a live one."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def start_ticks(pid: int) -> int | None:
    """Return when a process started, in clock ticks since boot; ``None`` when it is gone or a zombie."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in {"Z", "X"} else int(fields[19])


def this_process() -> ProcessId:
    """Identify the calling process."""
    return process_id(os.getpid())


def process_id(pid: int) -> ProcessId:
    """Identify a process of this host."""
    return ProcessId(pid, start_ticks(pid) or 0, boot_id(), socket.gethostname())


def alive(process: ProcessId) -> bool | None:
    """Whether this very process lives; ``None`` when it is on another host and cannot be asked from here."""
    if process.host != socket.gethostname():
        return None
    return process.boot == boot_id() and start_ticks(process.pid) == process.ticks
