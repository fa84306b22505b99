"""The state of a scripted cluster: settings, jobs, faults and calls, in one JSON file under one lock."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")

#: What accounting is told of an attempt, at one moment: fields of ``Attempt``.
Note = tuple[float, dict[str, Any]]


@dataclass
class Settings:
    """What differs between clusters. Times in seconds.

    Attributes:
        accounting: whether there is any; lag_s: how long after an event sacct shows it, beyond the version's own lag.
        min_job_age_s: how long the controller remembers an ended job.
        requeue_hold_s: how long a requeued job waits before it may start again.
        start_s: how long a job that may start waits for its start.
        bitstr_cut: whether long array expressions are cut whatever the caller asks for, as behind a
            wrapper that drops variables.
    """

    version: str = "26.05.5"
    cluster: str = "test"
    accounting: bool = True
    lag_s: float = 0.0
    min_job_age_s: float = 300.0
    requeue_hold_s: float = 120.0
    start_s: float = 1.0
    max_array_size: int = 1001
    max_job_id: int = 67043328
    bitstr_cut: bool = False


@dataclass
class Fate:
    """How it goes for the elements that fit; each fate serves ``times`` attempts (0: all), the first that fits wins.

    Attributes:
        name: part of the job's name; task: array index, -1 for any; attempt: 1 is the first, 0 for any.
        pending_s: how long it waits beyond the usual; lasts_s: how long it runs.
        body: what the job itself does: ``end`` (carried out when its time is over), ``start`` (at once), ``never``,
            ``killed`` (begun at its start and killed where the words of an effect hold ``at``, or, for ``#7``, before
            its seventh effect).
        state: what Slurm says at the end; empty: by the exit status of the body.
        requeue: the same job is queued again after that end.
    """

    name: str = ""
    task: int = -1
    attempt: int = 0
    times: int = 0
    pending_s: float = 0.0
    lasts_s: float = 30.0
    body: str = "end"
    at: str = ""
    state: str = ""
    exit: tuple[int, int] = (0, 0)
    by: int | None = None
    requeue: bool = False
    used: int = 0


@dataclass
class Fault:
    """How one program fails: from its ``after``-th call on (0: the first), ``times`` times (0: always).

    Kinds: ``refuse`` (cannot contact its daemon), ``hang``, ``truncate``, ``garbage``, ``banner``, ``silent``,
    ``status`` (says ``text`` on stderr, ends with ``status`` (negative: killed by that signal), does nothing),
    ``after`` (does it, then fails like ``status``), ``late`` (does it, then hangs), ``cluster`` (sbatch answers
    ``id;cluster``), ``word`` (state words are replaced, as ``old=new``), ``empty`` (sacct: header alone), ``lines``
    (lines that hold ``text`` are left out).
    """

    command: str
    kind: str
    after: int = 0
    times: int = 1
    text: str = ""
    status: int = 1
    calls: int = 0
    used: int = 0


@dataclass
class Attempt:
    """One attempt of an element.

    Attributes:
        ends: when its time is over, while it runs; over: how its body ended, until the controller has heard of it.
        noted: what accounting was told, and when.
    """

    submit: float
    eligible: float | None = None
    start: float | None = None
    end: float | None = None
    state: str = "PENDING"
    exit: tuple[int, int] = (0, 0)
    node: str = ""
    by: int | None = None
    ends: float | None = None
    over: tuple[int, int] | None = None
    fate: Fate = field(default_factory=Fate)
    noted: list[Note] = field(default_factory=list)

    def note(self, at: float, **told: Any) -> None:
        """Tell accounting."""
        self.noted.append((at, told))


@dataclass
class Element:
    """A plain job (no task) or one element of an array: what the controller knows of it now.

    ``apart``: it has a row of its own in accounting, since it started or was cancelled alone.
    """

    raw: int
    task: int | None
    state: str = "PENDING"
    reason: str = "None"
    ended: float | None = None
    apart: bool = False
    attempts: list[Attempt] = field(default_factory=list)

    @property
    def last(self) -> Attempt:
        """The newest attempt."""
        return self.attempts[-1]


@dataclass
class Job:
    """One submission. ``past``: accounting alone knows it. ``offset``: its place in a heterogeneous job."""

    id: int
    name: str
    user: str
    uid: int
    partition: str = "main"
    minutes: int = 60
    cpus: int = 1
    workdir: str = ""
    output: str = ""
    script: str = ""
    env: dict[str, str] = field(default_factory=dict)
    begin: float = 0.0
    after: list[int] = field(default_factory=list)
    held: bool = False
    requeue: bool = True
    parallel: int = 0
    exclude: list[str] = field(default_factory=list)
    past: bool = False
    offset: int | None = None
    elements: list[Element] = field(default_factory=list)


@dataclass
class Cluster:
    """Everything. ``down`` says since when a daemon is away, ``outages`` when it was; ``now`` is the virtual clock."""

    now: float
    settings: Settings = field(default_factory=Settings)
    next_id: int = 1
    jobs: list[Job] = field(default_factory=list)
    fates: list[Fate] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    down: dict[str, float] = field(default_factory=dict)
    outages: list[tuple[str, float, float]] = field(default_factory=list)
    calls: list[list[str]] = field(default_factory=list)

    def known(self, job_id: int) -> list[Job]:
        """Jobs of this id that the controller may know: the newest, with the other parts of a heterogeneous one."""
        found = [job for job in self.jobs if job.id == job_id and not job.past]
        return [] if not found else [job for job in found if job.offset is not None] or [found[-1]]


def _made(kind: type[T], value: dict[str, Any], **nested: Any) -> T:
    known = {one.name for one in fields(kind)}  # type: ignore[arg-type]
    return kind(**{**{key: item for key, item in value.items() if key in known}, **nested})


def _attempt(value: dict[str, Any]) -> Attempt:
    return _made(
        Attempt,
        value,
        exit=tuple(value["exit"]),
        over=None if value["over"] is None else tuple(value["over"]),
        fate=_fate(value["fate"]),
        noted=[(at, told) for at, told in value["noted"]],
    )


def _fate(value: dict[str, Any]) -> Fate:
    return _made(Fate, value, exit=tuple(value["exit"]))


def _job(value: dict[str, Any]) -> Job:
    elements = [
        _made(Element, element, attempts=[_attempt(one) for one in element["attempts"]])
        for element in value["elements"]
    ]
    return _made(Job, value, elements=elements)


def decode(text: str) -> Cluster:
    """Read the state."""
    value = json.loads(text)
    return _made(
        Cluster,
        value,
        settings=_made(Settings, value["settings"]),
        jobs=[_job(job) for job in value["jobs"]],
        fates=[_fate(fate) for fate in value["fates"]],
        faults=[_made(Fault, fault) for fault in value["faults"]],
        outages=[(daemon, since, until) for daemon, since, until in value["outages"]],
    )


@contextmanager
def opened(path: Path) -> Iterator[Cluster]:
    """Read the state, let it be changed, write it; one at a time. ``path.clock`` holds the time alone."""
    with path.with_suffix(".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        cluster = decode(path.read_text(encoding="utf-8"))
        yield cluster
        written(path, cluster)


def written(path: Path, cluster: Cluster) -> None:
    """Write the state, all of it or nothing."""
    for target, text in ((path, json.dumps(asdict(cluster))), (path.with_suffix(".clock"), repr(cluster.now))):
        new = target.with_suffix(".new")
        new.write_text(text, encoding="utf-8")
        new.replace(target)


def element_name(job: Job, element: Element) -> str:
    """Print the id of an element: ``12``, ``12_3`` or ``12+1``."""
    if element.task is not None:
        return f"{job.id}_{element.task}"
    return str(job.id) if job.offset is None else f"{job.id}+{job.offset}"
