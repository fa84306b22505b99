"""Stub ``squeue`` and ``sacct`` that print prepared answers: real processes, real amounts of text, no cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from outerloop_hpc.slurm.parse import QUEUE_LETTERS, SEPARATOR
from outerloop_hpc.slurm.port import JobRef
from outerloop_hpc.slurm.query import IDS_PER_CALL, WANTED_COLUMNS

# The separator is part of the question, as with the real ones.
_SQUEUE = """#!/bin/sh
for last; do :; done
separator=${{last#%i}}
exec sed "s/\\x1f/${{separator%%%V*}}/g" {folder}/squeue.txt
"""
_SACCT = """#!/bin/sh
for last; do
  case "$last" in
    --helpformat) exec cat {folder}/columns.txt ;;
    --delimiter=*) separator=${{last#*=}} ;;
  esac
done
exec sed "s/\\x1f/$separator/g" "{folder}/sacct-${{last%%,*}}.txt"
"""
#: What the longer columns of a running job look like; all others get a short word.
_LONG = {
    "AllocTRES": "billing=1,cpu=1,mem=4000M,node=1",
    "ReqTRES": "billing=1,cpu=1,mem=4000M,node=1",
    "TRESUsageInTot": "cpu=00:01:02,energy=0,fs/disk=2035120,mem=13568K,pages=0,vmem=224200K",
    "TRESUsageInMax": "cpu=00:01:02,energy=0,fs/disk=2035120,mem=13568K,pages=0,vmem=224200K",
    "TRESUsageInAve": "cpu=00:01:02,energy=0,fs/disk=2035120,mem=13568K,pages=0,vmem=224200K",
    "TRESUsageOutTot": "energy=0,fs/disk=1051",
}


def make_stubs(folder: Path, jobs: Sequence[JobRef]) -> None:
    """Write both programs and their answers: every element of every job runs, accounting knows three rows of each."""
    folder.mkdir()
    ordered = sorted(jobs, key=lambda ref: int(ref.job_id or 0))
    answers = {"squeue.txt": "".join(queue_lines(ordered)), "columns.txt": WANTED_COLUMNS + "\n"}
    for start in range(0, len(ordered), IDS_PER_CALL):
        chunk = ordered[start : start + IDS_PER_CALL]
        answers[f"sacct-{chunk[0].job_id}.txt"] = "".join(accounting_lines(chunk))
    for name, text in answers.items():
        (folder / name).write_text(text, encoding="utf-8")
    # sbatch has to be there for the tool to believe in a cluster; a quiet pass does not start it.
    for name, text in (("squeue", _SQUEUE), ("sacct", _SACCT), ("sbatch", "#!/bin/sh\nexit 1\n")):
        (folder / name).write_text(text.format(folder=folder), encoding="utf-8")
        (folder / name).chmod(0o755)


def elements(ref: JobRef) -> list[str]:
    """Return the ids of a job's elements as Slurm prints them."""
    return [f"{ref.job_id}_{task}" for task in range(ref.elements)] if ref.elements > 1 else [f"{ref.job_id}"]


def queue_lines(jobs: Sequence[JobRef]) -> Iterator[str]:
    """Yield what squeue prints of running jobs: a line for each element."""
    for ref in jobs:
        submit = str(int(ref.submitted_at.timestamp()))
        said = {"V": submit, "T": "RUNNING", "u": ref.user, "P": "main", "N": "node1", "r": "None", "j": ref.name}
        for element in elements(ref):
            cells = {"i": element, **said}
            yield SEPARATOR.join(cells[letter] for letter in QUEUE_LETTERS) + "\n"


def accounting_lines(jobs: Sequence[JobRef]) -> Iterator[str]:
    """Yield what sacct prints of them: a head, then allocation, batch and extern of each element."""
    columns = WANTED_COLUMNS.split()
    yield SEPARATOR.join(columns) + "\n"
    for ref in jobs:
        submit = str(int(ref.submitted_at.timestamp()))
        times = {"Submit": submit, "Eligible": submit, "Start": submit, "End": "Unknown"}
        fixed = {**dict.fromkeys(columns, "1"), **_LONG, **times, "State": "RUNNING", "ExitCode": "0:0"}
        for element in elements(ref):
            for step, name, user in (("", ref.name, ref.user), (".batch", "batch", ""), (".extern", "extern", "")):
                own = {"JobID": f"{element}{step}", "JobName": name, "User": user, "Cluster": "c"}
                yield SEPARATOR.join({**fixed, **own}[column] for column in columns) + "\n"
