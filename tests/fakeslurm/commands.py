"""What sbatch, scancel, scontrol and sinfo do and say. Errors and exit codes as recorded."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from tests.fakeslurm import life
from tests.fakeslurm.dialect import NO_CONTROLLER
from tests.fakeslurm.faults import Said
from tests.fakeslurm.model import Cluster, Element, Job
from tests.fakeslurm.numbers import expand
from tests.fakeslurm.options import Call, Unrecognised, parse

_FLAGS = "--parsable --no-requeue --requeue --hold/-H --exclusive --signal-nothing"
_VALUED = (
    "--array/-a --begin/-b --chdir/-D --clusters/-M --comment --constraint/-C --cpus-per-task/-c --dependency/-d "
    "--error/-e --exclude/-x --gres --gpus/-G --job-name/-J --mem --mem-per-cpu --nodes/-N --nodelist/-w --ntasks/-n "
    "--ntasks-per-node --open-mode --output/-o --partition/-p --account/-A --qos/-q --signal --time/-t --wckey "
    "--gpus-per-node --wrap --export --nice"
)
_PARTITIONS = {"main", "low", "lowc", "debug"}


def _failed(why: str, status: int = 1) -> Said:
    return Said(err=f"sbatch: error: Batch job submission failed: {why}\n", status=status)


def sbatch(cluster: Cluster, call: Call) -> Said:
    """Take a batch script."""
    try:
        given, rest = parse(call.words, _FLAGS, _VALUED)
        wrapped = f"#!/bin/sh\n{given['--wrap']}\n" if "--wrap" in given else ""
        script = wrapped or Path(call.cwd, rest[0]).read_text(encoding="utf-8")
        in_script, _ = parse(_directives(script), _FLAGS, _VALUED)
    except Unrecognised as odd:
        return Said(err=f"sbatch: unrecognized option '{odd}'\n", status=1)
    except FileNotFoundError as missing:
        return Said(err=f"sbatch: error: Unable to open file {missing.filename}\n", status=1)
    asked = in_script | given
    if refusal := _refusal(cluster, asked):
        return refusal
    job = _job(cluster, call, asked, script)
    life.submit(cluster, job)
    named = f";{asked['--clusters']}" if "--clusters" in asked else ""
    return Said(f"{job.id}{named}\n" if "--parsable" in asked else f"Submitted batch job {job.id}\n")


def _directives(script: str) -> list[str]:
    lines = (line for line in script.splitlines() if line.startswith("#SBATCH "))
    return [word for line in lines for word in shlex.split(line.removeprefix("#SBATCH "), comments=True)]


def _refusal(cluster: Cluster, asked: dict[str, str]) -> Said | None:
    if not re.fullmatch(r"[0-9:-]+", asked.get("--time", "60")):
        return Said(err="sbatch: error: Invalid --time specification\n", status=255)
    if (named := asked.get("--partition", "main")) not in _PARTITIONS:
        first = f"sbatch: error: invalid partition specified: {named}\n"
        return Said(err=first + _failed("Invalid partition name specified").err, status=1)
    if "--array" in asked and max(expand(asked["--array"])[0]) >= cluster.settings.max_array_size:
        return _failed("Invalid job array specification")
    return None


def _job(cluster: Cluster, call: Call, asked: dict[str, str], script: str) -> Job:
    tasks, limit = expand(asked["--array"]) if "--array" in asked else ([], 0)
    begin = re.fullmatch(r"now\+(\d+)(?:seconds)?", asked.get("--begin", ""))
    after = re.fullmatch(r"afterany:([0-9:]+)", asked.get("--dependency", ""))
    job = Job(
        id=_next_id(cluster),
        name=asked.get("--job-name", "wrap" if "--wrap" in asked else "sbatch"),
        user=call.user,
        uid=call.uid,
        partition=asked.get("--partition", "main"),
        minutes=int(asked.get("--time", "60").partition(":")[0]),
        cpus=int(asked.get("--cpus-per-task", "1")),
        workdir=asked.get("--chdir", call.cwd),
        output=asked.get("--output", "slurm-%j.out"),
        script=script,
        env=dict(call.env),
        begin=cluster.now + int(begin[1]) if begin else 0.0,
        after=[int(one) for one in after[1].split(":")] if after else [],
        held="--hold" in asked,
        requeue="--no-requeue" not in asked,
        parallel=limit,
        exclude=asked.get("--exclude", "").split(",") if asked.get("--exclude") else [],
    )
    # Every element of an array has an id of its own; the last one's is the array's.
    job.elements = [Element(_next_id(cluster), task) for task in tasks[:-1]] if tasks else []
    job.elements.append(Element(job.id, tasks[-1] if tasks else None))
    return job


def _next_id(cluster: Cluster) -> int:
    taken = {number for job, one in life.elements(cluster) if life.listed(cluster, one) for number in (job.id, one.raw)}
    while cluster.next_id >= cluster.settings.max_job_id or cluster.next_id in taken:
        cluster.next_id = 1 if cluster.next_id >= cluster.settings.max_job_id else cluster.next_id + 1
    found, cluster.next_id = cluster.next_id, cluster.next_id + 1
    return found


def scancel(cluster: Cluster, call: Call) -> Said:
    """Cancel by id or by name and user; what is unknown or over is fine."""
    given, rest = parse(call.words, "--quiet/-Q", "--user/-u --name/-n --clusters/-M --signal/-s --state/-t")
    wanted = list(rest) or ([""] if "--name" in given else [])
    for text in wanted:
        for job, element in list(life.elements(cluster)):
            named = given.get("--name", job.name) == job.name and given.get("--user", job.user) == job.user
            allowed = call.uid in {0, job.uid}
            if named and allowed and (not text or meant(cluster, text, job, element)):
                life.cancel(cluster, job, element, call.uid, alone="_" in text)
    return Said()


def meant(cluster: Cluster, text: str, job: Job, element: Element) -> bool:
    """Whether ``12``, ``12_3`` or ``12_[0-2]`` means this element (of the newest job of that id)."""
    base, _, tasks = text.partition("_")
    if not base.isdigit() or job not in cluster.known(int(base)):
        return False
    return not tasks or element.task in expand(tasks.strip("[]"))[0]


def scontrol(cluster: Cluster, call: Call) -> Said:
    """``show config``, ``show job``, ``requeue``, ``hold``, ``release``, ``update job=… partition=…``."""
    _, rest = parse(call.words, "--oneliner/-o", "--clusters/-M")
    what, words = rest[0], rest[1:]
    if what == "show" and words[0] == "config":
        told = cluster.settings
        return Said(
            f"Configuration data as of 2026-11-29T12:00:00\nMaxArraySize            = {told.max_array_size}\n"
            f"MaxJobId                = {told.max_job_id}\nMinJobAge               = {told.min_job_age_s:g} sec\n"
            f"SLURM_VERSION           = {told.version}\n"
        )
    job_id = (words[1] if what == "show" else words[0]).removeprefix("JobId=").removeprefix("job=")
    found = [(job, one) for job, one in life.elements(cluster) if meant(cluster, job_id, job, one)]
    found = [(job, one) for job, one in found if life.listed(cluster, one)]
    if not found:
        no_id = "Invalid job id specified"
        return Said(
            err=f"slurm_load_jobs error: {no_id}\n" if what == "show" else f"{no_id} for job {job_id}\n", status=1
        )
    if what == "requeue" and not all(job.requeue for job, _ in found):
        return Said(err=f"Requested operation is presently disabled for job {job_id}\n", status=1)
    for job, element in found:
        _controlled(cluster, what, words, job, element)
    return Said("".join(_shown(job, one) for job, one in found) if what == "show" else "")


def _controlled(cluster: Cluster, what: str, words: list[str], job: Job, element: Element) -> None:
    if what == "requeue":
        if life.live(element):
            life.end(cluster, job, element, "REQUEUED")
        life.requeue(cluster, job, element, by_hand=True)
    elif what in {"hold", "release"}:
        job.held = what == "hold"
        element.reason = "JobHeldUser" if job.held else "None"
        element.last.eligible = None if job.held else cluster.now
    elif what == "update":
        for word in words[1:]:
            key, _, value = word.lower().partition("=")
            _updated(cluster, job, element, key, value)


def _updated(cluster: Cluster, job: Job, element: Element, key: str, value: str) -> None:
    match key:
        case "partition":
            job.partition = value
        case "requeue":
            job.requeue = value == "1"
        case "starttime":
            job.begin = cluster.now + int(value.removeprefix("now+"))
            element.last.eligible = job.begin
            element.last.note(cluster.now, eligible=job.begin)


def _shown(job: Job, element: Element) -> str:
    array = "" if element.task is None else f" ArrayJobId={job.id} ArrayTaskId={element.task}"
    return (
        f"JobId={element.raw}{array} JobName={job.name}\n   JobState={element.state} Reason={element.reason}\n"
        f"   Requeue=0 Restarts={len(element.attempts) - 1}\n   Partition={job.partition}\n\n"
    )


def sinfo(cluster: Cluster, call: Call) -> Said:
    """Name the nodes, and say that they are there."""
    given, _ = parse(call.words, "--noheader/-h --Node/-N", "--format/-o --clusters/-M --partition/-p")
    busy = {one.last.node for _, one in life.elements(cluster) if life.live(one) and one.last.start is not None}
    head = "" if "--noheader" in given else "NODELIST STATE\n"
    return Said(head + "".join(f"{node} {'mixed' if node in busy else 'idle'}\n" for node in life.NODES))


def controller_away(command: str, call: Call) -> Said:
    """What the clients of slurmctld say when it is not there."""
    match command:
        case "sbatch":
            return _failed(NO_CONTROLLER)
        case "scancel":
            ids = " ".join(word for word in call.words if word[:1].isdigit())
            return Said(err=f"scancel: error: Kill job error on job id {ids}: {NO_CONTROLLER}\n", status=8)
        case "scontrol" if call.words[0] == "requeue":
            return Said(err=f"Unexpected message received for job {call.words[1]}\n", status=1)
        case _:
            return Said(err=f"slurm_load_jobs error: {NO_CONTROLLER}\n", status=1)
