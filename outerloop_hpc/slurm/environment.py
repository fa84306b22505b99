"""The environment in which Slurm's clients run: no options of an outer job, but the way to the cluster kept."""

from __future__ import annotations

from collections.abc import Mapping

#: Variables of an outer job or of a user's habits that would change what a Slurm client does.
_PREFIXES = (
    "SLURM_",
    "SLURMD_",
    "SBATCH_",
    "SRUN_",
    "SQUEUE_",
    "SACCT_",
    "SCANCEL_",
    "PMI_",
    "PMIX_",
    "SUBMITIT_",
)

#: Not options but where the cluster is and who we are there; without them some sites' clients reach nothing.
_KEPT = ("SLURM_CONF", "SLURM_CONF_SERVER", "SLURM_JWT")

#: What a distributed launcher around us would smuggle into a job (the list of submitit's ``clean_env``).
_LAUNCHER = ("MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")


def submission_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return what sbatch gets, and with it the job: a submission from inside a job must not inherit that job."""
    smuggled = (name for name in environ if name.startswith(_PREFIXES) and name not in _KEPT)
    dropped = {*smuggled, *_LAUNCHER}
    return {name: value for name, value in environ.items() if name not in dropped}


def query_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return what squeue, sacct and scontrol get: the same output whatever the user's locale and habits are."""
    fixed = {"LC_ALL": "C", "SLURM_TIME_FORMAT": "%s", "SLURM_BITSTR_LEN": "0"}
    return submission_environment(environ) | fixed
