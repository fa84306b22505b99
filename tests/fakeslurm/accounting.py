"""What sacct prints: rows by id, or by name within a window of eligible times."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.fakeslurm import life
from tests.fakeslurm.dialect import NAMELESS, NO_ACCOUNTING
from tests.fakeslurm.faults import Said
from tests.fakeslurm.model import Cluster, Element, Job, element_name
from tests.fakeslurm.numbers import bracketed, collapsed, shown_time
from tests.fakeslurm.options import Call, Unrecognised, parse

#: What accounting of 22.05 says of a job in its first seconds, beside the id, the state and the times.
_HALF_KNOWN = {
    "User": "root",
    "UID": "0",
    "Partition": "",
    "QOS": "Unknown",
    "TimelimitRaw": "",
    "AllocCPUS": "0",
    "ReqCPUS": "0",
    "NNodes": "0",
    "ReqMem": "18446744073709551616.00M",
    "ReqTRES": "",
}


def sacct(cluster: Cluster, call: Call) -> Said:
    """List accounting rows: by id, or by name within a window of eligible times."""
    lags = life.dialect(cluster)
    flags = "--allusers/-a --duplicates/-D --parsable2/-P --allocations/-X --noheader/-n --noconvert --helpformat"
    flags += " --array" if lags.version >= "23.02" else ""
    valued = "--format/-o --jobs/-j --name --user/-u --starttime/-S --endtime/-E --clusters/-M --delimiter --state/-s"
    try:
        given, _ = parse(call.words, flags, valued)
    except Unrecognised as odd:
        return Said(err=f"sacct: unrecognized option '{odd}'\n", status=1)
    if "--helpformat" in given:
        words = lags.columns()
        fours = (words[at : at + 4] for at in range(0, len(words), 4))
        return Said("".join("".join(f"{word:<20}" for word in four) + "\n" for four in fours))
    columns = given.get("--format", "JobID,JobName,Partition,Account,AllocCPUS,State,ExitCode").split(",")
    if unknown := [column for column in columns if column not in lags.columns()]:
        return Said(err=f'sacct: error: Invalid field requested: "{unknown[0]}"\n', status=1)
    between = given.get("--delimiter", "|")
    head = "" if "--noheader" in given else between.join(columns) + "\n"
    if given.get("--clusters", cluster.settings.cluster) != cluster.settings.cluster:
        return Said(head)
    rows = _accounted(cluster, call, given)
    return Said(head + "".join(between.join(row.get(column, "") for column in columns) + "\n" for row in rows))


def accounting_away(cluster: Cluster) -> Said | None:
    """What sacct says without accounting, or without its daemon; None when both are there."""
    if not cluster.settings.accounting:
        return Said(err=NO_ACCOUNTING, status=1)
    return Said(err=life.dialect(cluster).database_down(), status=1) if "slurmdbd" in cluster.down else None


def _accounted(cluster: Cluster, call: Call, given: dict[str, str]) -> Iterator[dict[str, str]]:
    ids = set(given["--jobs"].split(",")) if "--jobs" in given else set()
    names = set(given["--name"].split(",")) if "--name" in given else set()
    users = set(given["--user"].split(",")) if "--user" in given else set()
    allowed = {call.user} if "--allusers" not in given and not users else users
    for job in cluster.jobs:
        if ids and str(job.id) not in ids:
            continue
        found = [pair for pair in _rows_of(cluster, job) if not allowed or job.user in allowed]
        if names:
            found = [(one, row) for one, row in found if row["name"] in names and _in_window(cluster, row, given)]
        elif not ids:
            found = [(one, row) for one, row in found if _in_window(cluster, row, given)]
        yield from _printed(cluster, call, job, found, given, cluster.jobs)


def _rows_of(cluster: Cluster, job: Job) -> list[tuple[Element, dict[str, Any]]]:
    every = ((element, attempt) for element in job.elements for attempt in element.attempts)
    told = ((element, attempt, life.told(cluster, attempt)) for element, attempt in every)
    return [(element, {"name": job.name, **row, "attempt": attempt}) for element, attempt, row in told if row]


def _in_window(cluster: Cluster, row: dict[str, Any], given: dict[str, str]) -> bool:
    """Whether a search without ids finds a row: never without an eligible time, nor with one after the window."""
    until = cluster.now + (3600 if given.get("--endtime", "").startswith("now+") else 0)
    return row["eligible"] is not None and row["eligible"] <= until


def _printed(
    cluster: Cluster,
    call: Call,
    job: Job,
    found: list[tuple[Element, dict[str, Any]]],
    given: dict[str, str],
    jobs: list[Job],
) -> Iterator[dict[str, str]]:
    if "--duplicates" not in given:
        later = {one.id for one in jobs if one.id == job.id and one is not job and _newer(cluster, one, job)}
        found = [] if later else list({element.raw: (element, row) for element, row in found}.values())
    whole = call.env.get("SLURM_BITSTR_LEN") == "0" and not cluster.settings.bitstr_cut
    epoch = call.env.get("SLURM_TIME_FORMAT") == "%s"
    together = [one for one, _ in found if one.task is not None and not one.apart]
    together = together if "--array" not in given and len(together) > 1 else []
    for element, row in found:
        if element in together:
            if element is together[0]:
                shown = collapsed((one.task or 0 for one in together), job.parallel)
                name = bracketed(str(job.id), shown, whole=whole, ends=True)
                yield _row(cluster, job, element, row, name, epoch)
            continue
        yield _row(cluster, job, element, row, element_name(job, element), epoch)
        if row["start"] is not None and "--allocations" not in given:
            yield _batch(cluster, job, element, row, epoch)


def _newer(cluster: Cluster, other: Job, than: Job) -> bool:
    return bool(_rows_of(cluster, other)) and other.elements[0].last.submit > than.elements[0].last.submit


def _row(cluster: Cluster, job: Job, element: Element, row: dict[str, Any], name: str, epoch: bool) -> dict[str, str]:
    whole = _whole_row(cluster, job, element, row, name, epoch)
    return {**whole, **_HALF_KNOWN} if row["name"] == NAMELESS else whole


def _whole_row(
    cluster: Cluster, job: Job, element: Element, row: dict[str, Any], name: str, epoch: bool
) -> dict[str, str]:
    lags, attempt = life.dialect(cluster), row["attempt"]
    started = row["start"] is not None
    never = "None" if row["end"] is not None else "Unknown"
    elapsed = _elapsed(cluster, row)
    cpus = job.cpus if started or not lags.no_node_cpus else 0
    by = f" by {row['by']}" if row["state"] == "CANCELLED" and row["by"] is not None else ""
    return {
        "JobID": name,
        "JobIDRaw": str(element.raw),
        "SLUID": f"s{element.raw:08d}{int(attempt.submit) % 10**6:06d}",
        "User": job.user,
        "UID": str(job.uid),
        "Account": "",
        "Cluster": cluster.settings.cluster,
        "Partition": job.partition,
        "QOS": "normal",
        "State": f"{row['state']}{by}",
        "ExitCode": lags.exit_code(*row["exit"]),
        "DerivedExitCode": "0:0",
        "Submit": shown_time(row["submit"], epoch),
        "Eligible": shown_time(row.get("eligible"), epoch),
        "Start": shown_time(row["start"], epoch, absent=never),
        "End": shown_time(row["end"], epoch),
        "Elapsed": f"00:{elapsed // 60:02d}:{elapsed % 60:02d}",
        "ElapsedRaw": str(elapsed),
        "TimelimitRaw": str(job.minutes),
        "Suspended": "00:00:00",
        "AllocCPUS": str(cpus),
        "ReqCPUS": str(job.cpus),
        "AllocNodes": str(int(started)),
        "NNodes": "1",
        "ReqMem": "100M",
        "AllocTRES": f"billing={job.cpus},cpu={job.cpus},mem=100M,node=1" if started else "",
        "ReqTRES": f"billing={job.cpus},cpu={job.cpus},mem=100M,node=1",
        "TotalCPU": "00:00.100" if row["end"] is not None and started else "00:00:00",
        "CPUTimeRAW": str(elapsed * cpus),
        "NodeList": row["node"] or "None assigned",
        "Restarts": str(element.attempts.index(attempt)),
        "Reason": life.reason(cluster, job, element) if lags.keeps_reason and row["state"] == "PENDING" else "None",
        "Flags": ("SchedMain," if started else "") + lags.start_flag,
        "JobName": row["name"],
        "WorkDir": job.workdir,
    }


def _elapsed(cluster: Cluster, row: dict[str, Any]) -> int:
    if row["start"] is None:
        return 0
    return int((row["end"] if row["end"] is not None else cluster.now) - row["start"])


def _batch(cluster: Cluster, job: Job, element: Element, row: dict[str, Any], epoch: bool) -> dict[str, str]:
    lags, elapsed = life.dialect(cluster), _elapsed(cluster, row)
    state = {"TIMEOUT": "CANCELLED", "PREEMPTED": "CANCELLED", "NODE_FAIL": "CANCELLED", "REQUEUED": "CANCELLED"}
    state["CANCELLED"] = "CANCELLED"
    return {
        "JobID": f"{element_name(job, element)}.batch",
        "JobIDRaw": f"{element.raw}.batch",
        "Cluster": cluster.settings.cluster,
        "State": state.get(row["state"], row["state"]),
        "ExitCode": "0:15" if row["state"] in state else lags.exit_code(*row["exit"]),
        "Submit": shown_time(row["start"], epoch),
        "Eligible": shown_time(row["start"], epoch),
        "Start": shown_time(row["start"], epoch),
        "End": shown_time(row["end"], epoch),
        "Elapsed": f"00:{elapsed // 60:02d}:{elapsed % 60:02d}",
        "ElapsedRaw": str(elapsed),
        "AllocCPUS": str(job.cpus),
        "ReqCPUS": str(job.cpus),
        "AllocNodes": "1",
        "NNodes": "1",
        "NTasks": "1",
        "MaxRSS": "3824K",
        "AveRSS": "3824K",
        "TotalCPU": "00:00.100",
        "CPUTimeRAW": str(elapsed * job.cpus),
        "AllocTRES": f"cpu={job.cpus},mem=100M,node=1",
        "NodeList": row["node"],
        "JobName": "batch",
    }
