"""Passes that die: each order on stdin runs one command line in a fork whose k-th effect ends in kill -9.

Run as ``python -m tests.local.driver``; one JSON object a line: ``arguments``, ``kill`` (0 for never) and ``when``
(before or after the effect), ``at`` (in place of ``kill``: the first effect whose words hold this), ``signal`` (in
place of SIGKILL, such as SIGSTOP), ``refuse`` (system calls, see ``refusals``, from effect ``refuse_at`` on),
``polite`` (false: no lock between passes), ``later`` (seconds by which the command line believes it is later),
``env`` (variables), ``clock`` (file with the time of a scripted cluster), ``name`` (of a command line that may stop:
the answer comes then, too, and ``go_on`` with that name in place of ``arguments`` is the next order for it).
It answers with one line: ``status`` (negative for a signal), ``effects`` (what was about to be done, in order),
``out`` and ``err``.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Self

import git
import jinja2.ext
import submitit
import yaml

from outerloop_hpc import clock, effects
from outerloop_hpc.cli import archived, bench, chain, follow, listing, main, passes, points, polite, wiring
from outerloop_hpc.clock import SystemClock
from outerloop_hpc.config import sources
from outerloop_hpc.engine.layout import Layout
from tests.fakeslurm import virtualclock
from tests.local import refusals

#: Imported before the forks, so that each costs milliseconds.
_CLI = (archived, bench, chain, follow, listing, main, passes, points, polite, wiring)
_WARM = (*_CLI, git, jinja2, sources, submitit, yaml)


@dataclass
class Reaper:
    """An around-function that kills its own process at the k-th effect, or lets system calls fail from there on."""

    kill: int
    when: str
    diary: int
    refuse: Mapping[str, Any] | None
    refuse_at: int
    signal: int = signal.SIGKILL
    at: str = ""
    count: int = field(default=0)

    def __call__(self, what: str, subject: str, action: Callable[[], Any]) -> Any:
        self.count += 1
        due = self.count == self.kill
        if self.at and self.at in f"{what} {subject}":
            due, self.at = True, ""
        # Written straight to a file of our own: nothing may be lost in a buffer.
        os.write(self.diary, json.dumps([what, subject]).encode() + b"\n")
        if self.count == self.refuse_at:
            refusals.refuse_from_now(self.refuse)
        if due and self.when == "before":
            os.kill(os.getpid(), self.signal)
        result = action()
        if due and self.when == "after":
            os.kill(os.getpid(), self.signal)
        return result


def carry_out(order: Mapping[str, Any], folder: Path) -> None:
    """In the fork: run the command line with its streams in files; does not return."""
    for number, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(folder / name, os.O_WRONLY | os.O_CREAT, 0o600), number)
    diary = os.open(folder / "effects", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    when, refuse, refuse_at = order.get("when", "before"), order.get("refuse"), order.get("refuse_at", 0)
    number = signal.Signals[order.get("signal", "SIGKILL")]
    effects.install(Reaper(order.get("kill", 0), when, diary, refuse, refuse_at, number, order.get("at", "")))
    if ahead := order.get("later", 0):
        real = SystemClock.now
        vars(clock)["SystemClock"].now = lambda self: real(self) + timedelta(seconds=ahead)
    os.environ.update(order.get("env", {}))
    if path := order.get("clock"):
        virtualclock.install(virtualclock.VirtualClock(Path(path)))
    sys.argv = ["outerloop-hpc", *order["arguments"]]
    if not order.get("polite", True):
        vars(polite)["polite_lock"] = _no_lock
    if not refuse_at:
        refusals.refuse_from_now(refuse)
    main.main()


@contextlib.contextmanager
def _no_lock(_layout: Layout, *, wanted: bool = True) -> Iterator[None]:
    yield


def answer(order: Mapping[str, Any], stopped: dict[str, tuple[int, Path]]) -> dict[str, Any]:
    """Fork, or let go on what stopped; wait, and say what happened."""
    name = order.get("go_on") or order.get("name", "")
    if "go_on" in order:
        child, folder = stopped.pop(name)
        os.kill(child, signal.SIGCONT)
    else:
        folder = Path(tempfile.mkdtemp(prefix="outerloop-driver-"))
        child = _forked(order, folder)
    _, status = os.waitpid(child, os.WUNTRACED if name else 0)
    diary = (folder / "effects").read_text(encoding="utf-8").splitlines()
    said = {
        "status": -os.WSTOPSIG(status) if os.WIFSTOPPED(status) else os.waitstatus_to_exitcode(status),
        "effects": [json.loads(line) for line in diary],
        "out": (folder / "out").read_text(encoding="utf-8"),
        "err": (folder / "err").read_text(encoding="utf-8"),
    }
    if os.WIFSTOPPED(status):
        stopped[name] = (child, folder)
    else:
        shutil.rmtree(folder, ignore_errors=True)
    return said


def _forked(order: Mapping[str, Any], folder: Path) -> int:
    child = os.fork()
    if child == 0:
        status = 1
        try:
            carry_out(order, folder)
        except SystemExit as leaving:
            status = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
        except BaseException as error:  # noqa: BLE001 - the fork must end here, whatever happened
            os.write(2, f"Traceback: {type(error).__name__}: {error}\n".encode())
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    return child


def serve() -> None:
    """Carry out every order on stdin; what stands still at the end is killed."""
    stopped: dict[str, tuple[int, Path]] = {}
    for line in sys.stdin:
        sys.stdout.write(json.dumps(answer(json.loads(line), stopped)) + "\n")
        sys.stdout.flush()
    for child, folder in stopped.values():
        os.kill(child, signal.SIGKILL)
        shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True)
class Ended:
    """What became of one order."""

    status: int
    effects: list[tuple[str, str]]
    out: str
    err: str


class Driver:
    """The other end: starts the driver process and gives it orders."""

    def __init__(self, folder: Path, env: Mapping[str, str], inside: Sequence[str] = ()) -> None:
        self.process = subprocess.Popen(
            [*inside, sys.executable, "-m", "tests.local.driver"],
            cwd=folder,
            env={**env, "PYTHONPATH": os.pathsep.join([env["PYTHONPATH"], str(Path(__file__).parents[2])])},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.stdin is not None:
            self.process.stdin.close()
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()

    def send(self, *arguments: str, **how: object) -> None:
        """Give an order; ``kill``, ``when``, ``refuse`` and ``polite`` say how."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"arguments": list(arguments), **how}) + "\n")
        self.process.stdin.flush()

    def answer(self) -> Ended:
        """Wait for the order that was given."""
        assert self.process.stdout is not None
        said = json.loads(self.process.stdout.readline())
        done = [(what, subject) for what, subject in said["effects"]]
        return Ended(said["status"], done, said["out"], said["err"])

    def order(self, *arguments: str, **how: object) -> Ended:
        self.send(*arguments, **how)
        return self.answer()

    def go_on(self, name: str) -> Ended:
        """Let a command line that stopped go on, until it ends."""
        return self.order(go_on=name)


if __name__ == "__main__":
    serve()
