"""Submit through submitit, and the whole compute port over Slurm.

submitit writes the batch script and runs the function inside the job. What it leaves open is closed here: a time
limit for sbatch, ``--parsable``, arrays by the same code as single jobs, pickles complete before sbatch is called.
Its ``done()``, ``state`` and ``result()`` are never asked.
"""

from __future__ import annotations

import errno
import importlib
import os
import pickle
import pwd
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from outerloop_hpc import effects, fsio
from outerloop_hpc.errors import TryLater
from outerloop_hpc.process import Finished, Runner
from outerloop_hpc.slurm.answers import (
    Taken,
    cancelled_or_gone,
    parse_max_array_size,
    parse_submission,
    refused,
)
from outerloop_hpc.slurm.environment import submission_environment
from outerloop_hpc.slurm.jobid import MAX_TASKS
from outerloop_hpc.slurm.port import (
    Bound,
    JobRef,
    Observation,
    SubmissionAmbiguous,
    SubmissionRefused,
    SubmissionWithheld,
    Work,
)
from outerloop_hpc.slurm.query import IDS_PER_CALL, SlurmQuery, on_cluster
from outerloop_hpc.slurm.sbatch import SiteOptions, parameters, placement

if TYPE_CHECKING:
    from submitit import SlurmExecutor

DEFAULT_MAX_ARRAY_SIZE = 1001
_SCRIPT = "submission.sh"
#: A signal before the function has armed its own handler must not make submitit requeue the job: a repeat is ours.
_NEVER_REQUEUE = -1
#: Readable by every Python from 3.8 on: the job's interpreter need not be the submitter's.
_PICKLE_PROTOCOL = 5
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EROFS}


class SlurmCompute:
    """Slurm behind the compute port.

    Args:
        query: the reading side; it also says on which cluster.
        python: interpreter of the jobs, on the shared filesystem, with this package installed.
        site: options of every submission.
        environ: the caller's environment; scrubbed before sbatch, and so the job, gets it.
        run: how commands are run.
        submit_timeout_s: seconds for one sbatch; its own retries when the queue is full fit into the default.
        timeout_s: seconds for one scancel.
    """

    def __init__(
        self,
        query: SlurmQuery,
        *,
        python: str,
        site: SiteOptions,
        environ: Mapping[str, str],
        run: Runner,
        submit_timeout_s: float = 180,
        timeout_s: float = 60,
    ) -> None:
        self._query = query
        self._python = python
        self._site = site
        self._environ = submission_environment(environ)
        self._run = run
        self._submit_timeout_s = submit_timeout_s
        self._timeout_s = timeout_s
        self._max_array_size: int | None = None

    @property
    def name(self) -> str:
        """``slurm``."""
        return "slurm"

    @property
    def user(self) -> str:
        """The name that belongs to the effective uid (cron's ``LOGNAME`` may say anything)."""
        return pwd.getpwuid(os.geteuid()).pw_name

    def max_array_size(self) -> int:
        """Return how many elements an array may have, at least 1; asked once, 1001 (Slurm's default) if not told.

        A controller that could not be spoken to is asked again.
        """
        if self._max_array_size is None:
            finished = self._query.ask(["scontrol", *on_cluster(self._site.cluster), "show", "config"])
            if not finished.ok and not refused(finished):
                return DEFAULT_MAX_ARRAY_SIZE
            told = parse_max_array_size(finished.stdout) if finished.ok else None
            # 0 is a site's way to switch arrays off: every element is then a job of its own.
            self._max_array_size = DEFAULT_MAX_ARRAY_SIZE if told is None else max(told, 1)
        return self._max_array_size

    def submit(self, work: Work) -> Bound:
        """Submit one job, or one array from 0, and return what the scheduler bound it to.

        Raises:
            SubmissionRefused: nothing was enqueued.
            SubmissionAmbiguous: it may have been; look the name up.
            SubmissionWithheld: sbatch was not started.
            TryLater: the folder cannot be written now; nothing was enqueued.
        """
        asked = parameters(work, self._site)
        self._check_size(work)
        function = resolve(work)
        fsio.make_folder(work.folder, private=True)
        _write_pickles(work, function, asked["time"])
        executor = _executor(work, self._python, asked)
        script = work.folder / _SCRIPT
        fsio.replace(script, _script_text(executor, work).encode(), mode=0o600)
        return self._sbatch(work, script)

    def observe(self, jobs: Sequence[JobRef]) -> Observation:
        """Look at all these jobs at once."""
        return self._query.observe(jobs)

    def cancel(self, jobs: Sequence[JobRef]) -> None:
        """Ask for the end of these jobs; unbound ones by name. Jobs that ended already are fine.

        Raises:
            TryLater: scancel failed or was late, or was not started; asking again is safe. Those of other clusters
                were asked for.
        """
        failed: list[str] = []
        for argv in self._cancellations(jobs):
            finished = self._run(argv, timeout=self._timeout_s, env=self._environ)
            if not cancelled_or_gone(finished):
                failed.append(finished.complaint())
        if failed:
            names = ", ".join(sorted({ref.name for ref in jobs}))[:200]
            raise TryLater(f"not cancelled yet ({names}): {'; '.join(dict.fromkeys(failed))}; cancelling again is safe")

    def _cancellations(self, jobs: Sequence[JobRef]) -> list[list[str]]:
        argvs: list[list[str]] = []
        for cluster in sorted({ref.cluster or self._site.cluster for ref in jobs}):
            refs = [ref for ref in jobs if (ref.cluster or self._site.cluster) == cluster]
            ids = sorted({ref.job_id for ref in refs if ref.job_id is not None})
            base = ["scancel", *on_cluster(cluster)]
            argvs.extend([*base, *ids[start : start + IDS_PER_CALL]] for start in range(0, len(ids), IDS_PER_CALL))
            # scancel takes one name a call; several filters would have to hold together.
            unbound = sorted({(ref.name, ref.user) for ref in refs if ref.job_id is None})
            argvs.extend([*base, f"--user={user}", f"--name={name}"] for name, user in unbound)
        return argvs

    def _check_size(self, work: Work) -> None:
        elements = len(work.arguments)
        if elements > 1 and elements > min(self.max_array_size(), MAX_TASKS):
            raise SubmissionRefused(
                f"{work.name}: not submitted: {elements} elements, but this cluster takes {self.max_array_size()} "
                "in one array (MaxArraySize); split the work"
            )

    def _sbatch(self, work: Work, script: Path) -> Bound:
        argv = ["sbatch", "--parsable", *on_cluster(self._site.cluster), *placement(work), str(script)]
        finished = self._run(argv, timeout=self._submit_timeout_s, env=self._environ)
        taken = parse_submission(finished.stdout) if finished.ok else None
        if taken is None:
            raise _failure(work, finished)
        return _bound(taken, work, self._site.cluster)


def resolve(work: Work) -> Callable[[str], object]:
    """Import the function that ``work`` names.

    Raises:
        SubmissionRefused: it does not exist, or a job could not import it under that name.
    """
    module, _, name = work.function.partition(":")
    try:
        function = getattr(importlib.import_module(module), name)
        # pickle, not cloudpickle: it refuses what cannot be imported by name, so no code ever travels in the file.
        pickle.dumps(function, _PICKLE_PROTOCOL)
    except (ImportError, AttributeError, ValueError, TypeError, pickle.PicklingError) as error:
        raise SubmissionRefused(f"{work.name}: not submitted: {work.function!r} cannot be imported: {error}") from error
    if module == "__main__" or not callable(function):
        raise SubmissionRefused(f"{work.name}: not submitted: {work.function!r} is no function that a job can import")
    return function  # type: ignore[no-any-return] # a callable by name is as much as can be known


def _write_pickles(work: Work, function: Callable[[str], object], minutes: int) -> None:
    """Write one pickle for each element, before sbatch: a job that starts at once finds it on every node."""
    from submitit.core.utils import DelayedSubmission  # noqa: PLC0415 - heavy, and only submissions need it

    def write() -> None:
        for index, argument in enumerate(work.arguments):
            element = DelayedSubmission(function, argument)
            element.set_timeout(minutes, _NEVER_REQUEUE)
            _write_private(work.folder / pickle_name(index), pickle.dumps(element, _PICKLE_PROTOCOL))

    try:
        effects.perform("write", str(work.folder), write)
    except OSError as error:
        if error.errno in _FULL:
            raise TryLater(
                f"{work.name}: {work.folder} cannot be written: {error.strerror}; nothing was submitted"
            ) from error
        raise


def pickle_name(index: int) -> str:
    """Return the name of the pickle of one array element (of a plain job: element 0)."""
    return f"element-{index}.pkl"


def _write_private(path: Path, data: bytes) -> None:
    with suppress(FileNotFoundError):
        path.unlink()  # a former submission's hard link must keep its content
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)


def _executor(work: Work, python: str, asked: Mapping[str, Any]) -> SlurmExecutor:
    from submitit import SlurmExecutor  # noqa: PLC0415 - heavy, and only submissions need it

    class Executor(SlurmExecutor):
        """submitit's, where srun need not be on this host: it is not used."""

        @classmethod
        def affinity(cls) -> int:
            return 2

    # `exec`: with a plain call the batch shell, not Python, would get `B:USR2`, and die of it.
    executor = Executor(work.folder, max_num_timeout=0, python=f"exec {shlex.quote(python)}")
    executor.update_parameters(**asked)
    return executor


def _script_text(executor: SlurmExecutor, work: Work) -> str:
    array = len(work.arguments) > 1
    if array:
        executor.parameters["map_count"] = len(work.arguments)
    # submitit renames its pickle to the job id once sbatch has answered; a submitter that dies in between leaves a
    # job without one. Here the job links its own. Where there is none to link, the run was closed and its folder
    # cleared away: submitit would hold the allocation for a minute, waiting for a file that nobody writes.
    own = '"$SLURM_ARRAY_JOB_ID"_"$SLURM_ARRAY_TASK_ID"' if array else '"$SLURM_JOB_ID"'
    source = 'element-"$SLURM_ARRAY_TASK_ID".pkl' if array else pickle_name(0)
    named = f"{own}_submitted.pkl"
    link = f"[ -e {named} ] || ln {source} {named} || cp {source} {named} || exit 72"
    executor.parameters["setup"] = [f"cd {shlex.quote(str(executor.folder))} || exit 72", link]
    text: str = executor._make_submission_file_text(executor._submitit_command_str, work.name)  # noqa: SLF001 - the hook that submitit's plug-ins fill
    return text


def _failure(work: Work, finished: Finished) -> SubmissionRefused | SubmissionAmbiguous | SubmissionWithheld:
    if finished.withheld:
        return SubmissionWithheld(f"{work.name}: {finished.complaint()}")
    if refused(finished):
        return SubmissionRefused(f"{work.name}: refused by Slurm: {finished.complaint()}")
    if finished.ok:
        said = " ".join(finished.stdout.split())[-200:]
        return SubmissionAmbiguous(f"{work.name}: sbatch succeeded but its answer is not understood: {said!r}")
    return SubmissionAmbiguous(
        f"{work.name}: may or may not have been submitted: {finished.complaint()}; it is looked up by name"
    )


def _bound(taken: Taken, work: Work, cluster: str) -> Bound:
    return Bound(taken.job_id, taken.cluster or cluster, array=len(work.arguments) > 1)
