"""What a wake job runs: move one run on after its jobs, without any cron."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import NoReturn

from outerloop_hpc.cli.follow import follow
from outerloop_hpc.cli.logs import set_up
from outerloop_hpc.cli.session import Session
from outerloop_hpc.documents import load
from outerloop_hpc.engine import waking, watch
from outerloop_hpc.engine.records import Wake
from outerloop_hpc.errors import Exit, OuterloopError

_log = logging.getLogger(__name__)
#: Long enough for accounting to be complete. What is slower has a further wake job, or the tick.
_WAIT_S = 300.0


def advance(path: str) -> NoReturn:
    """Follow the run that the document ``path`` names until it rests, for a few minutes at most."""
    set_up(1, sys.stderr)
    try:
        told = _told(Path(path))
    except FileNotFoundError:
        _log.info("%s is gone: the run was closed meanwhile", path)
        sys.exit(Exit.DONE)
    here = Session(config=Path(told.config) if told.config else None, state=Path(told.state_root))
    status = follow(here, [told.run], wait_s=_WAIT_S)
    _log.info("%s: exit status %d", told.run, status)
    if status in {Exit.IN_PROGRESS, Exit.PARTLY_FAILED}:
        _later(here, told, Path(path), _submission(Path(path)))
    # Leave before submitit writes its result: the folder for it is gone when the run was closed just now.
    sys.exit(Exit.DONE)


def _later(here: Session, told: Wake, path: Path, submission: str) -> None:
    """Come again where nothing else would: pauses before tries, lost answers and accounting may take hours."""
    try:
        run = watch.load(here.layout, told.run)
        if not run.spec.wake or waking.another_comes(run, submission):
            return
        work = waking.further(told, here.engine.hands.wake, path)
        if work is not None:
            _log.info("%s: it waits; job %s comes again", told.run, here.engine.compute.submit(work).job_id)
    except OuterloopError as error:
        _log.warning("%s: no further wake job: %s; the next tick moves the run on", told.run, error)


def resumed(here: Session, run_id: str) -> None:
    """Come again for a run that was let go on and only waits: no job of it may be under way whose end wakes it."""
    run = watch.load(here.layout, run_id)
    names = [name for name, one in run.state.submissions.items() if one.compute == "slurm"]
    if not names or here.engine.compute.name != "slurm" or run.state.parked is not None or run.state.ended is not None:
        return
    path = waking.newest(run, names)
    if path is not None:
        _later(here, load(Wake, path), path, "")


def _submission(path: Path) -> str:
    """Name the submission in whose folder the document lies."""
    return next(one.parent.name for one in path.parents if one.name == "wake")


def _told(path: Path) -> Wake:
    """Read the document; wake jobs of earlier versions were given the run's folder."""
    if path.is_dir():
        return Wake(run=path.name, state_root=str(path.parents[2]))
    told: Wake = load(Wake, path)
    return told
