"""What a wake job runs: move one run on after its jobs, without any cron."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import NoReturn

from outerloop_hpc.cli.follow import follow
from outerloop_hpc.cli.logs import set_up
from outerloop_hpc.cli.session import Session
from outerloop_hpc.errors import Exit

_log = logging.getLogger(__name__)
#: Long enough for accounting to be complete; the tick is the backup for everything slower.
_WAIT_S = 300.0


def advance(path: str) -> NoReturn:
    """Follow the run in folder ``path`` until it rests, for a few minutes at most."""
    set_up(1, sys.stderr)
    folder = Path(path)
    here = Session(state=folder.parents[2])
    _log.info("%s: exit status %d", folder.name, follow(here, [folder.name], wait_s=_WAIT_S))
    # Leave before submitit writes its result: the folder for it is gone when the run was closed just now.
    sys.exit(Exit.DONE)
