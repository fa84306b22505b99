"""What squeue prints."""

from __future__ import annotations

from collections.abc import Iterator

from tests.fakeslurm import life
from tests.fakeslurm.commands import meant
from tests.fakeslurm.faults import Said
from tests.fakeslurm.model import Cluster, Element, Job, element_name
from tests.fakeslurm.numbers import bracketed, collapsed, shown_time
from tests.fakeslurm.options import Call, parse

_COMPACT = {"PENDING": "PD", "RUNNING": "R", "COMPLETED": "CD", "CANCELLED": "CA", "FAILED": "F", "NODE_FAIL": "NF"}


def squeue(cluster: Cluster, call: Call) -> Said:
    """List what the controller knows; queued elements of an array stand in one line unless ``-r``."""
    valued = "--user/-u --states/-t --format/-o --jobs/-j --clusters/-M --partition/-p --name/-n"
    given, _ = parse(call.words, "--noheader/-h --all/-a --array/-r", valued)
    if given.get("--clusters", cluster.settings.cluster) != cluster.settings.cluster:
        return _no_cluster(cluster, given["--clusters"])
    wanted = given["--jobs"].split(",") if "--jobs" in given else []
    known = [(job, one) for job, one in life.elements(cluster) if life.listed(cluster, one)]
    if len(wanted) == 1 and not any(meant(cluster, wanted[0], *each) for each in known):
        return Said(err="slurm_load_jobs error: Invalid job id specified\n", status=1)
    users = given["--user"].split(",") if "--user" in given else []
    ended = given.get("--states", "") == "all"
    chosen = [
        (job, one)
        for job, one in known
        if (not users or job.user in users)
        and (ended or life.live(one))
        and (not wanted or any(meant(cluster, text, job, one) for text in wanted))
    ]
    form = given.get("--format", "%i %T")
    head = "" if "--noheader" in given else _formatted(form, {letter: letter for letter in "iAVTtuPNrjSM"}) + "\n"
    whole = call.env.get("SLURM_BITSTR_LEN") == "0" and not cluster.settings.bitstr_cut
    lines = _grouped(cluster, chosen, whole=whole, each="--array" in given)
    clock = call.env.get("SLURM_TIME_FORMAT") == "%s"
    return Said(
        head + "".join(_formatted(form, _cells(cluster, job, one, shown, clock)) + "\n" for job, one, shown in lines)
    )


def _no_cluster(cluster: Cluster, named: str) -> Said:
    said = (
        f"squeue: error: No cluster '{named}' known by database.\n"
        f"squeue: error: '{named}' can't be reached now, or it is an invalid entry for --cluster.  "
        "Use 'sacctmgr list clusters' to see available clusters.\n"
    )
    return Said(err=said + life.dialect(cluster).lost_cluster, status=1)


def _grouped(
    cluster: Cluster, chosen: list[tuple[Job, Element]], *, whole: bool, each: bool
) -> Iterator[tuple[Job, Element, str]]:
    for job in cluster.jobs:
        ours = [one for of, one in chosen if of is job]
        fresh = [one for one in ours if _queued_together(one)] if not each else []
        if len(fresh) > 1 or (fresh and len(job.elements) > 1):
            shown = collapsed((one.task or 0 for one in fresh), job.parallel)
            yield job, fresh[0], bracketed(str(job.id), shown, whole=whole, ends=False)
        else:
            fresh = []
        for one in ours:
            if one not in fresh:
                yield job, one, element_name(job, one)


def _queued_together(element: Element) -> bool:
    return element.task is not None and element.state == "PENDING" and len(element.attempts) == 1


def _cells(cluster: Cluster, job: Job, element: Element, shown: str, epoch: bool) -> dict[str, str]:
    attempt = element.last
    return {
        "i": shown,
        "A": str(element.raw),
        "V": shown_time(attempt.submit, epoch),
        "T": element.state,
        "t": _COMPACT.get(element.state, element.state[:2]),
        "u": job.user,
        "P": job.partition,
        "N": attempt.node,
        "r": life.reason(cluster, job, element),
        "j": job.name,
        "S": shown_time(attempt.start, epoch) if attempt.start else "N/A",
        "M": "0:00",
    }


def _formatted(form: str, cells: dict[str, str]) -> str:
    parts = form.split("%")
    return parts[0] + "".join(cells.get(part[:1], f"%{part[:1]}") + part[1:] for part in parts[1:])
