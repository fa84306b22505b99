"""A process that hangs as if in the kernel: no signal but KILL reaches it, not even the CONT that wakes others."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

_SEIZE, _INTERRUPT = 0x4206, 0x4207
#: Also wait for threads: those of a traced process are told to its tracer one by one.
_ALL_THREADS = 0x40000000


class Frozen:
    """All threads of a process, held by the tracing of this thread, which alone may ask about them and end it.

    A tracer must take note of each thread's death before anybody else hears of it: ask ``gone`` until it is true.

    Args:
        host_pid: its id on the host.
    """

    def __init__(self, host_pid: int) -> None:
        self._pid = host_pid
        self._held: set[int] = set()

    def __enter__(self) -> Self:
        # A thread that is not held yet may start another one.
        while new := self._threads() - self._held:
            for thread in new:
                self._hold(thread)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if not self.gone():
            with suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)
            while not self.gone():
                time.sleep(0.01)

    def gone(self) -> bool:
        """Whether it was killed."""
        for thread in sorted(self._held, reverse=True):
            with suppress(ChildProcessError):
                ended, status = os.waitpid(thread, os.WNOHANG | _ALL_THREADS)
                if not ended or os.WIFSTOPPED(status):
                    continue
            self._held.discard(thread)
        return not self._held

    def _threads(self) -> set[int]:
        return {int(folder.name) for folder in Path(f"/proc/{self._pid}/task").iterdir()}

    def _hold(self, thread: int) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        for request in (_SEIZE, _INTERRUPT):
            if libc.ptrace(ctypes.c_long(request), ctypes.c_int(thread), None, None):
                number = ctypes.get_errno()
                raise OSError(number, f"thread {thread} cannot be held: {os.strerror(number)}")
        os.waitpid(thread, _ALL_THREADS)
        self._held.add(thread)
