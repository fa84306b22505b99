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
from outerloop_hpc.engine.records import Wake
from outerloop_hpc.errors import Exit

_log = logging.getLogger(__name__)
#: Long enough for accounting to be complete; the tick is the backup for everything slower.
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
    _log.info("%s: exit status %d", told.run, follow(here, [told.run], wait_s=_WAIT_S))
    # Leave before submitit writes its result: the folder for it is gone when the run was closed just now.
    sys.exit(Exit.DONE)


def _told(path: Path) -> Wake:
    """Read the document; wake jobs of earlier versions were given the run's folder."""
    if path.is_dir():
        return Wake(run=path.name, state_root=str(path.parents[2]))
    told: Wake = load(Wake, path)
    return told
