"""Run one external command: argv list, time limit, captured and decoded output."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from outerloop_hpc import effects

_KILL_GRACE_S = 2.0


@dataclass(frozen=True, slots=True)
class Finished:
    """How a command ended.

    Attributes:
        argv: what was run.
        status: exit status; negative for a signal; ``None`` when it never started or was cut off by the time limit.
        stdout: its output, invalid UTF-8 replaced.
        stderr: its complaints, invalid UTF-8 replaced; for a command that did not start, why.
        timed_out: whether the time limit ended it.
        seconds: wall time.
        withheld: whether it was not even started, on purpose; ``stderr`` says why.
    """

    argv: tuple[str, ...]
    status: int | None
    stdout: str
    stderr: str
    timed_out: bool
    seconds: float
    withheld: bool = False

    @property
    def ok(self) -> bool:
        """Whether it ended by itself with status 0."""
        return self.status == 0

    def complaint(self) -> str:
        """One line for people: program, how it ended, the tail of its stderr."""
        how = (
            "did not answer in time"
            if self.timed_out
            else "was not started"
            if self.withheld
            else "could not be started"
            if self.status is None
            else f"exit status {self.status}"
        )
        tail = " ".join(self.stderr.split())[-300:]
        return f"{Path(self.argv[0]).name}: {how}" + (f": {tail}" if tail else "")


class Runner(Protocol):
    """The port through which adapters run commands; a fake of it is ten lines."""

    def __call__(
        self,
        argv: Sequence[str],
        *,
        timeout: float,
        env: Mapping[str, str] | None = None,
        stdin: bytes | None = None,
        cwd: Path | None = None,
    ) -> Finished:
        """Run ``argv`` for at most ``timeout`` seconds; never raises for how the command ends."""
        ...


def run_command(
    argv: Sequence[str],
    *,
    timeout: float,
    env: Mapping[str, str] | None = None,
    stdin: bytes | None = None,
    cwd: Path | None = None,
) -> Finished:
    """Run ``argv`` in a process group of its own and wait at most ``timeout`` seconds.

    At the limit the whole group gets TERM, then KILL, so that a client that hangs leaves nothing behind.
    """
    return effects.perform("command", str(argv[0]), lambda: _run(tuple(argv), timeout, env, stdin, cwd))


def _run(
    argv: tuple[str, ...],
    timeout: float,
    env: Mapping[str, str] | None,
    stdin: bytes | None,
    cwd: Path | None,
) -> Finished:
    begun = time.monotonic()
    try:
        process = subprocess.Popen(
            argv,
            env=None if env is None else dict(env),
            cwd=cwd,
            stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        return Finished(argv, None, "", str(error), timed_out=False, seconds=time.monotonic() - begun)
    with process:
        timed_out = False
        try:
            out, err = process.communicate(stdin, timeout=timeout)
        except subprocess.TimeoutExpired:
            timed_out = True
            out, err = _end_group(process)
    status = None if timed_out else process.returncode
    return Finished(argv, status, _text(out), _text(err), timed_out, time.monotonic() - begun)


def _end_group(process: subprocess.Popen[bytes]) -> tuple[bytes, bytes]:
    for sig in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, sig)
        try:
            output = process.communicate(timeout=_KILL_GRACE_S)
        except subprocess.TimeoutExpired:
            continue
        # A child that ignored TERM may live on without our pipes.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        return output
    return b"", b""


def _text(data: bytes) -> str:
    return data.decode("utf-8", errors="replace")
