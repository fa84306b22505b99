"""The daemons of a test cluster: prepared, started, stopped and asked whether they answer, one by one."""

from __future__ import annotations

import secrets
import signal

from tests.cluster.configuration import DATABASE_SQL, NODES, SLURMDBD_CONF, Settings, cgroup_conf, slurm_conf
from tests.cluster.machine import Machine
from tests.cluster.processes import Process

#: Ordinary users of the cluster, with their ids.
USERS = {"alice": 5001, "bob": 5002}
_SLURM_CONF = "/etc/slurm/slurm.conf"
_FOLDERS = {
    "slurm": ("/var/spool/slurmctld", "/var/log/slurm"),
    "munge": ("/run/munge", "/var/log/munge", "/var/lib/munge", "/etc/munge"),
    "mysql": ("/run/mysqld", "/run/mariadbd", "/var/lib/mysql"),  # bookworm's socket is in one, sid's in the other
    "root": ("/etc/slurm", *(f"/var/spool/slurmd.{node}" for node in NODES)),
}
_LIMIT_S = 240.0


class Daemons:
    """Starts and stops what a cluster is made of; knows nothing of jobs."""

    def __init__(self, machine: Machine, version: tuple[int, int]) -> None:
        self._machine = machine
        self._version = version
        self._hostnames: dict[str, set[str]] = {node: set() for node in NODES}

    def prepare(self, settings: Settings) -> None:
        """Make users, folders, keys and configuration."""
        run = self._machine.check
        for user, uid in USERS.items():
            run(["useradd", "--uid", str(uid), "--create-home", "--shell", "/bin/bash", user])
        for owner, folders in _FOLDERS.items():
            run(["mkdir", "-p", *folders])
            run(["chown", "-R", f"{owner}:{owner}", *folders])
        run(["chmod", "755", "/run/munge"])
        self._machine.write("/etc/hosts", f"127.0.0.1 localhost ctl {' '.join(NODES)}\n")
        self._machine.write("/etc/munge/munge.key", secrets.token_hex(512), mode=0o400)
        run(["chown", "munge:munge", "/etc/munge/munge.key"])
        run(["chmod", "700", "/etc/munge"])
        self.configure(settings)
        self._machine.write("/etc/slurm/cgroup.conf", cgroup_conf(self._version))
        if self._version < (23, 11):  # this one cannot do without a cgroup v1 tree: give it an empty one
            run(["mount", "-t", "tmpfs", "tmpfs", "/sys/fs/cgroup"])

    def configure(self, settings: Settings) -> None:
        """Write slurm.conf (and slurmdbd.conf); daemons read it when they start."""
        self._machine.write(_SLURM_CONF, slurm_conf(settings))
        if settings.accounting:
            self._machine.write("/etc/slurm/slurmdbd.conf", SLURMDBD_CONF, mode=0o600)
            self._machine.check(["chown", "slurm:slurm", "/etc/slurm/slurmdbd.conf"])

    def start_munge(self) -> None:
        """Start munged."""
        self._machine.check(["munged", "--force"], user="munge", cwd="/")

    def start_database(self) -> None:
        """Start MariaDB and wait until it answers; the database of slurmdbd is there afterwards."""
        if not self._machine.run(["test", "-d", "/var/lib/mysql/mysql"]).ok:
            install = ["mariadb-install-db", "--user=mysql", "--datadir=/var/lib/mysql"]
            self._machine.check([*install, "--auth-root-authentication-method=socket"])
        log = "--log-error=/var/log/slurm/mariadb.log"
        self._machine.check(["touch", "/var/log/slurm/mariadb.log"])
        self._machine.check(["chmod", "666", "/var/log/slurm/mariadb.log"])
        self._machine.check(["setsid", "--fork", "mariadbd", "--user=mysql", "--bind-address=127.0.0.1", log])
        self._await_answer(["mariadb-admin", "ping"], "mariadb")
        self._machine.check(["mariadb"], stdin=DATABASE_SQL)

    def stop_database(self) -> None:
        """Stop MariaDB."""
        self._stop("mariadbd")

    def start_accounting(self) -> None:
        """Start slurmdbd and wait until it answers; the cluster is registered afterwards."""
        self._machine.check(["slurmdbd"])
        self.await_accounting()
        if "test" not in self._machine.check(["sacctmgr", "-n", "-P", "show", "cluster", "format=cluster"]).split():
            self._machine.check(["sacctmgr", "-i", "add", "cluster", "test"])

    def await_accounting(self) -> None:
        """Wait until slurmdbd answers with what it has in the database."""
        self._await_answer(["sacctmgr", "-n", "show", "cluster"], "slurmdbd")

    def stop_accounting(self) -> None:
        """Stop slurmdbd."""
        self._stop("slurmdbd")

    def start_controller(self, *, forgetful: bool = False) -> None:
        """Start slurmctld and wait until it answers; ``forgetful`` accepts that saved state is missing."""
        self._machine.check(["slurmctld", *(["-i"] if forgetful else [])])
        self.await_controller()

    def stop_controller(self, sig: signal.Signals = signal.SIGTERM) -> None:
        """Stop slurmctld; with KILL it cannot save its state first."""
        self._stop("slurmctld", sig)
        self._stop("slurmscriptd", sig)

    def signal_controller(self, sig: signal.Signals) -> None:
        """Send slurmctld a signal that it survives: STOP lets its clients hang, CONT lets it go on."""
        for process in self._machine.processes():
            if process.name == "slurmctld":
                process.kill(sig)

    def await_controller(self) -> None:
        """Wait until slurmctld answers."""
        self._await_answer(["squeue", "-h"], "slurmctld")

    def forget_jobs(self) -> None:
        """Remove the saved job state (and with it the id counter) of a stopped controller."""
        self._machine.check(["find", "/var/spool/slurmctld", "-name", "job_state*", "-delete"])

    def start_node(self, node: str, *, rebooted: bool = False) -> bool:
        """Start the slurmd of a node, in a hostname namespace of its own, unless it runs.

        Args:
            node: its name.
            rebooted: let it report a fresh boot; the controller then knows that the jobs it had are gone.

        Returns:
            False when it was running already.
        """
        if self._slurmd(node) is not None:
            return False
        renamed = 'hostname "$1"; shift; exec slurmd "$@"'
        options = [*(["-b"] if rebooted else []), "-N", node]
        self._machine.check(["unshare", "--uts", "sh", "-c", renamed, "slurmd", node, *options])
        self._machine.wait_until(lambda: self._slurmd(node) is not None, f"slurmd of {node}")
        return True

    def stop_node(self, node: str) -> None:
        """Kill the slurmd of a node; its jobs run on."""
        self._slurmd(node)
        self._machine.end(lambda process: _is_slurmd(process, node), f"slurmd of {node}")

    def crash_node(self, node: str) -> None:
        """Kill whatever runs under a node's name, jobs included, as a power cut does."""
        self._slurmd(node)
        self._machine.end(lambda process: process.uts in self._hostnames[node], f"all of {node}")

    def _slurmd(self, node: str) -> Process | None:
        """Return a node's slurmd, and remember its hostname namespace: its jobs share it and outlive it."""
        for process in self._machine.processes():
            if _is_slurmd(process, node):
                self._hostnames[node].add(process.uts)
                return process
        return None

    def _stop(self, name: str, sig: signal.Signals = signal.SIGTERM) -> None:
        self._machine.end(lambda process: process.name == name, name, sig)

    def _await_answer(self, argv: list[str], what: str) -> None:
        try:
            self._machine.wait_until(lambda: self._machine.run(argv, timeout=10).ok, f"an answer of {what}", _LIMIT_S)
        except AssertionError as error:
            tail = self._machine.run(["tail", "-n", "20", f"/var/log/slurm/{what}.log"]).stdout
            raise AssertionError(f"{error}; its log ends with\n{tail}") from None


def _is_slurmd(process: Process, node: str) -> bool:
    return process.name == "slurmd" and process.argv[-2:] == ("-N", node)
