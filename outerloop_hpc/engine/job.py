"""Inside the allocation: carry out one try and leave its record.

``run_element`` is the one function that is ever pickled, its argument one path. It runs outside the container.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from datetime import datetime
from pathlib import Path
from types import FrameType
from typing import Any

from outerloop_hpc import fsio
from outerloop_hpc.clock import Clock, SystemClock
from outerloop_hpc.documents import decode, load
from outerloop_hpc.engine import records, scratch
from outerloop_hpc.engine.body import Context, Result, Stop, carried_out, resolve
from outerloop_hpc.engine.layout import Layout, element_file
from outerloop_hpc.engine.spec import RunSpec, file_digest
from outerloop_hpc.errors import OuterloopError

_log = logging.getLogger(__name__)

_HEARTBEAT_OVER_MINUTES = 10
_HEARTBEAT_EVERY_S = 60.0
_DEADLINE_MARGIN_S = 120.0
_DEADLINE_SHARE = 0.2
#: A warning is sent up to a minute before the time that was asked for, and our clock starts after Slurm's.
_WARNING_EARLY_S = 90.0
_WARNING_SLACK_S = 5.0
#: A record may be worth days of computing: how long a job stays for a disk to have room again, within its walltime.
_RECORD_PATIENCE_S = 600.0
#: A note of an interruption adds little to Slurm's own word.
_NOTE_PATIENCE_S = 15.0
_LONGEST_PAUSE_S = 30.0
#: Left of the walltime when a job gives its record up, so that it ends by itself and says why.
_LAST_S = 10.0


def run_element(path: str) -> None:
    """Carry out the element ``<submission folder>/eNNNN`` in this process (submitit calls this)."""
    Execution(Path(path), environ=dict(os.environ), clock=SystemClock()).run()


class Execution:
    """One execution of one try."""

    def __init__(self, path: Path, *, environ: Mapping[str, str], clock: Clock) -> None:
        self.folder, self.index = path.parent, int(path.name.removeprefix("e"))
        self.environ, self.clock = environ, clock
        self.nonce = fsio.nonce()
        self.stop = Stop()
        self.started_at = clock.now()
        self.holder = records.Holder(
            host=environ.get("SLURMD_NODENAME") or socket.gethostname(),
            pid=os.getpid(),
            job_id=_job_id(environ),
            restart=int(environ.get("SLURM_RESTART_COUNT") or 0),
        )

    def run(self) -> None:
        """Claim, carry out, record; leave quietly when somebody else has this try."""
        manifest: records.Manifest = load(records.Manifest, self.folder / "manifest.json")
        if self._file(records.RECORD).exists():
            _log.warning("%s already has a record; this execution is superseded", self._file(records.RECORD))
            return
        if not self._claim():
            return
        deadline = _Deadline(self, manifest)
        with _Signals(self.stop, deadline), _Heart(self, manifest), deadline as deadline_s:
            result = self._carry_out(manifest, deadline_s)
            self._conclude(manifest, result, deadline)

    def _file(self, what: str) -> Path:
        return self.folder / element_file(self.index, what)

    def _claim(self) -> bool:
        """Publish the claim; a restart of the same job keeps its own."""
        path = self._file(records.CLAIM)
        ours = records.Claim(nonce=self.nonce, at=self.started_at, holder=self.holder)
        if fsio.publish(path, ours.encoded()):
            return True
        held: records.Claim = load(records.Claim, path)
        if held.abandoned:
            _log.error("%s was given up by a reconciler before this job started; leaving", path)
            return False
        if held.holder.job_id and held.holder.job_id == self.holder.job_id:
            _log.warning("%s is of an earlier execution of this same job; going on as the same try", path)
            return True
        _log.error("%s belongs to job %s on %s; superseded, leaving", path, held.holder.job_id, held.holder.host)
        return False

    def _carry_out(self, manifest: records.Manifest, deadline_s: float) -> Result:
        layout = Layout(Path(manifest.state_root))
        try:
            path = layout.run(manifest.run).spec
            data = fsio.read(path)
            spec: RunSpec = decode(RunSpec, data, path)
        except (OuterloopError, OSError) as error:
            # It was readable when this was submitted: what this node sees says nothing about the run.
            why = f"the run's specification cannot be read on this node: {error}"
            return Result("infrastructure", why, node_unfit=True)
        if file_digest(data) != manifest.spec_digest:
            return Result("refused", f"the run's specification is not the one that was submitted ({manifest.run})")
        element, log = manifest.elements[self.index], self._file(records.LOG)
        root = scratch.scratch_root(spec.scratch, self.environ)
        scratch.sweep(root, self.started_at)
        with ExitStack() as held:
            try:
                own = held.enter_context(scratch.made(root, self.nonce, self.started_at))
            except OSError as error:
                return Result("infrastructure", f"no scratch space: {error}", node_unfit=True)
            return self._in(Context(spec, element, layout, own, log, self.stop, deadline_s, self.environ))

    def _in(self, context: Context) -> Result:
        """Carry out the body; whatever it raises becomes a result."""
        step = context.element.step
        try:
            return carried_out(resolve(step.body), context)
        except OuterloopError as error:
            return Result("infrastructure", str(error))
        except Exception as error:  # noqa: BLE001 - whatever a body raises must end in a record
            _log.exception("the body of %s failed", step.key)
            tail = "".join(traceback.format_exception_only(error)).strip()
            return Result("infrastructure", f"the job's own program failed: {tail[-500:]}")

    def _conclude(self, manifest: records.Manifest, result: Result, deadline: _Deadline) -> None:
        """Write the record last. A signal leaves ``interrupted``: Slurm's word says what it meant."""
        stopped = self.stop() and result.outcome != "completed"  # what was asked too late changes no result
        if stopped and self.stop.reason.startswith("SIG"):
            note = records.Interrupted(
                nonce=self.nonce,
                at=self.clock.now(),
                signal=self.stop.reason,
                holder=self.holder,
                payload=dict(result.payload),
            )
            self._insist(self._file(records.INTERRUPTED), note.encoded(), _NOTE_PATIENCE_S)
            sys.exit(1)
        if stopped:
            result = Result("timed_out", self.stop.reason, result.payload)
        element = manifest.elements[self.index]
        record = records.Record(
            run=manifest.run,
            submission=manifest.submission,
            index=self.index,
            step=element.step.key,
            try_number=element.try_number,
            nonce=self.nonce,
            outcome=result.outcome,
            reason=result.reason,
            started_at=self.started_at,
            ended_at=self.clock.now(),
            holder=self.holder,
            node_unfit=result.node_unfit,
            part=result.part,
            image_sha256=manifest.image.sha256,
            payload=dict(result.payload),
        )
        patience_s = min(_RECORD_PATIENCE_S, max(deadline.remaining() - _LAST_S, _NOTE_PATIENCE_S))
        if not self._insist(self._file(records.RECORD), record.encoded(), patience_s):
            _log.error("%s was taken by another execution; this result is dropped", self._file(records.RECORD))

    def _insist(self, path: Path, data: bytes, patience_s: float) -> bool:
        """Publish in spite of a filesystem that is full or away; after ``patience_s`` seconds its error is raised."""
        waited, pause = 0.0, 1.0
        while True:
            try:
                return fsio.publish(path, data)
            except (OuterloopError, OSError) as error:
                if waited >= patience_s:
                    raise
                _log.warning("%s; trying again for another %.0f s", error, patience_s - waited)
                pause = min(pause, patience_s - waited)
                self.clock.sleep(pause)
                waited, pause = waited + pause, min(2 * pause, _LONGEST_PAUSE_S)


def _job_id(environ: Mapping[str, str]) -> str:
    array, task = environ.get("SLURM_ARRAY_JOB_ID"), environ.get("SLURM_ARRAY_TASK_ID")
    if array and task:
        return f"{array}_{task}"
    return environ.get("SLURM_JOB_ID") or environ.get("OUTERLOOP_LOCAL_JOB") or f"pid-{os.getpid()}"


class _Signals:
    """TERM and USR2 ask for the end, once; what was installed before comes back afterwards.

    Whoever started the job may ignore the end of children; a program that failed would then seem to have ended well.
    """

    def __init__(self, stop: Stop, deadline: _Deadline) -> None:
        self.stop, self.deadline = stop, deadline
        self.before: dict[int, Any] = {}

    def __enter__(self) -> None:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGUSR2):
                self.before[number] = signal.signal(number, self._asked)
            self.before[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, signal.SIG_DFL)

    def __exit__(self, *_: object) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)

    def _asked(self, number: int, _frame: FrameType | None) -> None:
        # USR2 is what we asked Slurm for ahead of the walltime; TERM may be anybody's, and so is a USR2 long before.
        if number != signal.SIGUSR2 or not self.deadline.warned_about():
            self.stop.ask(signal.Signals(number).name)
        elif not self.deadline.early():
            self.stop.ask("Slurm warned that the walltime is near")


class _Deadline:
    """Asks for the end ahead of the walltime: some sites deliver no signal at all."""

    def __init__(self, execution: Execution, manifest: records.Manifest) -> None:
        self.stop = execution.stop
        ask = manifest.elements[execution.index].step.resources
        limit = 60.0 * ask.minutes
        self.left = _seconds_left(execution.environ, limit, time.time())
        self.at = time.monotonic() + self.left
        self.lead = min(ask.signal_lead_s, limit / 2)
        margin = min(_DEADLINE_MARGIN_S, _DEADLINE_SHARE * limit)
        self.timer = threading.Timer(max(self.left - margin, 1.0), self._reached)
        self.timer.daemon = True

    def __enter__(self) -> float:
        self.timer.start()
        return self.left

    def __exit__(self, *_: object) -> None:
        self.timer.cancel()

    def remaining(self) -> float:
        """Seconds of walltime left; negative beyond it."""
        return self.at - time.monotonic()

    def warned_about(self) -> bool:
        """Whether a warning that comes now is the one that was asked for: Slurm sends it up to a minute early."""
        return self.remaining() <= self.lead + _WARNING_EARLY_S

    def early(self) -> bool:
        """Whether that warning is early; this deadline then comes in time, and a short job is not cut to nothing."""
        return self.remaining() > self.lead + _WARNING_SLACK_S

    def _reached(self) -> None:
        self.stop.ask("the job's own deadline ahead of its walltime was reached")


def _seconds_left(environ: Mapping[str, str], limit: float, now: float) -> float:
    """Seconds to the walltime, by Slurm's word where it is sane; else the whole limit from now."""
    try:
        end = float(environ["SLURM_JOB_END_TIME"])
    except (KeyError, ValueError):
        return limit
    return end - now if 0 < end - now <= limit + 60 else limit


class _Heart:
    """A heartbeat file for long steps: a number that changes, compared by whoever looks, never by its time."""

    def __init__(self, execution: Execution, manifest: records.Manifest) -> None:
        self.execution = execution
        self.wanted = manifest.elements[execution.index].step.resources.minutes > _HEARTBEAT_OVER_MINUTES
        self.quiet = threading.Event()
        self.thread = threading.Thread(target=self._beat, daemon=True)

    def __enter__(self) -> None:
        if self.wanted:
            self.thread.start()

    def __exit__(self, *_: object) -> None:
        self.quiet.set()

    def _beat(self) -> None:
        path, beat = self.execution._file(records.HEARTBEAT), 0  # noqa: SLF001 - one noun in two classes
        while not self.quiet.is_set():
            beat += 1
            at: datetime = self.execution.clock.now()
            with suppress(OuterloopError, OSError):
                fsio.replace(path, records.Heartbeat(nonce=self.execution.nonce, at=at, beat=beat).encoded())
            self.quiet.wait(_HEARTBEAT_EVERY_S)
