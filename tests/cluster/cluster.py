"""A real Slurm on one machine: brought up, used as root, alice or bob, and hurt in well-defined ways."""

from __future__ import annotations

import signal
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from outerloop_hpc.process import Finished
from tests.cluster import cache
from tests.cluster.configuration import MAX_JOB_ID, NODES, Settings
from tests.cluster.daemons import Daemons
from tests.cluster.machine import PATIENCE_S, SOURCE, VENV, Bind, Machine, Plan, Spawned
from tests.cluster.rootfs import Recipe, root
from tests.cluster.venv import CHECKOUT, venv

#: The folder that stands for the shared filesystem; anyone may write there.
SHARED = "/shared"
#: Container images of the cache, read-only; those built later appear in it.
IMAGES = "/opt/outerloop/images"
_READY_STATES = {"idle", "mixed", "allocated", "completing"}
#: A node is away at least so long: the controller does not notice a new start in the second of the last one.
_BOOT_S = 2.5
_LIMIT_S = 240.0


class Cluster:
    """One running test cluster.

    Attributes:
        version: of Slurm, as in ``(22, 5)``.
        accounting: whether there is a slurmdbd.
        machine: where it runs.
    """

    def __init__(self, machine: Machine, settings: Settings) -> None:
        self.machine = machine
        self.version = _version(machine)
        self.accounting = settings.accounting
        self._settings = settings
        self._daemons = Daemons(machine, self.version)
        self._down: set[str] = set()
        self._crashed: set[str] = set()
        self._away_since: dict[str, float] = {}

    def start(self) -> None:
        """Bring everything up; returns when the three nodes are idle."""
        self._daemons.prepare(self._settings)
        compiling = self.machine.spawn([f"{VENV}/bin/python", "-m", "compileall", "-q", f"{SOURCE}/outerloop_hpc"])
        self._daemons.start_munge()
        if self.accounting:
            self._daemons.start_database()
            self._daemons.start_accounting()
        self._daemons.start_controller()
        for node in NODES:
            self._daemons.start_node(node)
        self.wait_idle()
        compiling.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End the cluster and everything that runs in it."""
        self.machine.close()

    # --- use

    def run(
        self,
        argv: Sequence[str],
        *,
        user: str = "root",
        env: Mapping[str, str] | None = None,
        timeout: float = PATIENCE_S,
        cwd: str | None = None,
        stdin: str | None = None,
    ) -> Finished:
        """Run a command inside; see ``Machine.run``."""
        return self.machine.run(argv, user=user, env=env, timeout=timeout, cwd=cwd, stdin=stdin)

    def spawn(
        self, argv: Sequence[str], *, user: str = "root", env: Mapping[str, str] | None = None, cwd: str | None = None
    ) -> Spawned:
        """Start a command inside in the background; see ``Machine.spawn``."""
        return self.machine.spawn(argv, user=user, env=env, cwd=cwd)

    def check(
        self,
        argv: Sequence[str],
        *,
        user: str = "root",
        timeout: float = PATIENCE_S,
        cwd: str | None = None,
        stdin: str | None = None,
    ) -> str:
        """Run a command that must succeed and return its standard output; see ``Machine.check``."""
        return self.machine.check(argv, user=user, timeout=timeout, cwd=cwd, stdin=stdin)

    def write(self, path: str, text: str, *, user: str = "root", mode: int | None = None) -> None:
        """Write a file inside as ``user``."""
        self.machine.write(path, text, user=user, mode=mode)

    def read(self, path: str) -> str:
        """Return a file of the inside; FileNotFoundError when it cannot be read."""
        return self.machine.read(path)

    # --- see

    def node_states(self) -> dict[str, str]:
        """Return each node's state word (with its suffix: ``*`` for not responding), as sinfo says."""
        words = self.check(["sinfo", "-h", "-N", "-p", "main", "-o", "%N %T"]).split()
        return dict(zip(words[::2], words[1::2], strict=True))

    def jobs(self) -> list[str]:
        """Return the ids of all jobs that the controller does not count as ended."""
        return self.check(["squeue", "-h", "-o", "%i"]).split()

    def answers(self) -> bool:
        """Whether the controller answers."""
        return self.run(["squeue", "-h"], timeout=10).ok

    def wait_idle(self, *, timeout: float = _LIMIT_S) -> None:
        """Wait until no job is left and all nodes are idle."""

        def idle() -> bool:
            return not self.jobs() and set(self.node_states().values()) == {"idle"}

        self.machine.wait_until(idle, "an idle cluster", timeout)

    def cancel_jobs(self, *, timeout: float = _LIMIT_S, keep: Sequence[str] = ()) -> None:
        """Cancel every job but those to keep, and wait until they are gone."""

        def left() -> list[str]:
            return [job for job in self.jobs() if job not in keep]

        jobs = left()
        if jobs:
            self.run(["scancel", *(job.partition("_")[0] if "[" in job else job for job in jobs)])
            self.machine.wait_until(lambda: not left(), "the end of cancelled jobs", timeout)

    # --- hurt and heal

    def node_down(self, node: str) -> None:
        """Kill the slurmd of a node; its jobs run on, and the controller notices after SlurmdTimeout."""
        self._down.add(node)
        self._daemons.stop_node(node)
        self._away_since[node] = time.monotonic()

    def node_crash(self, node: str) -> None:
        """Kill everything on a node, jobs included, as a power cut does."""
        self._down.add(node)
        self._crashed.add(node)
        self._daemons.crash_node(node)
        self._away_since[node] = time.monotonic()

    def node_set_down(self, node: str) -> None:
        """Set a node down by scontrol: the controller ends its jobs as NODE_FAIL at once."""
        self._down.add(node)
        self.check(["scontrol", "update", f"nodename={node}", "state=down", "reason=test"])

    def node_up(self, node: str) -> None:
        """Bring a node back, whichever way it went down; after a crash it comes back as freshly booted."""
        time.sleep(max(0.0, self._away_since.pop(node, 0.0) + _BOOT_S - time.monotonic()))
        before = self._registration(node)
        if self._daemons.start_node(node, rebooted=node in self._crashed):
            # Until it has registered, the controller's word on the node is about the old slurmd.
            self.machine.wait_until(lambda: self._registration(node) not in {before, "None"}, f"{node} registered")

        def in_service() -> bool:
            state = self.node_states()[node]
            if state.startswith("down"):  # set so by hand, or for the unexpected boot: both stay until resumed
                self.run(["scontrol", "update", f"nodename={node}", "state=resume"])
            return state in _READY_STATES

        self.machine.wait_until(in_service, f"{node} in service", _LIMIT_S)
        self._down.discard(node)
        self._crashed.discard(node)

    def _registration(self, node: str) -> str:
        """Return when, for all the controller knows, the node's slurmd started."""
        words = self.check(["scontrol", "show", "node", node]).split()
        return next(word.partition("=")[2] for word in words if word.startswith("SlurmdStartTime="))

    def controller_down(self, *, crash: bool = False) -> None:
        """Stop slurmctld; with ``crash`` by KILL, so that it cannot save its state first."""
        self._down.add("controller")
        self._daemons.stop_controller(signal.SIGKILL if crash else signal.SIGTERM)

    def controller_up(self) -> None:
        """Start slurmctld; returns when it answers."""
        self._daemons.start_controller()
        self._down.discard("controller")

    def save_jobs(self, job: str) -> None:
        """Wait until the controller has saved its jobs; it does so seconds after a change, which ``job`` gets."""
        self.check(["touch", "/run/before"])
        self.check(["scontrol", "update", f"jobid={job}", "comment=saved"])
        newer = ["test", "/var/spool/slurmctld/job_state", "-nt", "/run/before"]
        self.machine.wait_until(lambda: self.run(newer).ok, "saved jobs")

    def controller_freeze(self) -> None:
        """Suspend slurmctld: it takes connections and answers none, so that every command hangs."""
        self._down.add("frozen")
        self._daemons.signal_controller(signal.SIGSTOP)

    def controller_thaw(self) -> None:
        """Let a suspended slurmctld go on with what reached it; returns when it answers."""
        self._daemons.signal_controller(signal.SIGCONT)
        self._daemons.await_controller()
        self._down.discard("frozen")

    def accounting_down(self) -> None:
        """Stop slurmdbd."""
        self._down.add("accounting")
        self._daemons.stop_accounting()

    def accounting_up(self) -> None:
        """Start slurmdbd; returns when it answers."""
        self._daemons.start_accounting()
        self._down.discard("accounting")

    def database_down(self) -> None:
        """Stop MariaDB under a running slurmdbd."""
        self._down.add("database")
        self._daemons.stop_database()

    def database_up(self) -> None:
        """Start MariaDB; returns when it and slurmdbd answer."""
        self._daemons.start_database()
        self._down.discard("database")
        if "accounting" not in self._down:
            self._daemons.await_accounting()

    def reset_job_ids(self, first: int = 1, maximum: int = MAX_JOB_ID) -> None:
        """Let the next job have id ``first`` (ids stay below ``maximum``); forgets all jobs, so only when idle."""
        assert not self.jobs(), "job ids can be reset on an idle cluster only"
        self._settings = Settings(self.accounting, self._settings.min_job_age, first, maximum)
        self._daemons.stop_controller()
        self._daemons.configure(self._settings)
        self._daemons.forget_jobs()
        self._daemons.start_controller(forgetful=True)
        self.wait_idle()

    def heal(self) -> None:
        """Bring up whatever a fault function took down."""
        if "frozen" in self._down:
            self.controller_thaw()
        if "database" in self._down:
            self.database_up()
        if "accounting" in self._down:
            self.accounting_up()
        if "controller" in self._down:
            self.controller_up()
        for node in self._down & set(NODES):
            self.node_up(node)


def start(
    recipe: Recipe, *, settings: Settings | None = None, shared: Path | None = None, where: Path | None = None
) -> Cluster:
    """Build what is not in the cache and start a cluster.

    Args:
        recipe: ``rootfs.SLURM22`` or ``rootfs.SLURM26``.
        settings: accounting, how long ended jobs are remembered, the range of job ids.
        shared: a folder of the host to be ``/shared`` inside (it becomes writable for all); else it ends with us.
        where: the cache folder; by default as the environment says.

    Raises:
        BuildFailed: a root file system or the environment could not be built, or namespaces are refused.
    """
    store = where or cache.folder()
    images = store / "images"
    images.mkdir(parents=True, exist_ok=True)
    binds = [Bind(venv(recipe, store), VENV), Bind(images, IMAGES)]
    if shared is not None:
        binds.append(Bind(shared, SHARED, read_only=False))
    machine = Machine(Plan(root(recipe, store), tuple(binds), ((CHECKOUT, SOURCE),)), store)
    try:
        cluster = Cluster(machine, settings or Settings())
        machine.check(["mkdir", "-p", SHARED])
        machine.check(["chmod", "1777", SHARED])
        cluster.start()
    except BaseException:
        machine.close()
        raise
    return cluster


def _version(machine: Machine) -> tuple[int, int]:
    major, minor = machine.check(["slurmctld", "-V"]).split()[-1].split(".")[:2]
    return int(major), int(minor)
