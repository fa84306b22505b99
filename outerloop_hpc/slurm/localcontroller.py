"""The process that runs a local submission's elements and accounts for them (submitit starts it)."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from outerloop_hpc import fsio
from outerloop_hpc.slurm import localjobs
from outerloop_hpc.slurm.processes import process_id, this_process

_POLL_S = 0.05
_KILL_AFTER_S = 10.0


def run_local(path: str) -> None:
    """Run every element of the submission described by the event file ``path``."""
    with contextlib.suppress(PermissionError):
        os.setsid()
    _Controller(Path(path)).run()


@dataclass(slots=True)
class _Running:
    process: subprocess.Popen[bytes]
    begun: float
    asked_to_end: str = ""
    asked_at: float = 0.0


class _Controller:
    """Keeps at most ``parallel`` elements running; one TERM cancels the lot."""

    def __init__(self, path: Path) -> None:
        self.path = path
        job, _ = localjobs.parse(fsio.read(path).decode())
        if job is None or job.controller is not None:
            raise SystemExit(f"{path}: nothing to run here, or another controller has it")
        self.job = job
        self.waiting = list(range(job.count))
        self.running: dict[int, _Running] = {}
        self.cancelled = False
        self.uid = os.getuid()

    def run(self) -> None:
        signal.signal(signal.SIGTERM, self._cancel)
        job_id = os.environ.get("SUBMITIT_LOCAL_JOB_ID", str(os.getpid()))
        self._say("controller", job_id=job_id, **localjobs.identity_of(this_process()))
        while self.waiting or self.running:
            if self.cancelled:
                self._cancel_waiting()
            while self.waiting and len(self.running) < int(self.job.submitted["parallel"]):
                self._start(self.waiting.pop(0), job_id)
            self._reap()
            self._enforce()
            time.sleep(_POLL_S)

    def _cancel(self, _number: int, _frame: FrameType | None) -> None:
        self.cancelled = True

    def _say(self, event: str, **fields: Any) -> None:
        with open(fsio.content(self.path), "ab", buffering=0) as file:  # noqa: PTH123 - unbuffered append, one write a line
            file.write(localjobs.event_line(event, time.time(), fields).encode())

    def _start(self, index: int, job_id: str) -> None:
        said = self.job.submitted
        name = f"{job_id}_{index}" if self.job.array else job_id
        environ = {k: v for k, v in os.environ.items() if not k.startswith("SUBMITIT_")}
        environ.update(OUTERLOOP_LOCAL_JOB=name)
        argument = str(said["arguments"][index])
        argv = [sys.executable, "-m", "outerloop_hpc.slurm.element", str(said["function"]), argument]
        process = subprocess.Popen(argv, env=environ, stdin=subprocess.DEVNULL, start_new_session=True)
        self.running[index] = _Running(process, time.monotonic())
        self._say("started", index=index, **localjobs.identity_of(process_id(process.pid)))

    def _reap(self) -> None:
        for index, one in list(self.running.items()):
            pid, status, used = os.wait4(one.process.pid, os.WNOHANG)
            if pid == 0:
                continue
            del self.running[index]
            one.process.returncode = os.waitstatus_to_exitcode(status)
            code, number = (0, os.WTERMSIG(status)) if os.WIFSIGNALED(status) else (os.WEXITSTATUS(status), 0)
            state = one.asked_to_end or ("COMPLETED" if status == 0 else "FAILED")
            extra = {"uid": self.uid} if state == "CANCELLED" else {}
            self._say(
                "ended",
                index=index,
                state=state,
                status=code,
                signal=number,
                seconds=time.monotonic() - one.begun,
                cpu_s=used.ru_utime + used.ru_stime,
                rss=used.ru_maxrss * 1024,
                **extra,
            )

    def _enforce(self) -> None:
        """Walltime and cancellation: TERM, then KILL for the element's whole session."""
        limit = 60.0 * float(self.job.submitted["minutes"])
        now = time.monotonic()
        for one in self.running.values():
            if not one.asked_to_end and (self.cancelled or now - one.begun > limit):
                one.asked_to_end = "CANCELLED" if self.cancelled else "TIMEOUT"
                one.asked_at = now
                self._signal(one, signal.SIGTERM)
            elif one.asked_to_end and now - one.asked_at > _KILL_AFTER_S:
                self._signal(one, signal.SIGKILL)

    def _signal(self, one: _Running, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(one.process.pid, number)

    def _cancel_waiting(self) -> None:
        for index in self.waiting:
            self._say("ended", index=index, state="CANCELLED", status=0, signal=15, uid=self.uid)
        self.waiting.clear()
