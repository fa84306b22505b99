"""``python -m tests.bench.evaluations array|each FOLDER NUMBER PARALLEL``: evaluations on Slurm; prints JSON.

``array``: bare ``map_array`` of submitit. ``each``: as ShinkaEvolve does it, one ``sbatch`` and one ``squeue`` loop for
each evaluation, and as many under way as may be. It looks every ten seconds unless told otherwise; here, every two.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import submitit
from submitit.helpers import clean_env

from tests.bench.cells import own_seconds, run_command

_POLL_S = 2.0
_SCRIPT = """\
#!/bin/sh
#SBATCH --job-name=evaluation
#SBATCH --output={folder}/{number}.out
#SBATCH --time=5
#SBATCH --cpus-per-task=1
#SBATCH --mem=500
cd {folder}
exec python3 bench.py
"""


def array(folder: Path, number: int, parallel: int) -> list[float]:
    """Evaluate by one array; returns each command's own seconds."""
    executor = submitit.SlurmExecutor(folder=folder / "%j")
    executor.update_parameters(
        time=5, cpus_per_task=1, mem="500M", array_parallelism=parallel, job_name="evaluation", use_srun=False
    )
    with clean_env():
        jobs = executor.map_array(run_command, [str(folder)] * number)
    return [float(job.result()) for job in jobs]


def each(folder: Path, number: int, parallel: int) -> list[float]:
    """Evaluate by one job a time and place; returns each command's own seconds."""
    waiting, under_way = list(range(number)), list[str]()
    while waiting or under_way:
        while waiting and len(under_way) < parallel:
            under_way.append(_submitted(folder, waiting.pop(0)))
        time.sleep(_POLL_S)
        under_way = [job for job in under_way if _said(["squeue", "-j", job, "--noheader"]).strip()]
    return [own_seconds((folder / f"{one}.out").read_text(encoding="utf-8")) for one in range(number)]


def _submitted(folder: Path, number: int) -> str:
    script = folder / f"{number}.sh"
    script.write_text(_SCRIPT.format(folder=folder, number=number), encoding="utf-8")
    return _said(["sbatch", "--parsable", str(script)]).strip()


def _said(argv: Sequence[str]) -> str:
    """Return what one of Slurm's commands printed; a job that is forgotten is an error there, and is over."""
    return subprocess.run(argv, capture_output=True, text=True, check=argv[0] == "sbatch").stdout


if __name__ == "__main__":
    how, where, many, at_once = sys.argv[1:]
    begun = time.perf_counter()
    took = {"array": array, "each": each}[how](Path(where), int(many), int(at_once))
    print(json.dumps({"wall": time.perf_counter() - begun, "commands": took}))
