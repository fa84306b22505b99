"""Measure: run a benchmark command once, in a sandbox and a fresh checkout, and say what came of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from outerloop_hpc.clock import Clock
from outerloop_hpc.errors import UsageError
from outerloop_hpc.measure.command import split_command
from outerloop_hpc.measure.enclosure import Enclosure, Launch
from outerloop_hpc.measure.judge import Judged, Read, judge
from outerloop_hpc.measure.measurement import Measurement
from outerloop_hpc.measure.node import oom_kills, this_node
from outerloop_hpc.measure.output import Reading, Unusable, read_metric
from outerloop_hpc.supervision.child import Ended, Limits, run_child, signal_name

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
        read: reads the output of a command that ended well in another way than by ``metric``.
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
    read: Read | None = None

    def reader(self) -> Read:
        """Return what reads the output."""

        def by_metric(stdout: bytes, cut: bool) -> Reading | Unusable:  # noqa: FBT001 - the form of a Read
            return read_metric(stdout, self.metric, cut=cut)

        return self.read or by_metric


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
    judged = judge(request.reader(), request.limits.wall_s, enclosure, ended, killed)
    return _measurement(request, argv, enclosure, launch, ended, judged)


def environment(request: Request) -> dict[str, str]:
    """Return the variables that a measurement sets: thread counts, the contract's own, the seed (pure)."""
    env = {name: str(max(1, request.cpus)) for name in THREAD_VARIABLES} | dict(request.env)
    if request.seed_env is not None and request.seed is not None:
        env[request.seed_env] = str(request.seed)
    return env


def _measurement(
    request: Request, argv: tuple[str, ...], enclosure: Enclosure, launch: Launch, ended: Ended, judged: Judged
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
