"""Which sbatch options a site or a step may set: those that carry no promise of this tool. Pure."""

from __future__ import annotations

import re
from typing import Final

#: sbatch options that the tool decides; another value would make it lose its jobs or misread their end.
OWNED_OPTIONS: Final = frozenset(
    {
        "array",
        "begin",
        "chdir",
        "clusters",
        "cpus-per-task",
        "dependency",
        "error",
        "exclude",
        "gid",
        "help",
        "hold",
        "input",
        "job-name",
        "kill-on-invalid-dep",
        "no-kill",
        "no-requeue",
        "nodes",
        "ntasks",
        "ntasks-per-node",
        "open-mode",
        "output",
        "parsable",
        "quiet",
        "requeue",
        "signal",
        "test-only",
        "time",
        "time-min",
        "uid",
        "usage",
        "verbose",
        "version",
        "wait",
        "wckey",
        "wrap",
    }
)


def refused_option(option: str) -> str | None:
    """Say why nobody but this tool sets this sbatch option; ``None`` when it is free.

    sbatch takes every unambiguous beginning of a long name, so ``job-n`` is ``job-name``.
    """
    if not re.fullmatch(r"[a-z][a-z0-9]+(-[a-z0-9]+)*", option):
        return f"{option!r} is not a long sbatch option; write it as in `mail-user`, without dashes in front"
    for owned in sorted(OWNED_OPTIONS):
        if owned.startswith(option):
            return f"{option!r} cannot be set here: outerloop-hpc decides --{owned} for each job"
    return None
