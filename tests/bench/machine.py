"""What the figures were measured on."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from pathlib import Path

from outerloop_hpc import __version__

_PACKAGES = ("submitit", "pydantic", "typer", "GitPython")


def describe() -> list[str]:
    """Return the machine in lines: CPU, memory, kernel, Python, versions."""
    packages = ", ".join(f"{name} {version(name)}" for name in _PACKAGES)
    return [
        f"CPU: {cpu_model(_text('/proc/cpuinfo'))}, {len(os.sched_getaffinity(0))} cores",
        f"memory: {memory_gib(_text('/proc/meminfo')):.1f} GiB",
        f"system: {platform.system()} {platform.release()}",
        f"Python {platform.python_version()}, outerloop-hpc {__version__}, {packages}",
        f"load before: {' '.join(_text('/proc/loadavg').split()[:3])}",
    ]


def cpu_model(cpuinfo: str) -> str:
    """Return the first model name of /proc/cpuinfo; some architectures give none."""
    for line in cpuinfo.splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "model name":
            return value.strip()
    return platform.machine()


def memory_gib(meminfo: str) -> float:
    """Return MemTotal of /proc/meminfo in GiB, 0 when it is not said."""
    for line in meminfo.splitlines():
        if line.startswith("MemTotal:"):
            return int(line.split()[1]) / 2**20
    return 0.0


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError:
        return ""
