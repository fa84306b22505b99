"""What settings may name: sbatch options that carry no promise of this tool, variables that steer no program. Pure."""

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


#: Variables that programs obey: a key in one of them would change what runs, or be taken for something else.
_STEERING: Final = frozenset(
    {"BASH_ENV", "ENV", "HOME", "IFS", "LANG", "LOGNAME", "PATH", "PWD", "SHELL", "TEMP", "TMP", "TMPDIR", "USER"}
)
_STEERING_FAMILIES: Final = (
    "APPTAINER",
    "GIT_",
    "LC_",
    "LD_",
    "OUTERLOOP_",
    "PYTHON",
    "SBATCH_",
    "SINGULARITY",
    "SLURM_",
    "SRUN_",
)


def refused_variable(name: str) -> str | None:
    """Say why no role finds its key in this variable; ``None`` when it may."""
    if name in _STEERING or name.startswith(_STEERING_FAMILIES):
        return f"{name} steers programs; a key goes into a variable of its own, such as MODEL_API_KEY"
    return None
