"""Wire the engine to this machine: the only place that knows every part."""

from __future__ import annotations

import getpass
import os
import random
import shutil
import socket
import sys
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path

from outerloop_hpc import __version__
from outerloop_hpc.benchmark.lane import BenchmarkLane
from outerloop_hpc.benchmark.plan import BenchmarkKind
from outerloop_hpc.clock import SystemClock
from outerloop_hpc.config.settings import Settings
from outerloop_hpc.config.sources import home_folder
from outerloop_hpc.engine.carry import Hands
from outerloop_hpc.engine.changes import Forges
from outerloop_hpc.engine.events import Author
from outerloop_hpc.engine.housekeeping import Share
from outerloop_hpc.engine.kind import Kind
from outerloop_hpc.engine.lane import Lane
from outerloop_hpc.engine.layout import Layout
from outerloop_hpc.engine.patience import Patience
from outerloop_hpc.engine.rules import Policy
from outerloop_hpc.engine.targets import Targets
from outerloop_hpc.engine.tick import Engine, Limits
from outerloop_hpc.errors import ConfigError
from outerloop_hpc.evolve.plan import EvolveKind
from outerloop_hpc.forge.local import LocalForge
from outerloop_hpc.forge.port import Forge
from outerloop_hpc.measure.results import refresh_ledger
from outerloop_hpc.process import Runner, run_command
from outerloop_hpc.slurm.breaker import Breaker
from outerloop_hpc.slurm.local import LocalCompute
from outerloop_hpc.slurm.port import Compute
from outerloop_hpc.slurm.query import SlurmQuery
from outerloop_hpc.slurm.sbatch import SiteOptions
from outerloop_hpc.slurm.submit import SlurmCompute
from outerloop_hpc.steward.lane import StewardLane
from outerloop_hpc.steward.plan import StewardKind

WAKE = "outerloop_hpc.cli.wake:advance"
_LOCAL_LARGEST = 10_000


def build_engine(
    settings: Settings, layout: Layout, environ: Mapping[str, str], *, project: Path | None = None
) -> Engine:
    """Build the engine for these settings; ``project`` is the project file among their origins.

    Raises:
        ConfigError: Slurm is asked for and its commands are not on PATH.
    """
    default = compute_kind(settings, environ)
    local = LocalCompute(layout.local, parallel=settings.compute.parallel, environ=environ)
    computes: dict[str, Compute] = {"local": local}
    largest = _local_largest
    if default == "slurm" or shutil.which("squeue", path=environ.get("PATH")):
        breaker = Breaker(run_command)
        slurm = build_slurm(settings, environ, breaker)
        computes["slurm"] = Patience(
            slurm,
            breaker,
            layout.patience("slurm"),
            SystemClock(),
            random.Random(),  # noqa: S311 - spreads passes, guards nothing
            cluster=settings.slurm.cluster,
            interval_s=settings.reconcile.min_interval_s,
            pause_s=settings.reconcile.ask_again_s,
        )
        largest = slurm.max_array_size if default == "slurm" else _local_largest
    kinds: dict[str, Kind] = {kind.name: kind for kind in (BenchmarkKind(), EvolveKind(), StewardKind())}
    author = Author(host=socket.gethostname(), pid=os.getpid(), user=getpass.getuser(), version=__version__)

    def render(target: str) -> None:
        refresh_ledger(layout.results, target)

    def forges(target: str) -> Forge | None:
        # A run of a target that is no longer configured still has things to say.
        return LocalForge(layout.forge / target, identity=settings.forge.identity, clock=SystemClock())

    config = "" if project is None else str(project.absolute())
    hands = Hands(
        layout,
        computes,
        author,
        SystemClock(),
        wake=WAKE,
        wakes=settings.slurm.wake,
        config=config,
        forges=forges,
        render=render,
    )
    return Engine(
        hands=hands,
        kinds=kinds,
        default=default,
        policy=policy_of(settings),
        limits=Limits(
            submissions=settings.limits.submissions_per_tick,
            live_runs=settings.limits.live_runs,
            min_free_bytes=int(settings.state.min_free_gb * 10**9),
        ),
        largest=largest,
        cluster=settings.slurm.cluster if default == "slurm" else "",
        share=Share(
            grace=timedelta(hours=settings.housekeeping.grace_hours),
            items=settings.housekeeping.items,
            seconds=settings.housekeeping.seconds,
            skew=timedelta(seconds=settings.reconcile.skew_s),
        ),
        home=home_folder(environ),
    )


def build_lanes(targets: Targets, forges: Forges, *, dry_run: bool = False) -> Sequence[Lane]:
    """Build the lanes that a tick serves."""
    return (BenchmarkLane(targets), StewardLane(targets, forges, keep=not dry_run))


def compute_kind(settings: Settings, environ: Mapping[str, str]) -> str:
    """Say where new work goes.

    Raises:
        ConfigError: Slurm is asked for and sbatch is not on PATH.
    """
    kind = wanted_kind(settings, environ)
    if kind == "slurm" and not _has_sbatch(environ):
        raise ConfigError("[compute] kind is slurm, but sbatch is not on PATH; load its module or set kind = 'local'")
    return kind


def wanted_kind(settings: Settings, environ: Mapping[str, str]) -> str:
    """Say where new work is meant to go, possible or not: ``auto`` is Slurm when sbatch is on PATH."""
    if settings.compute.kind == "auto":
        return "slurm" if _has_sbatch(environ) else "local"
    return settings.compute.kind


def _has_sbatch(environ: Mapping[str, str]) -> bool:
    return shutil.which("sbatch", path=environ.get("PATH")) is not None


def build_slurm(settings: Settings, environ: Mapping[str, str], run: Runner) -> SlurmCompute:
    """Build the Slurm side; all its commands go through ``run``."""
    given = settings.slurm
    query = SlurmQuery(
        run,
        environ,
        cluster=given.cluster,
        timeout_s=given.timeout_s,
        column_cache=cache_folder(environ) / f"sacct-columns-{socket.gethostname()}.json",
    )
    site = SiteOptions(
        account=given.account,
        partition=given.partition,
        qos=given.qos,
        constraint=given.constraint,
        extra=dict(given.options),
        cluster=given.cluster,
    )
    return SlurmCompute(
        query,
        python=given.python or sys.executable,
        site=site,
        environ=environ,
        run=run,
        submit_timeout_s=given.submit_timeout_s,
        timeout_s=given.timeout_s,
    )


def cache_folder(environ: Mapping[str, str]) -> Path:
    """Where this user keeps what can be found out again: sacct's columns on this host, digests of images."""
    named = environ.get("XDG_CACHE_HOME", "")
    return (Path(named) if named.startswith("/") else home_folder(environ) / ".cache") / "outerloop-hpc"


def policy_of(settings: Settings) -> Policy:
    """Translate the ``[reconcile]`` section."""
    given = settings.reconcile
    return Policy(
        confirm_s=given.confirm_s,
        soft_window_s=given.soft_window_s,
        grace_s=given.grace_s,
        submit_lag_s=given.submit_lag_s,
        skew_s=given.skew_s,
        backoff_s=given.backoff_s,
        archive_wait_s=given.archive_wait_s,
    )


def _local_largest() -> int:
    return _LOCAL_LARGEST
