"""When accounting, or the controller it hears from, was last silent: what it says just afterwards is not whole yet.

A slurmdbd that is back answers at once, and for some seconds without the jobs that ended meanwhile. How long to wait
for their rows is therefore measured from the last silence too, never from the end of the job alone.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import ClassVar

from pydantic import AwareDatetime

from outerloop_hpc import fsio
from outerloop_hpc.documents import Document, load
from outerloop_hpc.engine.evidence import Index
from outerloop_hpc.engine.layout import Layout
from outerloop_hpc.errors import Fault
from outerloop_hpc.slurm.port import Availability

_log = logging.getLogger(__name__)


class Silence(Document):
    """``tick/silent-<compute>.json``: replaced by every pass that got no answer from accounting."""

    name: ClassVar[str] = "silence"

    at: AwareDatetime


def noted(layout: Layout, indexes: Mapping[str, Index], now: datetime, *, write: bool) -> dict[str, datetime]:
    """Return when each compute's accounting was last silent, and keep it for later passes."""
    found: dict[str, datetime] = {}
    for name, index in indexes.items():
        path = layout.tick / f"silent-{name}.json"
        seen = index.observation
        # Accounting hears of ends from the controller: while that is away its rows are old, whatever it answers.
        said = (seen.accounting.availability, seen.queue.availability)
        # Who was not asked, because somebody asked just before, was not silent.
        silent = Availability.UNAVAILABLE in said and not seen.spared_s
        if silent and write:
            fsio.replace(path, Silence(at=now).encoded())
        last = now if silent else _last(path)
        if last is not None:
            found[name] = last
    return found


def _last(path: Path) -> datetime | None:
    try:
        known: Silence = load(Silence, path)
    except FileNotFoundError:
        return None
    except Fault as fault:
        _log.warning("%s; it only says how long rows are waited for, and is written anew", fault)
        return None
    return known.at
