"""The compute port: what the engine asks of Slurm or of this machine, and the typed answers.

An answer that could not be had is *unavailable*, never empty: nothing may be concluded from it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from outerloop_hpc.errors import OuterloopError, TryLater

Row = TypeVar("Row")


class Availability(StrEnum):
    """Whether a source answered.

    ``DISABLED`` means that it says it will never answer here (accounting storage switched off).
    """

    ANSWERED = "answered"
    UNAVAILABLE = "unavailable"
    DISABLED = "disabled"


@dataclass(frozen=True, slots=True)
class JobRef:
    """One submitted (or perhaps submitted) job, as the journal knows it.

    Attributes:
        name: job name, unique to one submission.
        user: who submitted it.
        job_id: base id without array part (``123``); ``None`` while it is not known.
        cluster: Slurm cluster it was sent to; empty for the default one.
        submitted_at: our clock just before the submission.
        elements: how many elements it has; 0 when that is not known.
    """

    name: str
    user: str
    job_id: str | None
    cluster: str
    submitted_at: datetime
    elements: int = 0


@dataclass(frozen=True, slots=True)
class QueueRow:
    """One line of the queue.

    Attributes:
        job_id: base id (``123``).
        tasks: array elements that this line stands for; ``None`` when the job is not an array.
        state: state word, upper case, first word only, as printed (not yet classified).
        submit: epoch seconds of the submission as the controller knows it; ``None`` when not given.
    """

    job_id: str
    tasks: frozenset[int] | None
    name: str
    user: str
    state: str
    reason: str = ""
    nodes: str = ""
    partition: str = ""
    submit: int | None = None


@dataclass(frozen=True, slots=True)
class AccountingRow:
    """One accounting row: an allocation (``step`` empty) or one of its steps (``batch``, ``extern``, ``0`` …).

    Attributes:
        job_id: base id (``123``); for an array element its ``task`` is set.
        cancelled_by: uid of ``CANCELLED by <uid>``, when given.
        submit, start, end: epoch seconds; ``None`` for ``Unknown``, ``None`` and empty.
        exit_code: (status, signal) as printed by this Slurm version.
        columns: every column as text, for the archive; reports compute from these alone.
    """

    job_id: str
    task: int | None
    step: str
    name: str
    user: str
    cluster: str
    state: str
    cancelled_by: int | None
    submit: int | None
    start: int | None
    end: int | None
    exit_code: tuple[int, int] | None
    columns: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answer(Generic[Row]):
    """What one source said: rows and problems, or why it is not available."""

    availability: Availability
    rows: tuple[Row, ...] = ()
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Observation:
    """One look at the scheduler: at most one squeue and one sacct (more only beyond 500 ids).

    ``spared_s`` is over 0 when nobody was asked, because it was asked just before: seconds until it may be again.
    """

    queue: Answer[QueueRow]
    accounting: Answer[AccountingRow]
    calls: int = 0
    spared_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Resources:
    """What one element asks for.

    Attributes:
        minutes: walltime, at least 1.
        cpus: CPUs per element.
        memory_mb: MiB per element; ``None`` leaves it to the site.
        gpus: GPUs per element.
        signal_lead_s: seconds before the walltime at which USR2 is asked for.
        options: further sbatch options (long names without dashes), already merged with the site's.
    """

    minutes: int
    cpus: int = 1
    memory_mb: int | None = None
    gpus: int = 0
    signal_lead_s: int = 120
    options: Mapping[str, str | int | bool] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Work:
    """One submission: ``function(path)`` for each path; one path makes a plain job, more an array from 0.

    Attributes:
        name: job name, at most 64 characters of ``[A-Za-z0-9_.-]``.
        function: importable, as ``package.module:name``; takes one string.
        arguments: the one argument of each element, in order of the array index.
        folder: private folder for submitit's files (0700).
        parallel: how many elements may run at once; 0 means no limit.
        after: start only when this job id has ended, however it ended.
        begin_in_s: start no sooner than this many seconds from now.
    """

    name: str
    function: str
    arguments: tuple[str, ...]
    folder: Path
    resources: Resources
    parallel: int = 0
    after: str | None = None
    begin_in_s: int = 0
    exclude_nodes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Bound:
    """A submission that the scheduler took."""

    job_id: str
    cluster: str
    array: bool


class SubmissionRefused(OuterloopError):  # noqa: N818 - states what happened
    """The scheduler said no, definitely: nothing was enqueued. Text: its complaint."""


class SubmissionAmbiguous(TryLater):
    """The scheduler may or may not have taken it (time-out, lost answer): look the name up before doing more."""


class SubmissionWithheld(OuterloopError):  # noqa: N818 - states what happened
    """The scheduler does not answer, so it was not even asked: nothing was enqueued. Text: why."""


class Compute(Protocol):
    """A place where submissions run."""

    @property
    def name(self) -> str:
        """``slurm`` or ``local``."""
        ...

    @property
    def user(self) -> str:
        """The name under which this process submits."""
        ...

    def submit(self, work: Work) -> Bound:
        """Submit; raises SubmissionRefused, SubmissionAmbiguous or SubmissionWithheld."""
        ...

    def observe(self, jobs: Sequence[JobRef]) -> Observation:
        """Look at all these jobs at once. Unbound ones (no id) are looked for by name."""
        ...

    def cancel(self, jobs: Sequence[JobRef]) -> None:
        """Ask for the end of these jobs; idempotent. Raises TryLater when the scheduler does not answer."""
        ...
