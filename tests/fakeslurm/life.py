"""What happens to jobs as the virtual clock goes on: starts, ends, requeues, and what accounting hears of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.fakeslurm.dialect import DIALECTS, NAMELESS, Dialect
from tests.fakeslurm.model import Attempt, Cluster, Element, Fate, Job

NODES = ("n1", "n2", "n3")
#: Seconds until accounting has the queued row of a job that was preempted.
_PREEMPTED_ROW_S = 2.0


@dataclass(frozen=True)
class Body:
    """Something that a job does now: of which element, in which attempt, and where it is killed (empty: nowhere).

    ``place`` is the job's in ``Cluster.jobs``: ids are used again.
    """

    place: int
    job: Job
    raw: int
    attempt: int
    at: str = ""

    @property
    def element(self) -> Element:
        """The element."""
        return next(one for one in self.job.elements if one.raw == self.raw)


def dialect(cluster: Cluster) -> Dialect:
    """The version's peculiarities."""
    return DIALECTS[cluster.settings.version]


def elements(cluster: Cluster) -> Iterator[tuple[Job, Element]]:
    """Every element that the controller has ever had."""
    for job in cluster.jobs:
        if not job.past:
            for element in job.elements:
                yield job, element


def live(element: Element) -> bool:
    """Whether it has not ended."""
    return element.ended is None


def submit(cluster: Cluster, job: Job) -> None:
    """Take a job: accounting hears of it after the version's lag."""
    lags = dialect(cluster)
    for element in job.elements:
        attempt = new_attempt(cluster, job, element)
        # Accounting knows no eligible time of an array's element before that starts.
        eligible = attempt.eligible if element.task is None else None
        told = {"submit": attempt.submit, "eligible": eligible, "state": "PENDING"}
        if lags.named_s > lags.row_s:
            attempt.note(cluster.now + lags.row_s, **{**told, "name": NAMELESS, "eligible": None})
        attempt.note(cluster.now + lags.named_s, **told, name=job.name)
        element.reason = "JobHeldUser" if job.held else "Dependency" if job.after else "None"
    cluster.jobs.append(job)


def new_attempt(cluster: Cluster, job: Job, element: Element, hold_s: float = 0.0) -> Attempt:
    """Queue an element (again)."""
    eligible = None if job.held or job.after else max(cluster.now + hold_s, job.begin)
    attempt = Attempt(submit=cluster.now, eligible=eligible)
    element.attempts.append(attempt)
    element.state, element.ended = "PENDING", None
    attempt.fate = _fate(cluster, job, element)
    return attempt


def _fate(cluster: Cluster, job: Job, element: Element) -> Fate:
    for fate in cluster.fates:
        fits = fate.name in job.name and fate.task in {-1, element.task or 0}
        fits = fits and fate.attempt in {0, len(element.attempts)}
        if fits and (not fate.times or fate.used < fate.times):
            fate.used += 1
            return fate
    return Fate()


def next_event(cluster: Cluster) -> float | None:
    """When something happens next, by itself; None when nothing will."""
    times = [at for job, element in elements(cluster) if (at := _next(cluster, job, element)) is not None]
    return min(times, default=None)


def _next(cluster: Cluster, job: Job, element: Element) -> float | None:
    attempt = element.last
    up = "slurmctld" not in cluster.down
    if not live(element):
        return None
    if attempt.over is not None:
        return cluster.now if up else None
    if attempt.start is not None:
        return attempt.ends
    return _startable(cluster, job, element) if up else None


def _startable(cluster: Cluster, job: Job, element: Element) -> float | None:
    """When a queued element starts, as things are now."""
    running = sum(1 for one in job.elements if live(one) and one.last.start is not None)
    if job.held or (job.parallel and running >= job.parallel):
        return None
    waited_for = [one for other in job.after for found in cluster.known(other) for one in found.elements]
    if any(live(one) for one in waited_for):
        return None
    freed = max((one.ended or 0.0 for one in waited_for), default=0.0)
    eligible = max(element.last.eligible or element.last.submit, job.begin, freed)
    return eligible + cluster.settings.start_s + element.last.fate.pending_s


def reason(cluster: Cluster, job: Job, element: Element) -> str:
    """Why a queued element waits, as squeue says."""
    if element.state == "FAILED":
        return "NonZeroExitCode"
    if element.state != "PENDING" or job.held:
        return element.reason
    if max(job.begin, element.last.eligible or 0.0) > cluster.now:
        return "BeginTime"
    if _startable(cluster, job, element) is None:
        return "JobArrayTaskLimit" if job.parallel else element.reason
    return "None" if element.reason == "Dependency" else element.reason


def step(cluster: Cluster) -> list[Body]:
    """Let happen what is due now; returns what jobs do meanwhile, to be told by ``finished``."""
    bodies: list[Body] = []
    places = {id(job): place for place, job in enumerate(cluster.jobs)}
    for job, element in list(elements(cluster)):
        at = _next(cluster, job, element)
        if at is None or at > cluster.now:
            continue
        attempt = element.last
        if attempt.over is not None:
            _by_body(cluster, job, element)
        elif attempt.start is None:
            _start(cluster, job, element)
            if attempt.fate.body in {"start", "killed"}:
                bodies.append(Body(places[id(job)], job, element.raw, len(element.attempts), attempt.fate.at))
        else:
            attempt.ends = None
            if attempt.fate.body == "end":
                bodies.append(Body(places[id(job)], job, element.raw, len(element.attempts)))
            else:
                attempt.over = attempt.exit
    return bodies


def finished(cluster: Cluster, body: Body, status: int) -> None:
    """Say how a body ended; ``status`` is negative for a signal."""
    element = next(one for one in cluster.jobs[body.place].elements if one.raw == body.raw)
    attempt = element.attempts[body.attempt - 1]
    code = (0, -status) if status < 0 else (status, 0)
    if attempt.end is not None:
        return  # cancelled meanwhile
    attempt.exit = code
    if attempt.fate.body == "end":
        attempt.over = code


def _start(cluster: Cluster, job: Job, element: Element) -> None:
    attempt, lags = element.last, dialect(cluster)
    free = [node for node in NODES if node not in job.exclude] or list(NODES)
    attempt.start, attempt.node = cluster.now, free[element.raw % len(free)]
    attempt.ends = cluster.now + attempt.fate.lasts_s
    attempt.eligible = attempt.eligible or cluster.now
    element.apart = True
    element.state, element.reason, attempt.state = "RUNNING", "None", "RUNNING"
    if len(element.attempts) > 1:
        attempt.note(cluster.now, name=job.name, submit=attempt.submit)
    told = {"state": "RUNNING", "start": attempt.start, "node": attempt.node, "eligible": attempt.eligible}
    attempt.note(cluster.now + lags.started_s, **told)


def _by_body(cluster: Cluster, job: Job, element: Element) -> None:
    attempt = element.last
    fate, over = attempt.fate, attempt.over or (0, 0)
    if not fate.state:
        end(cluster, job, element, "COMPLETED" if over == (0, 0) else "FAILED", over)
        return
    code = dialect(cluster).node_fail_exit if fate.state == "NODE_FAIL" else fate.exit
    end(cluster, job, element, fate.state, code, by=fate.by)
    if fate.requeue:
        requeue(cluster, job, element)


def end(
    cluster: Cluster, job: Job, element: Element, state: str, code: tuple[int, int] = (0, 0), by: int | None = None
) -> None:
    """End an element's newest attempt."""
    attempt = element.last
    attempt.end, attempt.state, attempt.exit, attempt.by = cluster.now, state, code, by
    attempt.ends = attempt.over = None
    element.state, element.ended, element.reason = state, cluster.now, "None"
    told: dict[str, Any] = {"state": state, "end": attempt.end, "exit": list(code), "by": by, "name": job.name}
    if attempt.start is not None:
        told |= {"start": attempt.start, "node": attempt.node}
    eligible = None if element.task is not None and attempt.start is None else attempt.eligible
    if not attempt.noted and dialect(cluster).named_s > dialect(cluster).row_s:
        attempt.note(cluster.now, submit=attempt.submit, eligible=None, **{**told, "name": NAMELESS})
        attempt.note(cluster.now + dialect(cluster).named_s, submit=attempt.submit, eligible=eligible, **told)
        return
    attempt.note(cluster.now, submit=attempt.submit, eligible=eligible, **told)


def requeue(cluster: Cluster, job: Job, element: Element, *, by_hand: bool = False) -> None:
    """Queue an element again after its newest attempt ended, as node failure, preemption and scontrol do."""
    lags, ended = dialect(cluster), element.last.state
    attempt = new_attempt(cluster, job, element, cluster.settings.requeue_hold_s)
    element.reason = "BeginTime"
    told = {"name": job.name, "state": "PENDING", "submit": attempt.submit, "eligible": attempt.eligible}
    if ended == "PREEMPTED":
        attempt.note(cluster.now + _PREEMPTED_ROW_S, **told)
    elif by_hand and lags.requeued_row:
        attempt.note(cluster.now, **told)


def cancel(cluster: Cluster, job: Job, element: Element, by: int, *, alone: bool = False) -> None:
    """Cancel an element, queued or running; ``alone``: not together with its whole array."""
    if live(element):
        element.apart |= alone
        end(cluster, job, element, "CANCELLED", by=by)


def listed(cluster: Cluster, element: Element) -> bool:
    """Whether the controller still remembers it."""
    return live(element) or cluster.now - (element.ended or 0.0) <= cluster.settings.min_job_age_s


def told(cluster: Cluster, attempt: Attempt) -> dict[str, Any] | None:
    """What accounting says of an attempt now; None when it has no row."""
    # In the order in which things happened, whatever was heard first: an end is not undone by a start that lags.
    seen = [what for note in attempt.noted for at, what in _seen(cluster, *note) if at <= cluster.now]
    if not seen:
        return None
    found: dict[str, Any] = {"start": None, "end": None, "node": "", "exit": [0, 0], "by": None}
    for what in seen:
        found |= what
    return found


def _seen(cluster: Cluster, at: float, what: dict[str, Any]) -> Iterator[tuple[float, dict[str, Any]]]:
    """When accounting shows a note: after the lag, or a while after the outage of slurmdbd that it fell into."""
    lags = dialect(cluster)
    if "slurmdbd" in cluster.down and at >= cluster.down["slurmdbd"]:
        return
    for daemon, since, until in cluster.outages:
        if daemon == "slurmdbd" and since <= at < until:
            if lags.endless_s is not None and what.get("end"):
                yield until + lags.endless_s, {**what, "end": None}
            yield until + lags.whole_s, what
            return
    yield at + cluster.settings.lag_s, what
