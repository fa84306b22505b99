"""A contract that stays broken is told on the target's forge, once; the notice is closed when it is healthy again."""

from __future__ import annotations

import logging
from datetime import datetime
from typing import ClassVar

from pydantic import AwareDatetime, Field

from outerloop_hpc import fsio
from outerloop_hpc.documents import Document, load
from outerloop_hpc.engine.changes import Forges
from outerloop_hpc.engine.layout import Layout
from outerloop_hpc.engine.spec import stamp
from outerloop_hpc.errors import Fault
from outerloop_hpc.forge.text import span

_log = logging.getLogger(__name__)

#: One bad tick may be a push that is being mended; so many in a row are a day of silence in the making.
BAD_TICKS = 3
_KEY = "contract"


class Broken(Document):
    """``tick/contract-<target>.json``: there while the contract cannot be used."""

    name: ClassVar[str] = "broken-contract"

    since: AwareDatetime
    ticks: int = Field(ge=1)
    text: str
    raised: bool = False


def note(layout: Layout, forges: Forges, target: str, trouble: str, now: datetime) -> None:
    """Count one more bad tick and raise the alarm when it is due, or clear it when ``trouble`` is empty.

    Raises:
        TryLater: the forge does not answer; the next tick tries again.
    """
    path, unreadable = layout.tick / f"contract-{target}.json", False
    try:
        known: Broken | None = load(Broken, path)
    except FileNotFoundError:
        known = None
    except Fault as fault:
        _log.warning("%s; it only counts bad ticks, and is written anew", fault)
        known, unreadable = None, True
    if trouble:
        since, ticks, raised = (now, 0, False) if known is None else (known.since, known.ticks, known.raised)
        broken = Broken(since=since, ticks=ticks + 1, text=trouble, raised=raised)
        fsio.replace(path, broken.encoded())
        if broken.ticks >= BAD_TICKS and not raised and _raise(forges, target, broken):
            fsio.replace(path, broken.model_copy(update={"raised": True}).encoded())
    elif known is not None or unreadable:
        # Also when nobody noted that it was raised: whoever raised it may have died right after.
        perhaps = known is None or known.ticks >= BAD_TICKS
        if perhaps and (forge := forges(target)) is not None:
            forge.clear_alarm(_KEY, "The contract can be used again; launches go on.")
        fsio.remove(path)


def _raise(forges: Forges, target: str, broken: Broken) -> bool:
    forge = forges(target)
    if forge is None:
        return False
    body = (
        f"Since {stamp(broken.since)} nothing can be launched for `{target}`: {span(broken.text, 500)}\n\n"
        "What runs already goes on. This notice is closed by the first tick that can use the contract."
    )
    forge.raise_alarm(_KEY, f"The contract of {target} cannot be used", body)
    return True
