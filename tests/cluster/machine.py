"""One machine of the slurm tier: private namespaces on a throw-away overlay, and commands run inside them."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from outerloop_hpc.process import Finished, run_command
from tests.cluster import cache
from tests.cluster.cache import BuildFailed
from tests.cluster.processes import Process, child_of, namespace, processes_in

#: Where the checkout's copy and its virtual environment are, inside.
SOURCE = "/opt/outerloop/src"
VENV = "/opt/outerloop/venv"
PATH = f"{VENV}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_START_LIMIT_S = 240.0
#: Seconds for a command, or for a condition to become true, unless told: what a machine needs on which all tiers run.
PATIENCE_S = 180.0


@dataclass(frozen=True, slots=True)
class Bind:
    """A file or folder of the host that is visible inside."""

    source: Path
    target: str
    read_only: bool = True


@dataclass(frozen=True, slots=True)
class Plan:
    """What a machine is made of.

    Attributes:
        root: a built root file system; never written to.
        binds: what of the host is visible inside.
        copies: host folders copied in, each with its path inside; caches and environments are left out.
        network: keep the host's network (for installing); otherwise there is only a loopback of its own.
    """

    root: Path
    binds: tuple[Bind, ...] = ()
    copies: tuple[tuple[Path, str], ...] = ()
    network: bool = False

    def encoded(self, mountpoint: Path) -> str:
        """Return it as ``inside.py`` reads it."""
        return json.dumps(
            {
                "mountpoint": str(mountpoint),
                "lower": str(self.root),
                "binds": [[str(bind.source), bind.target, bind.read_only] for bind in self.binds],
                "copies": [[str(source), target] for source, target in self.copies],
                "network": self.network,
            }
        )


@dataclass
class Spawned:
    """A command that runs in the background inside the machine."""

    argv: tuple[str, ...]
    process: subprocess.Popen[bytes]
    output: tempfile._TemporaryFileWrapper[bytes] = field(repr=False)
    complaints: tempfile._TemporaryFileWrapper[bytes] = field(repr=False)
    begun: float = field(default_factory=time.monotonic)

    @property
    def running(self) -> bool:
        """Whether it has not ended yet."""
        return self.process.poll() is None

    def kill(self, sig: signal.Signals = signal.SIGKILL) -> None:
        """Send a signal to it and to everything it started in its process group."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, sig)

    def wait(self, timeout: float = PATIENCE_S) -> Finished:
        """Wait for its end (at the limit it is killed) and return what it said."""
        timed_out = False
        try:
            self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            timed_out = True
            self.kill()
            self.process.wait()
        texts = []
        for file in (self.output, self.complaints):
            with file:
                file.seek(0)
                texts.append(file.read().decode("utf-8", errors="replace"))
        status = None if timed_out else self.process.returncode
        return Finished(self.argv, status, texts[0], texts[1], timed_out, time.monotonic() - self.begun)


class Machine:
    """Private mount, pid, network and hostname namespaces; everything in them ends with ``close`` or with us."""

    def __init__(self, plan: Plan, where: Path | None = None) -> None:
        self._network = plan.network
        mountpoint = (where or cache.folder()) / "mnt"  # private to each mount namespace, so one folder serves all
        mountpoint.mkdir(parents=True, exist_ok=True)
        self._nsenter = shutil.which("nsenter") or "/usr/bin/nsenter"
        flags = ["--mount", "--pid", "--fork", "--kill-child", "--uts", *([] if plan.network else ["--net"])]
        program = [sys.executable, "-I", "-S", str(Path(__file__).with_name("inside.py"))]
        self._keeper = subprocess.Popen(
            ["unshare", *flags, "--", *program, plan.encoded(mountpoint)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self._spawned: list[Spawned] = []
        self.init_pid = self._wait_until_up()
        self._pid_namespace = namespace(self.init_pid, "pid")

    def _wait_until_up(self) -> int:
        """Return the host's process id of the machine's init."""
        assert self._keeper.stdout is not None
        assert self._keeper.stderr is not None
        ready, _, _ = select.select([self._keeper.stdout], [], [], _START_LIMIT_S)
        if ready and self._keeper.stdout.readline() == b"up\n":
            init = child_of(self._keeper.pid)
            if init is not None:
                return init
        self._keeper.kill()
        complaint = self._keeper.communicate()[1].decode("utf-8", errors="replace").strip()
        raise BuildFailed(f"the test machine did not come up: {complaint[-800:] or 'no complaint'}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End everything inside; idempotent. Afterwards no process, mount or file of it is left on the host."""
        if self._keeper.stdin is not None and not self._keeper.stdin.closed:
            self._keeper.communicate()
        for spawned in self._spawned:
            if not spawned.output.closed:
                spawned.wait()

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
        """Run a command inside as ``user`` (in that user's home unless ``cwd`` says otherwise) and wait for it."""
        done = run_command(
            self._entering(argv, user, cwd),
            timeout=timeout,
            env=environment(user) | dict(env or {}),
            stdin=None if stdin is None else stdin.encode(),
        )
        return Finished(tuple(argv), done.status, done.stdout, done.stderr, done.timed_out, done.seconds)

    def spawn(
        self, argv: Sequence[str], *, user: str = "root", env: Mapping[str, str] | None = None, cwd: str | None = None
    ) -> Spawned:
        """Start a command inside and return at once; it ends with the machine at the latest."""
        output, complaints = tempfile.NamedTemporaryFile(), tempfile.NamedTemporaryFile()  # noqa: SIM115 - wait() closes
        process = subprocess.Popen(
            self._entering(argv, user, cwd),
            env=environment(user) | dict(env or {}),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=complaints,
            start_new_session=True,
        )
        spawned = Spawned(tuple(argv), process, output, complaints)
        self._spawned.append(spawned)
        return spawned

    def _entering(self, argv: Sequence[str], user: str, cwd: str | None) -> list[str]:
        namespaces = ["--mount", "--pid", "--uts", *([] if self._network else ["--net"])]
        entering = [self._nsenter, "--target", str(self.init_pid), *namespaces, "--"]
        if user != "root":
            entering += ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups", "--"]
        return [*entering, "env", "-C", cwd or home(user), *argv]

    def check(
        self,
        argv: Sequence[str],
        *,
        user: str = "root",
        timeout: float = PATIENCE_S,
        cwd: str | None = None,
        stdin: str | None = None,
    ) -> str:
        """Run a command that must succeed and return its standard output.

        Raises:
            AssertionError: it did not; with its complaint.
        """
        done = self.run(argv, user=user, timeout=timeout, cwd=cwd, stdin=stdin)
        assert done.ok, f"{' '.join(argv)}: {done.complaint()}\n{done.stdout}"
        return done.stdout

    def write(self, path: str, text: str, *, user: str = "root", mode: int | None = None) -> None:
        """Write a file inside as ``user``; missing folders are made."""
        self.check(["mkdir", "-p", "--", str(Path(path).parent)], user=user)
        self.check(["dd", "status=none", f"of={path}"], user=user, stdin=text)
        if mode is not None:
            self.check(["chmod", f"{mode:o}", "--", path], user=user)

    def read(self, path: str) -> str:
        """Return a file of the inside.

        Raises:
            FileNotFoundError: it cannot be read.
        """
        done = self.run(["cat", "--", path])
        if not done.ok:
            raise FileNotFoundError(done.complaint())
        return done.stdout

    def processes(self) -> list[Process]:
        """Return every process inside, seen from the host."""
        return processes_in(self._pid_namespace)

    def end(
        self,
        chosen: Callable[[Process], bool],
        what: str,
        sig: signal.Signals = signal.SIGKILL,
        timeout: float = PATIENCE_S,
    ) -> None:
        """Send a signal to the chosen processes, also to those that they start meanwhile, and wait until none is left.

        Raises:
            AssertionError: some live on.
        """
        signalled: set[int] = set()

        def none_left() -> bool:
            left = [process for process in self.processes() if chosen(process)]
            for process in left:
                if process.host_pid not in signalled:
                    process.kill(sig)
                    signalled.add(process.host_pid)
            return not left

        try:
            self.wait_until(none_left, f"the end of {what}", timeout)
        except AssertionError as error:
            raise AssertionError(f"{error}; left: {[p for p in self.processes() if chosen(p)]}") from None

    def wait_until(self, condition: Callable[[], bool], what: str, timeout: float = PATIENCE_S) -> None:
        """Poll ``condition``.

        Raises:
            AssertionError: it did not become true in time; the text says what was waited for.
        """
        limit = time.monotonic() + timeout
        while not condition():
            assert time.monotonic() < limit, f"waited {timeout:.0f} s in vain: {what}"
            time.sleep(0.1)


def home(user: str) -> str:
    """Return a user's home folder inside."""
    return "/root" if user == "root" else f"/home/{user}"


def environment(user: str) -> dict[str, str]:
    """Return the whole environment that a login of ``user`` has inside; nothing of the host's leaks in."""
    return {"PATH": PATH, "HOME": home(user), "USER": user, "LOGNAME": user, "LANG": "C.UTF-8", "TERM": "dumb"}
