"""Ask squeue and sacct about many jobs at once; an answer that is not whole is no answer.

One squeue for everything (no id list: one unknown id would fail the call; no partition filter: jobs get moved), and
one sacct by ids, in chunks, for jobs that do not simply run. Jobs on several clusters cost one call for each cluster.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from outerloop_hpc import fsio
from outerloop_hpc.clock import Clock, SystemClock
from outerloop_hpc.errors import TryLater
from outerloop_hpc.process import Finished, Runner
from outerloop_hpc.slurm.environment import query_environment
from outerloop_hpc.slurm.identity import matches
from outerloop_hpc.slurm.parse import (
    SEPARATOR,
    Problem,
    parse_accounting,
    parse_columns,
    parse_queue,
    queue_format,
)
from outerloop_hpc.slurm.port import AccountingRow, Answer, Availability, JobRef, Observation, QueueRow, Row

IDS_PER_CALL = 500
_COLUMNS_KEPT_S = 24 * 3600
_LOOK_BACK_S = 2 * 3600

#: What the archive keeps, where it exists; the job name last, since only it is chosen by people.
#: Not SubmitLine, Comment and WorkDir: free text of any length, with newlines.
WANTED_COLUMNS = (
    "JobID JobIDRaw SLUID User Account Cluster Partition QOS State ExitCode DerivedExitCode "
    "Submit Eligible Start End ElapsedRaw TimelimitRaw Suspended Planned Reserved PlannedCPURAW ResvCPURAW Restarts "
    "AllocCPUS ReqCPUS AllocNodes NNodes NTasks ReqMem AllocTRES ReqTRES TotalCPU UserCPU SystemCPU CPUTimeRAW "
    "MaxRSS MaxRSSNode AveRSS MaxVMSize TRESUsageInTot TRESUsageInMax TRESUsageInAve TRESUsageOutTot "
    "ConsumedEnergyRaw NodeList FailedNode Reason Flags Reservation JobName"
)

_JOB_ID = re.compile(r"[0-9]{1,20}")
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_DISABLED = "accounting storage is disabled"
_RUNNING = "RUNNING"
_INVALID_COLUMN = "Invalid field requested"
#: squeue goes on without a user whose name it cannot resolve (a directory service that is down), with status 0.
_HALF_ANSWERED = re.compile(r"invalid user|can't be reached|unable to contact", re.IGNORECASE)
_ERROR = re.compile(r"\b(?:error|fatal):", re.IGNORECASE)


class SlurmQuery:
    """The reading side of Slurm.

    Args:
        run: how commands are run.
        environ: the caller's environment; scrubbed before use.
        cluster: cluster of jobs that name none; empty for the default one.
        timeout_s: seconds for each command.
        clock: only for the look-back of searches by name and for the age of the column cache.
        column_cache: file that keeps the list of sacct columns between processes; None asks once per process.
        separator: what stands between two columns; by default with a random part, which no job name can hold.
    """

    def __init__(
        self,
        run: Runner,
        environ: Mapping[str, str],
        *,
        cluster: str = "",
        timeout_s: float = 60,
        clock: Clock | None = None,
        column_cache: Path | None = None,
        separator: str = "",
    ) -> None:
        self._run = run
        self._environ = query_environment(environ)
        self._cluster = cluster
        self._timeout_s = timeout_s
        self._clock = clock or SystemClock()
        self._column_cache = column_cache
        self._separator = separator or f"{SEPARATOR}{fsio.nonce()}"
        self._columns: tuple[str, ...] = ()
        self.calls = 0

    @property
    def cluster(self) -> str:
        """The cluster of jobs that name none."""
        return self._cluster

    def observe(self, jobs: Sequence[JobRef]) -> Observation:
        """Ask both, squeue first: a job that ends between the two is then seen alive, never nowhere.

        Accounting is not asked about jobs of which the queue has every element running: nothing of what it says of
        those counts, and there are thousands of rows of it.
        """
        before = self.calls
        queue = self.queue(jobs)
        accounting = self.accounting(_not_all_running(jobs, queue), queue.rows)
        return Observation(queue, accounting, self.calls - before)

    def queue(self, jobs: Sequence[JobRef]) -> Answer[QueueRow]:
        """Return what squeue lists of the users of ``jobs`` (also jobs that are not ours: see ``identity``).

        Unavailable when squeue failed, was late, skipped a user, or printed a line that may be one of ``jobs``.
        """
        return _joined([self._queue_of(cluster, refs) for cluster, refs in self._by_cluster(jobs)])

    def accounting(self, jobs: Sequence[JobRef], queued: Sequence[QueueRow] = ()) -> Answer[AccountingRow]:
        """Return the accounting rows of ``jobs``, every attempt and every step, in sacct's order.

        Jobs without an id take the id of a row of ``queued`` with their name; those not found there are searched by
        name. Such a search finds no held job and no job in its first seconds: nothing found is no proof.
        """
        parts: list[Answer[AccountingRow]] = []
        for cluster, refs in self._by_cluster(jobs):
            parts.extend(self._accounting_of(cluster, refs, queued))
        return _joined(parts)

    def ask(self, argv: Sequence[str]) -> Finished:
        """Run one reading command in the scrubbed environment."""
        finished = self._run(argv, timeout=self._timeout_s, env=self._environ)
        self.calls += not finished.withheld
        return finished

    def _by_cluster(self, jobs: Iterable[JobRef]) -> list[tuple[str, list[JobRef]]]:
        groups: dict[str, list[JobRef]] = {}
        for ref in jobs:
            groups.setdefault(ref.cluster or self._cluster, []).append(ref)
        return sorted(groups.items())

    def _queue_of(self, cluster: str, refs: Sequence[JobRef]) -> Answer[QueueRow]:
        users = ",".join(sorted({ref.user for ref in refs}))
        argv = [
            "squeue",
            *on_cluster(cluster),
            "-h",
            "-a",
            "-t",
            "all",
            "-u",
            users,
            "-o",
            queue_format(self._separator),
        ]
        finished = self.ask(argv)
        if not finished.ok or _HALF_ANSWERED.search(finished.stderr):
            return _unavailable(finished)
        rows, problems = parse_queue(finished.stdout, self._separator)
        if not rows and _ERROR.search(finished.stderr):
            return _unavailable(finished)
        texts = (*(problem.text for problem in problems), *_complaint_of(finished))
        if _may_hide(problems, refs):
            return Answer(Availability.UNAVAILABLE, rows, texts)
        return Answer(Availability.ANSWERED, rows, texts)

    def _accounting_of(
        self, cluster: str, refs: Sequence[JobRef], queued: Sequence[QueueRow]
    ) -> Iterator[Answer[AccountingRow]]:
        columns = self._known_columns()
        if isinstance(columns, Answer):
            yield columns
            return
        seen = {ref.name: row.job_id for ref in refs if ref.job_id is None for row in queued if matches(row, ref)}
        ids = {ref.job_id or seen.get(ref.name, "") for ref in refs} - {""}
        asked = sorted((one for one in ids if _JOB_ID.fullmatch(one)), key=int)
        if odd := sorted(ids - set(asked)):
            yield Answer(Availability.ANSWERED, (), (f"not asked for: {odd[:5]!r} (no job ids)",))
        for start in range(0, len(asked), IDS_PER_CALL):
            yield self._rows(cluster, ["-j", ",".join(asked[start : start + IDS_PER_CALL])])
        lost = [ref for ref in refs if ref.job_id is None and ref.name not in seen and _NAME.fullmatch(ref.name)]
        if lost:
            yield self._rows(cluster, self._by_name(lost))

    def _by_name(self, refs: Sequence[JobRef]) -> list[str]:
        # Relative times: absolute ones are read in the cluster's time zone. The end lies in the future, or the
        # row of a requeued job, which is eligible only in two minutes, hides behind its predecessor.
        oldest = min(ref.submitted_at for ref in refs)
        back = max(0, int((self._clock.now() - oldest).total_seconds())) + _LOOK_BACK_S
        names = ",".join(sorted({ref.name for ref in refs}))
        users = ",".join(sorted({ref.user for ref in refs}))
        return ["--name", names, "-u", users, "-S", f"now-{back}seconds", "-E", "now+1hour"]

    def _rows(self, cluster: str, selection: Sequence[str]) -> Answer[AccountingRow]:
        finished = self._sacct(cluster, selection)
        if _INVALID_COLUMN in finished.stderr:
            # Slurm was changed since the columns were written down; ask anew, once.
            self._forget_columns()
            columns = self._known_columns()
            if isinstance(columns, Answer):
                return columns
            finished = self._sacct(cluster, selection)
        if not finished.ok:
            return _unavailable(finished)
        rows, problems = parse_accounting(finished.stdout, self._separator)
        if rows is None or (not rows and _ERROR.search(finished.stderr)):
            return _unavailable(finished)
        return Answer(Availability.ANSWERED, rows, (*(problem.text for problem in problems), *_complaint_of(finished)))

    def _sacct(self, cluster: str, selection: Sequence[str]) -> Finished:
        fixed = ["-a", "-D", "-P", "--noconvert", f"--delimiter={self._separator}", "-o", ",".join(self._columns)]
        if "-u" in selection:
            fixed.remove("-a")
        return self.ask(["sacct", *on_cluster(cluster), *fixed, *selection])

    def _known_columns(self) -> tuple[str, ...] | Answer[AccountingRow]:
        if not self._columns:
            self._columns = _wanted(self._cached_columns())
        if not self._columns:
            finished = self.ask(["sacct", "--helpformat"])
            self._columns = _wanted(parse_columns(finished.stdout)) if finished.ok else ()
            if not self._columns:
                return _unavailable(finished)
            if self._column_cache:
                with suppress(TryLater, OSError):  # a cache: asking again is all that is lost
                    fsio.make_folder(self._column_cache.parent)
                    fsio.replace(self._column_cache, (" ".join(self._columns) + "\n").encode())
        return self._columns

    def _cached_columns(self) -> frozenset[str]:
        if self._column_cache is None:
            return frozenset()
        with suppress(OSError, UnicodeDecodeError):
            age = self._clock.now().timestamp() - self._column_cache.stat().st_mtime
            if abs(age) < _COLUMNS_KEPT_S:
                return parse_columns(self._column_cache.read_text(encoding="ascii"))
        return frozenset()

    def _forget_columns(self) -> None:
        self._columns = ()
        if self._column_cache:
            with suppress(OSError):
                fsio.remove(self._column_cache)


def on_cluster(cluster: str) -> list[str]:
    """Return the option that names a cluster; nothing for the default one."""
    return ["-M", cluster] if cluster else []


def _not_all_running(jobs: Sequence[JobRef], queue: Answer[QueueRow]) -> list[JobRef]:
    if queue.availability is not Availability.ANSWERED:
        return list(jobs)
    rows: dict[str, list[QueueRow]] = {}
    for row in queue.rows:
        if row.state == _RUNNING:
            rows.setdefault(row.job_id, []).append(row)

    def elements(ref: JobRef) -> int:
        ours = (row for row in rows.get(ref.job_id or "", ()) if matches(row, ref))
        return len({task for row in ours for task in (row.tasks if row.tasks is not None else (None,))})

    return [ref for ref in jobs if not ref.elements or elements(ref) < ref.elements]


def _wanted(exist: frozenset[str]) -> tuple[str, ...]:
    return tuple(column for column in WANTED_COLUMNS.split() if column in exist)


def _may_hide(problems: Sequence[Problem], refs: Sequence[JobRef]) -> bool:
    """Whether a line that could not be read may be one of ours; its absence would then prove nothing."""
    ids = {ref.job_id for ref in refs}
    names = {ref.name for ref in refs}

    def hides(problem: Problem) -> bool:
        if problem.name is not None:
            return problem.name in names
        return problem.job_id is None or problem.job_id in ids or None in ids

    return any(hides(problem) for problem in problems if not problem.talk)


def _unavailable(finished: Finished) -> Answer[Row]:
    if _DISABLED in finished.stderr.lower():
        return Answer(Availability.DISABLED, (), ("sacct: accounting storage is disabled on this cluster",))
    what = finished.complaint() if finished.status != 0 else _without_rows(finished)
    return Answer(Availability.UNAVAILABLE, (), (what,))


def _without_rows(finished: Finished) -> str:
    tail = " ".join(finished.stderr.split())[-300:]
    return f"{finished.argv[0]}: exit status 0, but no whole answer" + (f": {tail}" if tail else "")


def _complaint_of(finished: Finished) -> tuple[str, ...]:
    tail = " ".join(finished.stderr.split())[-300:]
    return (f"{finished.argv[0]}: {tail}",) if tail else ()


def _joined(parts: Sequence[Answer[Row]]) -> Answer[Row]:
    """Join the answers to one question; one that is missing makes the whole one unavailable."""
    worst = Availability.ANSWERED
    for availability in (Availability.DISABLED, Availability.UNAVAILABLE):
        if any(part.availability is availability for part in parts):
            worst = availability
    return Answer(
        worst,
        tuple(row for part in parts for row in part.rows),
        tuple(dict.fromkeys(problem for part in parts for problem in part.problems)),
    )
