"""The embedded default: the compute port without Slurm, on submitit's local executor.

submitit starts one controller per submission; it runs the elements, a few at a time, and writes what a cluster's
accounting would know into ``local/<name>.jsonl``. Observing is reading those files and asking whether processes live.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import signal
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from outerloop_hpc import effects, fsio
from outerloop_hpc.errors import TryLater
from outerloop_hpc.slurm import localjobs
from outerloop_hpc.slurm.environment import submission_environment
from outerloop_hpc.slurm.port import (
    AccountingRow,
    Answer,
    Availability,
    Bound,
    JobRef,
    Observation,
    QueueRow,
    SubmissionAmbiguous,
    Work,
)
from outerloop_hpc.slurm.processes import alive


class LocalCompute:
    """The compute port on this machine."""

    name = "local"

    def __init__(self, root: Path, *, parallel: int = 0, environ: Mapping[str, str] | None = None) -> None:
        self.root = root
        self.parallel = parallel or os.cpu_count() or 1
        self.environ = submission_environment(os.environ if environ is None else environ)
        self.user = getpass.getuser()

    def submit(self, work: Work) -> Bound:
        """Start a controller for this submission; its name can be used once.

        Raises:
            SubmissionAmbiguous: the name was used before; look at what it became.
        """
        fsio.make_folder(self.root)
        fsio.make_folder(work.folder, private=True)
        path = self.root / f"{work.name}.jsonl"
        first = {
            "name": work.name,
            "user": self.user,
            "host": socket.gethostname(),
            "function": work.function,
            "parallel": min(work.parallel or self.parallel, self.parallel),
            **localjobs.resources_of(work.resources.cpus, work.resources.minutes, work.arguments),
        }
        if not fsio.publish(path, localjobs.event_line("submitted", time.time(), first).encode()):
            raise SubmissionAmbiguous(f"{path}: this name was submitted before; the next pass looks at what it became")
        job_id = effects.perform("command", "submitit.local", lambda: self._start(work, path))
        return Bound(job_id=job_id, cluster="", array=len(work.arguments) > 1)

    def _start(self, work: Work, path: Path) -> str:
        import submitit  # noqa: PLC0415 - heavy, and only needed to submit

        from outerloop_hpc.slurm.localcontroller import run_local  # noqa: PLC0415 - the function to pickle

        rounds = -(-len(work.arguments) // self.parallel)
        executor = submitit.LocalExecutor(folder=work.folder)
        executor.update_parameters(
            timeout_min=work.resources.minutes * rounds + 10, stderr_to_stdout=True, signal_delay_s=0
        )
        with _detached(self.environ):
            job = executor.submit(run_local, str(path))
        return str(job.job_id)

    def observe(self, jobs: Sequence[JobRef]) -> Observation:
        """Read the event file of each job. Bound and unbound ones are found by their name alike."""
        queue: list[QueueRow] = []
        accounting: list[AccountingRow] = []
        problems: list[str] = []
        for ref in jobs:
            try:
                text = fsio.read(self.root / f"{ref.name}.jsonl").decode("utf-8", errors="replace")
            except FileNotFoundError:
                continue
            except OSError as error:
                problems.append(f"{ref.name}: its event file cannot be read: {error.strerror}")
                continue
            job, trouble = localjobs.parse(text)
            problems.extend(f"{ref.name}: {problem}" for problem in trouble)
            if job is not None:
                job.job_id = ref.job_id or job.job_id
                if job.job_id:
                    rows = localjobs.rows(job, alive, time.time())
                    queue.extend(rows[0])
                    accounting.extend(rows[1])
        said = tuple(problems)
        return Observation(
            Answer(Availability.ANSWERED, tuple(queue), said), Answer(Availability.ANSWERED, tuple(accounting), said)
        )

    def cancel(self, jobs: Sequence[JobRef]) -> None:
        """Ask the controllers of these jobs to end their elements, or the elements that outlived theirs.

        Raises:
            TryLater: some could not be asked (an event file that cannot be read, processes of another user); the
                others were.
        """
        left: list[str] = []
        for ref in jobs:
            try:
                job, _ = localjobs.parse(fsio.read(self.root / f"{ref.name}.jsonl").decode("utf-8", errors="replace"))
                if job is not None:
                    _terminate(job)
            except FileNotFoundError:
                continue
            except OSError as error:
                left.append(f"{ref.name}: {error.strerror}")
        if left:
            raise TryLater(f"not cancelled yet ({'; '.join(left)[:200]}); cancelling again is safe")


def _terminate(job: localjobs.LocalJob) -> None:
    if job.controller is not None and alive(job.controller):
        with contextlib.suppress(ProcessLookupError):
            os.kill(job.controller.pid, signal.SIGTERM)
        return
    for index, (process, _) in job.started.items():
        if index not in job.ended and alive(process):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)


@contextlib.contextmanager
def _detached(environ: Mapping[str, str]) -> Iterator[None]:
    """Let the child outlive us: no shared terminal or pipes, no interrupt, our environment only.

    submitit's controller inherits all of these; a tick in a pipe would otherwise seem to run as long as its jobs.
    """
    saved: dict[str, Any] = {"env": dict(os.environ)}
    streams = [os.dup(number) for number in range(3)]
    null = os.open(os.devnull, os.O_RDWR)
    handlers = {}
    try:
        for ignored in (signal.SIGINT, signal.SIGHUP):
            with contextlib.suppress(ValueError):  # outside the main thread nothing can be set, nor need be
                handlers[ignored] = signal.signal(ignored, signal.SIG_IGN)
        for number in range(3):
            os.dup2(null, number)
        os.environ.clear()
        os.environ.update(environ)
        yield
    except OSError as error:
        raise TryLater(f"no local job could be started: {error}") from error
    finally:
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        os.close(null)
        os.environ.clear()
        os.environ.update(saved["env"])
        for ignored, handler in handlers.items():
            signal.signal(ignored, handler)
