"""The text of slurm.conf and slurmdbd.conf for the test cluster; pure."""

from __future__ import annotations

from dataclasses import dataclass

NODES = ("n1", "n2", "n3")
CPUS = 16
MEMORY_MB = 16000
#: Slurm's own default end of the id range.
MAX_JOB_ID = 67043328
#: Seconds after which the controller gives up a silent slurmd.
SLURMD_TIMEOUT_S = 30
#: Slurm's own default, too: tests requeue, cancel and look at jobs that ended a while ago.
MIN_JOB_AGE_S = 300


@dataclass(frozen=True, slots=True)
class Settings:
    """What differs between test clusters.

    Attributes:
        accounting: with slurmdbd; otherwise ``accounting_storage/none``.
        min_job_age: seconds that the controller remembers an ended job.
        first_job_id: the id that the counter starts with (and goes back to after ``max_job_id``).
        max_job_id: ids stay below this one.
    """

    accounting: bool = True
    min_job_age: int = MIN_JOB_AGE_S
    first_job_id: int = 1
    max_job_id: int = MAX_JOB_ID


def slurm_conf(settings: Settings) -> str:
    """Return slurm.conf: three nodes, partitions main, low (preempted by requeue) and lowc (by cancel)."""
    accounting = (
        "AccountingStorageType=accounting_storage/slurmdbd\nAccountingStorageHost=127.0.0.1\n"
        if settings.accounting
        else "AccountingStorageType=accounting_storage/none\n"
    )
    nodes = "".join(
        f"NodeName={name} NodeHostname={name} NodeAddr=127.0.0.1 Port={17001 + index} CPUs={CPUS} "
        f"RealMemory={MEMORY_MB}\n"
        for index, name in enumerate(NODES)
    )
    return f"{_GENERAL.format(s=settings, slurmd_timeout=SLURMD_TIMEOUT_S)}{accounting}{nodes}{_PARTITIONS}"


def cgroup_conf(version: tuple[int, int]) -> str:
    """Return cgroup.conf for a Slurm that must live without cgroups; ``version`` as in (22, 5)."""
    return "CgroupPlugin=cgroup/v1\n" if version < (23, 11) else "CgroupPlugin=disabled\n"


_GENERAL = """\
ClusterName=test
SlurmctldHost=ctl(127.0.0.1)
SlurmUser=slurm
AuthType=auth/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
ReturnToService=1
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.%n.pid
SlurmdSpoolDir=/var/spool/slurmd.%n
StateSaveLocation=/var/spool/slurmctld
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=1
SlurmctldLogFile=/var/log/slurm/slurmctld.log
SlurmdLogFile=/var/log/slurm/slurmd.%n.log
MinJobAge={s.min_job_age}
FirstJobId={s.first_job_id}
MaxJobId={s.max_job_id}
KillWait=3
SlurmdTimeout={slurmd_timeout}
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=1,bf_interval=5
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
"""

_PARTITIONS = """\
PartitionName=main Nodes=ALL Default=YES MaxTime=1-00:00:00 DefMemPerCPU=100 State=UP PriorityTier=10
PartitionName=low Nodes=n2 MaxTime=1-00:00:00 DefMemPerCPU=100 State=UP PriorityTier=1 PreemptMode=REQUEUE
PartitionName=lowc Nodes=n2 MaxTime=1-00:00:00 DefMemPerCPU=100 State=UP PriorityTier=1 PreemptMode=CANCEL
"""

SLURMDBD_CONF = """\
AuthType=auth/munge
DbdHost=ctl
DbdAddr=127.0.0.1
SlurmUser=slurm
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=slurm
StoragePass=slurm
StorageLoc=slurm_acct_db
LogFile=/var/log/slurm/slurmdbd.log
PidFile=/run/slurmdbd.pid
"""

DATABASE_SQL = """\
create database if not exists slurm_acct_db;
create user if not exists 'slurm'@'localhost' identified by 'slurm';
grant all on slurm_acct_db.* to 'slurm'@'localhost';
"""
