"""From how a command ended to what may be said of it (pure)."""

from __future__ import annotations

import errno
import re
import signal
from collections.abc import Callable
from dataclasses import dataclass

from outerloop_hpc.errors import Exit
from outerloop_hpc.measure.enclosure import Enclosure
from outerloop_hpc.measure.measurement import Outcome
from outerloop_hpc.measure.output import Reading, Unusable
from outerloop_hpc.supervision.child import Ended, signal_name

_NODE_ERRNOS = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.ENOMEM, errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.EIO}
)
_NODE_TEXT = re.compile(r"No space left on device|Disk quota exceeded|Cannot allocate memory|\[Errno (28|122|12)\]")
_LAST_LINES = 5
#: Reads what a command that ended well printed, or the end of that; told whether the beginning is missing.
Read = Callable[[bytes, bool], Reading | Unusable]
_SHELL_SIGNAL = 128


@dataclass(frozen=True, slots=True)
class Judged:
    """An outcome, with its reason or its reading."""

    outcome: Outcome
    reason: str = ""
    reading: Reading | None = None


def judge(read: Read, wall_s: float, enclosure: Enclosure, ended: Ended, oom_killed: int) -> Judged:
    """Say what came of an execution.

    Args:
        read: reads its output.
        wall_s: the limit it had.
        enclosure: where it ran; knows a container that did not start.
        ended: how it ended.
        oom_killed: how many processes of this job the kernel killed for memory meanwhile.
    """
    if ended.ended_by == "stop":
        return Judged(Outcome.INTERRUPTED, "it was asked to stop before the command had ended")
    if ended.ended_by == "limit":
        return Judged(Outcome.FAILED, f"the command did not end within {wall_s:g} s")
    if ended.problem is not None:
        return _not_started(enclosure, ended)
    if ended.status != 0 and oom_killed > 0:
        return Judged(Outcome.OUT_OF_MEMORY, f"the node killed {oom_killed} of its processes for want of memory")
    if ended.status == 0:
        return _read(read, ended)
    return _nonzero(enclosure, ended)


def _not_started(enclosure: Enclosure, ended: Ended) -> Judged:
    where = "without a container" if enclosure.name == "none" else f"in {enclosure.name}"
    reason = f"the command could not be started {where}: {ended.problem}"
    if ended.errno is None or ended.errno in _NODE_ERRNOS or enclosure.name != "none":
        return Judged(Outcome.INFRASTRUCTURE, reason)
    # Without a container the program that does not exist is the benchmark's own.
    return Judged(Outcome.FAILED, reason)


def _nonzero(enclosure: Enclosure, ended: Ended) -> Judged:
    last = " ".join(" ".join(ended.stderr.splitlines()[-_LAST_LINES:]).split())[-300:]
    said = f": {last}" if last else ""
    start = enclosure.start_failure(ended.status, ended.stderr)
    if start is not None:
        return Judged(Outcome.INFRASTRUCTURE, start)
    if ended.status == Exit.TRY_LATER:
        return Judged(Outcome.INFRASTRUCTURE, f"the command asked to be tried later (exit status 75){said}")
    if _NODE_TEXT.search(last):
        return Judged(Outcome.INFRASTRUCTURE, f"the node has no space or memory left{said}")
    if ended.status is not None and ended.status < 0:
        return Judged(Outcome.FAILED, f"the command was ended by {signal_name(ended.status)}{said}")
    return Judged(Outcome.FAILED, f"the command ended with exit status {ended.status}{_as_signal(ended.status)}{said}")


def _as_signal(status: int | None) -> str:
    # A shell and a container's init report a child killed by signal n as 128 + n.
    if status is None or not _SHELL_SIGNAL < status <= _SHELL_SIGNAL + signal.SIGSYS:
        return ""
    return f" (perhaps {signal_name(_SHELL_SIGNAL - status)})"


def _read(read: Read, ended: Ended) -> Judged:
    found = read(ended.stdout, ended.cut)
    if isinstance(found, Reading):
        return Judged(Outcome.MEASURED, reading=found)
    return Judged(Outcome.FAILED, found.reason)
