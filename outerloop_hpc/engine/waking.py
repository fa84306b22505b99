"""Tiny jobs that move a run on without any cron: one after each submission, and further ones while it only waits."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from outerloop_hpc import fsio
from outerloop_hpc.engine import records
from outerloop_hpc.engine.watch import LiveRun
from outerloop_hpc.slurm.port import Resources, Work

TOLD = "wake.json"
#: Beside it where the scheduler did not say that it took the job.
DOUBTFUL = "doubtful"
_MINUTES = 10
_NAME = 58
#: Pauses between further ones, in seconds, and how many there are: about a day. What is slower is the tick's.
_FIRST_S, _LONGEST_S, _MOST = 300, 3600, 28


def first(told: records.Wake, function: str, folder: Path, name: str, job_id: str) -> Work:
    """Return the job that comes once a submission, whose ``folder`` this is, has ended."""
    return _work(told, function, folder / "wake", f"{name[:62]}.w", after=job_id)


def further(told: records.Wake, function: str, path: Path) -> Work | None:
    """Return the job that comes after the one that was given ``path``; None when there were enough.

    Raises:
        TryLater: the state folder cannot be written.
    """
    here = path.parent
    number = int(here.name) + 1 if here.name.isdecimal() else 1
    if number > _MOST:
        return None
    wake = here.parent if here.name.isdecimal() else here
    pause = min(_FIRST_S * 2 ** (number - 1), _LONGEST_S)
    return _work(told, function, wake / str(number), f"{wake.parent.name[:_NAME]}.w{number}", begin_in_s=pause)


def newest(run: LiveRun, names: Sequence[str]) -> Path | None:
    """Return what the newest wake job of the last of these submissions was given; None where there is none."""
    for name in reversed(names):
        folder = run.journal.folder.submission(name) / "wake"
        further = [folder / str(number) / TOLD for number in range(_MOST, 0, -1)]
        found = next((path for path in (*further, folder / TOLD) if path.exists()), None)
        if found is not None:
            return found
    return None


def another_comes(run: LiveRun, submission: str) -> bool:
    """Whether another submission is under way, so that its own wake job is still to come.

    One that the queue lacks had it already, and one whose wake job was not taken has none.
    """
    names = {
        one.name
        for _, current, one in run.state.open_tries()
        if one.status == "bound" and one.name != submission and current.absent_since is None
    }
    folders = [run.journal.folder.submission(name) / "wake" for name in names]
    return any((folder / TOLD).exists() and not (folder / DOUBTFUL).exists() for folder in folders)


def _work(
    told: records.Wake, function: str, folder: Path, name: str, *, after: str | None = None, begin_in_s: int = 0
) -> Work:
    fsio.make_folder(folder, private=True)
    fsio.replace(folder / TOLD, told.encoded(), mode=0o600)
    return Work(
        name=name,
        function=function,
        arguments=(str(folder / TOLD),),
        folder=folder,
        resources=Resources(minutes=_MINUTES),
        after=after,
        begin_in_s=begin_in_s,
    )
