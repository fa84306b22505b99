"""Measure: run a benchmark command once, in a sandbox and a fresh checkout, and say what came of it."""

from __future__ import annotations

import errno
import re
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from pydantic import Field

from outerloop_hpc.clock import Clock
from outerloop_hpc.documents import Value
from outerloop_hpc.errors import Exit, UsageError
from outerloop_hpc.measure.child import Ended, Limits, run_child, signal_name
from outerloop_hpc.measure.command import split_command
from outerloop_hpc.measure.node import oom_kills, this_node
from outerloop_hpc.measure.output import Reading, read_metric

#: Libraries that would take every core of a node unless told how many are theirs.
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMBA_NUM_THREADS",
    "RAYON_NUM_THREADS",
    "GOMAXPROCS",
    "JULIA_NUM_THREADS",
)
_NODE_ERRNOS = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.ENOMEM, errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.EIO}
)
_NODE_TEXT = re.compile(r"No space left on device|Disk quota exceeded|Cannot allocate memory|\[Errno (28|122|12)\]")
_LAST_LINES = 5
_SHELL_SIGNAL = 128


class Outcome(StrEnum):
    """What came of it. Only ``measured`` has a value; ``infrastructure`` says nothing about the code measured."""

    MEASURED = "measured"
    FAILED = "failed"
    INFRASTRUCTURE = "infrastructure"
    INTERRUPTED = "interrupted"


class Launch(Protocol):
    """A command line that runs inside."""

    @property
    def argv(self) -> tuple[str, ...]:
        """The whole command line."""
        ...

    @property
    def env(self) -> Mapping[str, str]:
        """Its complete environment."""
        ...

    @property
    def cwd(self) -> Path:
        """Host folder to start in."""
        ...

    @property
    def network(self) -> str:
        """``off``, ``on`` or ``host``."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """Deviations from what was asked."""
        ...


class Enclosure(Protocol):
    """Where measurements run; ``outerloop_hpc.container.enclosure`` has the real one."""

    @property
    def name(self) -> str:
        """The runtime's name."""
        ...

    @property
    def image_sha256(self) -> str | None:
        """The image's digest, if there is one."""
        ...

    def command(self, argv: Sequence[str], env: Mapping[str, str], folder: Path) -> Launch:
        """Build the command line for ``argv`` in the writable ``folder``."""
        ...

    def start_failure(self, status: int | None, stderr: str) -> str | None:
        """Return why the container did not start; None when the command itself ran."""
        ...


class RunChild(Protocol):
    """Runs the command; ``child.run_child`` is the real one."""

    def __call__(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path,
        limits: Limits,
        log: Path | None,
        clock: Clock,
        stop: Callable[[], bool],
    ) -> Ended:
        """Run it to its end."""
        ...


@dataclass(frozen=True, slots=True)
class Request:
    """One measurement to make.

    Attributes:
        command: argument list, or a text that is split by quoting rules; never run by a shell.
        metric: JSON field to read from the output.
        checkout: fresh folder with the committed tree, used for nothing else.
        limits: wall time, grace and output cap.
        seed: the seed; None when the benchmark has none.
        seed_env: variable that carries the seed; None when it is not handed on.
        cpus: CPUs of this step; thread counts of the usual libraries are pinned to it.
        env: further variables of the contract.
        log: file that gets a capped copy of the output.
    """

    command: str | Sequence[str]
    metric: str
    checkout: Path
    limits: Limits
    seed: int | None = None
    seed_env: str | None = None
    cpus: int = 1
    env: Mapping[str, str] = field(default_factory=dict)
    log: Path | None = None


class Measurement(Value):
    """What one execution gave, with everything needed to judge or repeat it.

    Attributes:
        command: the benchmark's own command, without the container's part.
        value: the metric; only when measured.
        metrics: further finite numbers of the same JSON object.
        reason: why there is no value; empty when there is one.
        exit_status: None when it did not start, was ended by us or by a signal.
        exit_signal: name of the signal that ended it.
        seconds: wall time, container start included. cpu_user_s, cpu_system_s: of all its processes.
        max_rss_kib: of its largest process, the container runtime's own included (apptainer has about 40 MiB).
        output_bytes: stdout and stderr. output_cut: whether only the end of stdout was kept.
        network: ``off``, ``on`` (asked for) or ``host`` (could not be switched off).
    """

    outcome: Outcome
    command: tuple[str, ...]
    metric: str
    seed: int | None = None
    value: float | None = None
    metrics: dict[str, float] = Field(default_factory=dict)
    reason: str = ""
    exit_status: int | None = None
    exit_signal: str | None = None
    seconds: float = 0.0
    cpu_user_s: float = 0.0
    cpu_system_s: float = 0.0
    max_rss_kib: int = 0
    output_bytes: int = 0
    output_cut: bool = False
    cpus: int = 1
    node: str
    cpu_model: str
    runtime: str
    image_sha256: str | None = None
    network: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Judged:
    outcome: Outcome
    reason: str = ""
    reading: Reading | None = None


def measure(
    request: Request,
    *,
    enclosure: Enclosure,
    clock: Clock,
    stop: Callable[[], bool] = lambda: False,
    run: RunChild = run_child,
    oom_count: Callable[[], int | None] = oom_kills,
) -> Measurement:
    """Run the benchmark once.

    Args:
        request: what to run.
        enclosure: where.
        clock: wall time and limits.
        stop: asked about five times a second; True ends it early as ``interrupted``.
        run: runs the command.
        oom_count: processes of this job that the kernel has killed for memory so far; None when it does not say.

    Raises:
        ConfigError: the command or the sandbox cannot be meant. Whatever happens after that is a Measurement.
        UsageError: the checkout is no folder.
    """
    argv = split_command(request.command)
    if not request.checkout.is_dir():
        raise UsageError(f"{request.checkout}: there is no checkout to measure in; make it first (git archive)")
    launch = enclosure.command(argv, environment(request), request.checkout)
    kills_before = oom_count()
    ended = run(
        launch.argv, env=launch.env, cwd=launch.cwd, limits=request.limits, log=request.log, clock=clock, stop=stop
    )
    killed = (oom_count() or 0) - (kills_before or 0)
    judged = _judge(request, enclosure, ended, killed)
    return _measurement(request, argv, enclosure, launch, ended, judged)


def environment(request: Request) -> dict[str, str]:
    """Return the variables that a measurement sets: thread counts, the contract's own, the seed (pure)."""
    env = {name: str(max(1, request.cpus)) for name in THREAD_VARIABLES} | dict(request.env)
    if request.seed_env is not None and request.seed is not None:
        env[request.seed_env] = str(request.seed)
    return env


def _judge(request: Request, enclosure: Enclosure, ended: Ended, oom_killed: int) -> _Judged:
    if ended.ended_by == "stop":
        return _Judged(Outcome.INTERRUPTED, "it was asked to stop before the command had ended")
    if ended.ended_by == "limit":
        return _Judged(Outcome.FAILED, f"the command did not end within {request.limits.wall_s:g} s")
    if ended.problem is not None:
        return _not_started(enclosure, ended)
    if ended.status != 0 and oom_killed > 0:
        return _Judged(Outcome.INFRASTRUCTURE, f"the node killed {oom_killed} of its processes for want of memory")
    if ended.status == 0:
        return _read(request, ended)
    return _nonzero(enclosure, ended)


def _not_started(enclosure: Enclosure, ended: Ended) -> _Judged:
    reason = f"{enclosure.name}: the command could not be started: {ended.problem}"
    if ended.errno is None or ended.errno in _NODE_ERRNOS or enclosure.name != "none":
        return _Judged(Outcome.INFRASTRUCTURE, reason)
    # Without a container the program that does not exist is the benchmark's own.
    return _Judged(Outcome.FAILED, reason)


def _nonzero(enclosure: Enclosure, ended: Ended) -> _Judged:
    last = " ".join(" ".join(ended.stderr.splitlines()[-_LAST_LINES:]).split())[-300:]
    said = f": {last}" if last else ""
    start = enclosure.start_failure(ended.status, ended.stderr)
    if start is not None:
        return _Judged(Outcome.INFRASTRUCTURE, start)
    if ended.status == Exit.TRY_LATER:
        return _Judged(Outcome.INFRASTRUCTURE, f"the command asked to be tried later (exit status 75){said}")
    if _NODE_TEXT.search(last):
        return _Judged(Outcome.INFRASTRUCTURE, f"the node has no space or memory left{said}")
    if ended.status is not None and ended.status < 0:
        return _Judged(Outcome.FAILED, f"the command was ended by {signal_name(ended.status)}{said}")
    return _Judged(Outcome.FAILED, f"the command ended with exit status {ended.status}{_as_signal(ended.status)}{said}")


def _as_signal(status: int | None) -> str:
    # A shell and a container's init report a child killed by signal n as 128 + n.
    if status is None or not _SHELL_SIGNAL < status <= _SHELL_SIGNAL + signal.SIGSYS:
        return ""
    return f" (perhaps {signal_name(_SHELL_SIGNAL - status)})"


def _read(request: Request, ended: Ended) -> _Judged:
    found = read_metric(ended.stdout, request.metric, cut=ended.cut)
    if isinstance(found, Reading):
        return _Judged(Outcome.MEASURED, reading=found)
    return _Judged(Outcome.FAILED, found.reason)


def _measurement(
    request: Request, argv: tuple[str, ...], enclosure: Enclosure, launch: Launch, ended: Ended, judged: _Judged
) -> Measurement:
    node = this_node()
    notes = [*launch.notes, *ended.notes]
    if ended.left_over and ended.ended_by == "itself":
        notes.append(f"{ended.left_over} processes were still there when the command had ended; they were killed")
    status = ended.status if ended.ended_by == "itself" else None
    return Measurement(
        outcome=judged.outcome,
        command=argv,
        metric=request.metric,
        seed=request.seed,
        value=judged.reading.value if judged.reading else None,
        metrics=dict(judged.reading.metrics) if judged.reading else {},
        reason=judged.reason,
        exit_status=status if status is not None and status >= 0 else None,
        exit_signal=signal_name(status) if status is not None and status < 0 else None,
        seconds=ended.seconds,
        cpu_user_s=ended.user_s,
        cpu_system_s=ended.system_s,
        max_rss_kib=ended.max_rss_kib,
        output_bytes=ended.output_bytes,
        output_cut=ended.cut,
        cpus=request.cpus,
        node=node.name,
        cpu_model=node.cpu_model,
        runtime=enclosure.name,
        image_sha256=enclosure.image_sha256,
        network=launch.network,
        notes=tuple(notes),
    )
