"""What a number was measured on, and whether this node ran out of memory meanwhile."""

from __future__ import annotations

import os
import platform
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_ROOT = Path("/")


@dataclass(frozen=True, slots=True)
class Node:
    """One compute node. ``cpu_model`` as the kernel prints it, or the architecture where it prints none."""

    name: str
    cpu_model: str


def this_node(root: Path = _ROOT) -> Node:
    """Return this host's name and CPU model."""
    model = platform.machine() or "unknown"
    with suppress(OSError):
        text = (root / "proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
        model = cpu_model(text) or model
    return Node(os.uname().nodename, model)


def cpu_model(cpuinfo: str) -> str | None:
    """Read the model out of /proc/cpuinfo (x86 ``model name``, POWER ``cpu``, Arm implementer and part); pure."""
    fields: dict[str, str] = {}
    for line in cpuinfo.splitlines():
        name, colon, value = line.partition(":")
        if colon and value.strip():
            fields.setdefault(name.strip(), " ".join(value.split()))
    if model := fields.get("model name") or fields.get("cpu"):
        return model
    if "CPU part" in fields:
        return f"Arm implementer {fields.get('CPU implementer', '?')} part {fields['CPU part']}"
    return None


def oom_kills(root: Path = _ROOT) -> int | None:
    """Return how many processes of this job's cgroup the kernel has killed for memory; None where it does not say."""
    try:
        memberships = (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    for line in memberships:
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        if controllers and "memory" not in controllers.split(","):
            continue
        base, file = (
            ("sys/fs/cgroup/memory", "memory.oom_control") if controllers else ("sys/fs/cgroup", "memory.events")
        )
        with suppress(OSError, ValueError, StopIteration):
            text = (root / base / path.lstrip("/") / file).read_text(encoding="ascii")
            return next(int(row.split()[1]) for row in text.splitlines() if row.startswith("oom_kill "))
    return None
