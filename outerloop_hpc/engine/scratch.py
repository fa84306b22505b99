"""A try's scratch folder on its node, and those that jobs killed with SIGKILL left behind there.

The folder holds a file that says whose it is, locked for as long as the job lives. A later job of the same user clears
such a folder away only when everything says that its holder is dead; where anything is in doubt it stays.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import re
import stat
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path

from pydantic import AwareDatetime, TypeAdapter, ValidationError

from outerloop_hpc.documents import Value
from outerloop_hpc.engine.clearing import clear
from outerloop_hpc.slurm.processes import alive, this_process
from outerloop_hpc.slurm.processid import ProcessId

_log = logging.getLogger(__name__)

HOLDER = ".outerloop-holder"
#: What ``made`` makes: 16 hex digits of the execution's nonce and what mkdtemp adds.
_NAME = re.compile(r"ol-[0-9a-f]{16}-[a-z0-9_]{8}")
_OLD = timedelta(days=1)
#: Of one sweep: names looked at, folders removed, seconds. A job is there to do something else.
_NAMES, _MOST, _SECONDS = 20_000, 4, 10.0
_LARGEST = 4096
_OPEN = os.O_NOFOLLOW | os.O_CLOEXEC


class _Holder(Value):
    """Who has a scratch folder. ``locked``: this filesystem took the lock, so that it means something there."""

    host: str
    boot: str
    pid: int
    ticks: int
    at: AwareDatetime
    locked: bool

    def gone(self, now: datetime) -> bool:
        """Whether it held this folder on this very host, long ago, and its process is no more."""
        process = ProcessId(self.pid, self.ticks, self.boot, self.host)
        # Both times are this host's own, and a pid of before a reboot is nobody's.
        return self.locked and now - self.at > _OLD and alive(process) is False


_HOLDER_READER = TypeAdapter(_Holder)


def scratch_root(wanted: str, environ: Mapping[str, str]) -> str:
    """Where scratch goes on this node; a variable that the node does not set falls back to TMPDIR."""
    if wanted.startswith("$"):
        variable, _, rest = wanted[1:].partition("/")
        base = environ.get(variable, "")
        wanted = f"{base}/{rest}" if base else ""
    return wanted or environ.get("SLURM_TMPDIR") or environ.get("TMPDIR") or tempfile.gettempdir()


@contextmanager
def made(root: str, nonce: str, now: datetime) -> Iterator[Path]:
    """Make a scratch folder that is known to be in use, and remove it in the end.

    Raises:
        OSError: it cannot be made here.
    """
    folder = Path(tempfile.mkdtemp(prefix=f"ol-{nonce}-", dir=root))
    held = None
    try:
        held = _hold(folder, now)
        yield folder
    finally:
        # The holder's file goes last: a folder whose removal was cut short is still known to be a dead one's.
        whole = clear(folder, _never, keep=HOLDER).whole
        if held is not None:
            os.close(held)
        if whole:
            with suppress(OSError):
                (folder / HOLDER).unlink(missing_ok=True)
                folder.rmdir()


def sweep(root: str, now: datetime) -> list[str]:
    """Clear away a few scratch folders of this user's dead jobs on this host; returns their names.

    Nothing is raised: a job does not fail over what another one left.
    """
    until = time.monotonic() + _SECONDS
    done: list[str] = []
    with suppress(OSError), os.scandir(root) as entries:
        for entry in islice(entries, _NAMES):
            if len(done) >= _MOST or time.monotonic() > until:
                break
            if _NAME.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False):
                with suppress(OSError):
                    if _swept(Path(root, entry.name), now, until):
                        done.append(entry.name)
    if done:
        _log.info("%s: removed scratch of dead jobs: %s", root, ", ".join(done))
    return done


def _hold(folder: Path, now: datetime) -> int:
    """Write the holder's file and lock it; the lock lives as long as this process keeps the descriptor."""
    held = os.open(folder / HOLDER, os.O_RDWR | os.O_CREAT | os.O_EXCL | _OPEN, 0o600)
    try:
        os.write(held, _ours(now, locked=_lock(held)).model_dump_json().encode())
    except BaseException:
        os.close(held)
        raise
    return held


def _ours(now: datetime, *, locked: bool) -> _Holder:
    try:
        me = this_process()
    except OSError:  # no /proc: nobody can tell later whether this process lives, so nobody may conclude anything
        return _Holder(host="", boot="", pid=0, ticks=0, at=now, locked=False)
    return _Holder(host=me.host, boot=me.boot, pid=me.pid, ticks=me.ticks, at=now, locked=locked)


def _swept(folder: Path, now: datetime, until: float) -> bool:
    """Remove one folder whose holder is dead; False when it stays."""
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        return False
    held = os.open(folder / HOLDER, os.O_RDWR | _OPEN)
    try:
        holder = _read(held)
        # Locked until the end, so that two jobs that start together do not both remove it.
        if holder is None or not holder.gone(now) or not _lock(held):
            return False
        if not clear(folder, lambda: time.monotonic() > until, keep=HOLDER).whole:
            return False
        (folder / HOLDER).unlink()
    finally:
        os.close(held)
    # Only now: on a file server the name of a file that is still open is in the way.
    folder.rmdir()
    return True


def _read(held: int) -> _Holder | None:
    found = os.fstat(held)
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_size > _LARGEST:
        return None
    try:
        return _HOLDER_READER.validate_python(json.loads(os.pread(held, _LARGEST, 0)))
    except (ValueError, ValidationError):
        return None


def _lock(held: int) -> bool:
    """Take the lock if nobody has it; False also where this filesystem has none, and then nothing is ever concluded."""
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _never() -> bool:
    return False
