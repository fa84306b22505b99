"""A small process between a job and its command, so that nothing of the command survives it.

It is run as a file (``python -I -S warden.py REPORT_FD``), imports little, and is the subreaper of all that the
command starts: daemons too are its children in the end, and it kills them. TERM asks the command to end and kills
everything after the grace; it also arrives when the job's process dies. It reads one JSON object on stdin
(argv, env, cwd, stdin: path or null, grace_s, parent: pid) and reports one JSON line. The command's environment comes
on stdin since a site's Python may need variables (LD_LIBRARY_PATH) that the command must not see.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import resource
import signal
import sys
import time
from contextlib import suppress

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_SIGNALS = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD}
_SWEEP_S = 5.0
_PAUSE_S = 0.01


def main(arguments: list[str]) -> int:
    """Run the command that stdin describes, and report on the descriptor in ``arguments``."""
    report = int(arguments[0])
    os.set_inheritable(report, False)  # noqa: FBT003 - the standard library's own signature
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    _prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    # Blocked and waited for, not handled: no handler can run at a bad moment.
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    # Whoever started the job may ignore it, and then the kernel keeps neither a signal nor a status for us.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    order = json.load(sys.stdin)
    problem = _read_from(order["stdin"] or os.devnull)
    child, problem = (0, problem) if problem else _start(order["argv"], order["env"], order["cwd"])
    answer: dict[str, object]
    if problem is not None:
        answer = {"errno": problem, "error": os.strerror(problem)}
    else:
        reaper = _Reaper(child)
        reaper.wait(order["grace_s"], orphaned=os.getppid() != order["parent"])
        answer = reaper.sweep()
    os.write(report, json.dumps(answer).encode() + b"\n")
    return 0


def _read_from(path: str) -> int | None:
    """Let the command read a file on stdin; returns the error number when that cannot be opened."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - pathlib costs 10 ms at each start
            os.dup2(file.fileno(), 0)
    except OSError as error:
        return error.errno or errno.EIO
    return None


def _start(argv: list[str], env: dict[str, str], cwd: str) -> tuple[int, int | None]:
    """Fork and exec in a session of its own; an error number comes back through a pipe that exec closes."""
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setsid()
            _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            signal.pthread_sigmask(signal.SIG_SETMASK, set())
            os.chdir(cwd)
            os.execvpe(argv[0], argv, env)  # noqa: S606 - no shell is the point
        except OSError as error:
            os.write(into, str(error.errno or errno.EIO).encode())
        finally:
            os._exit(127)
    os.close(into)
    with os.fdopen(out, "rb") as pipe:
        said = pipe.read()
    return child, int(said) if said else None


class _Reaper:
    """Collects every process of the command, with what it used."""

    def __init__(self, child: int) -> None:
        self.child = child
        self.status: int | None = None
        self.childless = False
        self.user = self.system = 0.0
        self.max_rss_kib = 0

    def wait(self, grace: float, *, orphaned: bool) -> None:
        """Return when the command itself ended, or was asked to and did not within the grace."""
        deadline = None
        if orphaned:
            deadline = self._ask(grace)
        while self.reap():
            left = 3600.0 if deadline is None else deadline - time.monotonic()
            if left <= 0:
                return
            got = signal.sigtimedwait(_SIGNALS, left)
            if got is not None and got.si_signo != signal.SIGCHLD and deadline is None:
                deadline = self._ask(grace)

    def _ask(self, grace: float) -> float:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.child, signal.SIGTERM)
        return time.monotonic() + grace

    def reap(self) -> bool:
        """Collect what has ended; return whether the command itself still runs."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                # Orphans come to the subreaper, so then there are no grandchildren either.
                self.childless = True
                return self.status is None
            if pid == 0:
                return self.status is None
            self._add(pid, status, usage)

    def _add(self, pid: int, status: int, usage: resource.struct_rusage) -> None:
        self.user += usage.ru_utime
        self.system += usage.ru_stime
        self.max_rss_kib = max(self.max_rss_kib, usage.ru_maxrss)
        if pid == self.child:
            self.status = os.waitstatus_to_exitcode(status)

    def sweep(self) -> dict[str, object]:
        """Kill all that is left, again and again, since a killed parent's children come here next.

        A node may have thousands of processes of others, so /proc is gone through only where something is left.
        """
        killed: set[int] = set()
        until = time.monotonic() + _SWEEP_S
        while time.monotonic() < until:
            self.reap()
            if self.childless or not (left := descendants(os.getpid())):
                break
            killed.update(left)
            for pid in left:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(_PAUSE_S)
        self.reap()
        return {
            "status": self.status,
            "user_s": self.user,
            "system_s": self.system,
            "max_rss_kib": self.max_rss_kib,
            "left_over": len(killed - {self.child}),
            "survivors": 0 if self.childless else len(descendants(os.getpid())),
        }


def descendants(root: int) -> set[int]:
    """Return the living processes below ``root``, by /proc."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 - names are enough, thousands of them
        if name.isdigit():
            parent = _parent(name)
            if parent is not None:
                children.setdefault(parent, []).append(int(name))
    found: set[int] = set()
    todo = [root]
    while todo:
        for pid in children.get(todo.pop(), ()):
            if pid not in found:
                found.add(pid)
                todo.append(pid)
    return found


def _parent(pid: str) -> int | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 - pathlib costs 10 ms at each start
            # The name in parentheses may hold anything, so count from the last one.
            state, parent = file.read().rpartition(b")")[2].split()[:2]
    except (OSError, ValueError):
        return None
    return None if state in {b"Z", b"X"} else int(parent)


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
