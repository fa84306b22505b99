"""What the slurm tier needs of a machine, and what of it is missing here."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from functools import cache

_PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"


@cache
def missing() -> tuple[str, ...]:
    """Return one line for each thing that keeps the slurm tier from running here; empty when it can run."""
    if os.geteuid() != 0:
        return ("the slurm tier needs root (namespaces and debootstrap)",)
    found = [
        f"the slurm tier needs {program}"
        for program in ("unshare", "nsenter", "mount", "pivot_root")
        if shutil.which(program, path=_PATH) is None
    ]
    if shutil.which("debootstrap", path=_PATH) is None and shutil.which("apt-get", path=_PATH) is None:
        found.append("the slurm tier needs debootstrap (and there is no apt-get to install it with)")
    if not found:
        found += _refused()
    return tuple(found)


def _refused() -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        argv = ["unshare", "--mount", "--pid", "--fork", "--net", "--uts", "mount", "-t", "tmpfs", "tmpfs", folder]
        done = subprocess.run(argv, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    return [f"the slurm tier needs namespaces, refused here: {done.stderr.strip()}"] if done.returncode else []


def in_ci(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether this is a CI run, where nothing may be skipped."""
    return environ.get("CI", "").lower() in {"true", "1"}
