"""The entry of the six programs: read the state, answer, write it, say it."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.fakeslurm import accounting, commands, faults, life, queue
from tests.fakeslurm.faults import Said
from tests.fakeslurm.model import Cluster, opened
from tests.fakeslurm.options import Call

PROGRAMS: dict[str, Callable[[Cluster, Call], Said]] = {
    "sbatch": commands.sbatch,
    "squeue": queue.squeue,
    "sacct": accounting.sacct,
    "scancel": commands.scancel,
    "scontrol": commands.scontrol,
    "sinfo": commands.sinfo,
}


def answer(cluster: Cluster, program: str, call: Call) -> Said:
    """Answer one call, under whatever fault or outage strikes it."""
    cluster.calls.append([program, *call.words])
    fault = faults.due(cluster, program)
    if program == "sacct":
        away = accounting.accounting_away(cluster)
        refusal = Said(err=life.dialect(cluster).database_down(), status=1)
        away = None if "--helpformat" in call.words else away
    else:
        refusal = commands.controller_away(program, call)
        away = refusal if "slurmctld" in cluster.down else None
    return faults.answered(fault, refusal, lambda: away or PROGRAMS[program](cluster, call))


def main(program: str, state: str, words: Sequence[str]) -> None:
    """Be that program; does not return."""
    if words and words[0] == "--version":
        with opened(Path(state)) as cluster:
            version = cluster.settings.version
        os.write(1, f"slurm {version}\n".encode())
        sys.exit(0)
    with opened(Path(state)) as cluster:
        said = answer(cluster, program, Call.here(words))
    if said.hangs:
        time.sleep(3600)
    os.write(2, said.err.encode())
    data = said.stdout()
    while data:
        data = data[os.write(1, data) :]
    if said.status < 0:
        os.kill(os.getpid(), -said.status)
    sys.exit(said.status)
