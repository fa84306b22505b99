"""Pauses of a role after the service behind it refused a session: said by the run, counted from the refusal."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import ClassVar

from pydantic import AwareDatetime

from outerloop_hpc import fsio
from outerloop_hpc.agents.refusals import Outage
from outerloop_hpc.documents import Document, load
from outerloop_hpc.errors import Fault

_log = logging.getLogger(__name__)

#: A refusal by a clock that is ahead still counts; one from further in the future is somebody's mistake.
_SKEW = timedelta(minutes=5)


class RoleOutage(Document):
    """``outages/<role>/<run>.json``: when the service refused that run's session, by the clock of its node."""

    name: ClassVar[str] = "role-outage"

    role: str
    run: str
    at: AwareDatetime
    outage: Outage
    text: str = ""


def outage_path(role: str, run: str) -> str:
    """Return where a run's refusal is, relative to the state folder."""
    return f"outages/{role}/{run}.json"


def paused_until(
    folder: Path, pauses: Mapping[Outage, timedelta], now: datetime, *, tidy: bool = True
) -> datetime | None:
    """Return until when the role of ``folder`` pauses, or None; ``tidy`` removes what is long over.

    What cannot be read pauses nothing: a session finds out by itself, and gives its attempt back.
    """
    longest, until = max(pauses.values()), None
    for name in fsio.names(folder):
        try:
            said: RoleOutage = load(RoleOutage, folder / name)
        except (Fault, OSError) as fault:
            _log.warning("%s: %s", folder / name, fault)
            continue
        end = said.at + pauses[said.outage]
        if said.at <= now + _SKEW and end > now:
            until = max(until or end, end)
        elif tidy and said.at + longest + _SKEW < now:
            fsio.remove(folder / name)
    return until
