from __future__ import annotations

import pytest

from outerloop_hpc.slurm.environment import query_environment, submission_environment

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    "name",
    [
        "SLURM_JOB_ID",
        "SLURM_MEM_PER_NODE",
        "SBATCH_PARTITION",
        "SRUN_DEBUG",
        "SQUEUE_FORMAT",
        "SACCT_FORMAT",
        "PMI_FD",
        "SUBMITIT_FOLDER",
        "RANK",
    ],
)
def test_an_outer_job_does_not_reach_the_job_it_submits(name: str) -> None:
    assert name not in submission_environment({name: "1", "PATH": "/bin"})


@pytest.mark.parametrize(
    "name", ["MYSLURM_X", "SLURM", "SLURM_CONF", "SLURM_CONF_SERVER", "SLURM_JWT", "PATH", "HOME", "LANG"]
)
def test_the_way_to_the_cluster_and_what_only_looks_like_a_jobs_is_kept(name: str) -> None:
    assert submission_environment({name: "x"}) == {name: "x"}


def test_queries_print_the_same_whatever_the_users_habits() -> None:
    env = query_environment({"LC_ALL": "de_DE.UTF-8", "SLURM_TIME_FORMAT": "relative", "SLURM_BITSTR_LEN": "9"})
    assert env == {"LC_ALL": "C", "SLURM_TIME_FORMAT": "%s", "SLURM_BITSTR_LEN": "0"}


def test_a_job_keeps_the_users_locale() -> None:
    assert submission_environment({"LC_ALL": "de_DE.UTF-8"})["LC_ALL"] == "de_DE.UTF-8"
