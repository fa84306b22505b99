"""What later executions of a session's step know of earlier ones: begun, ended, kept. None is bought twice."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar, TypeVar

from pydantic import AwareDatetime

from outerloop_hpc import fsio
from outerloop_hpc.agents.outcome import Session
from outerloop_hpc.documents import Document, load
from outerloop_hpc.engine import records
from outerloop_hpc.engine.body import Context
from outerloop_hpc.steward.findings import SessionFound

_log = logging.getLogger(__name__)

_SAID, _HELD = "said.json", "session.json"


class Said(Document):
    """``eNNNN.said.json``: how a session ended, published before anything is made of what it left.

    Attributes:
        host: where it was held. at: when it ended, by that host's clock.
        place: the folder of its workspace there, node-local.
        transcript: where its transcript is, relative to ``runs/``.
    """

    name: ClassVar[str] = "session-said"

    step: str
    host: str
    at: AwareDatetime
    place: str
    transcript: str
    session: Session


class Held(Document):
    """``eNNNN.session.json``: what a session came to, published when its candidate is in the mirror."""

    name: ClassVar[str] = "session"

    step: str
    found: SessionFound


_Kept = TypeVar("_Kept", records.Begun, Said, Held)


def before(context: Context, host: str) -> SessionFound | Said | None:
    """Return what an earlier execution of this step came to; None when none of them has begun a session.

    One that ended and whose job died before its work was safe is gone on with where it was held, as long as its
    workspace is there. One that has left no end died with its job: that is a failed session, and costs an attempt. It
    is never bought again under the same claim.
    """
    if (found := _held(context)) is not None:
        return found
    for said in _documents(context, _SAID, Said):
        if said.host == host and Path(said.place).is_dir():
            return said
    return _lost(context)


def _held(context: Context) -> SessionFound | None:
    return next((held.found for held in _documents(context, _HELD, Held)), None)


def _lost(context: Context) -> SessionFound | None:
    for begun in _documents(context, records.BEGUN, records.Begun):
        reason = f"the session that was begun on {begun.host} at {begun.at} died with its job, and left nothing"
        return SessionFound(word="failed", reason=reason)
    return None


def begin(context: Context, host: str, at: AwareDatetime) -> SessionFound | None:
    """Note that the session begins now; returns what another execution came to that was faster, and none begins here.

    Each notes its own first and then looks for others, so that of two at the same moment at most one finds none.

    Raises:
        Fault: what another one noted cannot be read.
    """
    ours = records.Begun(step=context.element.step.key, host=host, at=at)
    alone = fsio.publish(_path(context, records.BEGUN), ours.encoded())
    noted = list(_documents(context, records.BEGUN, records.Begun))
    return None if alone and noted == [ours] else _held(context) or _lost(context)


def never_began(context: Context) -> None:
    """Take that back: its container did not start."""
    fsio.remove(_path(context, records.BEGUN))


def end(context: Context, host: str, at: AwareDatetime, place: Path, session: Session) -> Said:
    """Note how the session ended, and where its work is."""
    transcript = str(context.log.relative_to(context.layout.runs))
    step = context.element.step.key
    said = Said(step=step, host=host, at=at, place=str(place), transcript=transcript, session=session)
    fsio.publish(_path(context, _SAID), said.encoded())
    return said


def keep(context: Context, found: SessionFound) -> None:
    """Keep what the session came to, ahead of the record."""
    fsio.publish(_path(context, _HELD), Held(step=context.element.step.key, found=found).encoded())


def _path(context: Context, what: str) -> Path:
    return context.log.with_name(context.log.name.replace("log", what))


def _documents(context: Context, what: str, kind: type[_Kept]) -> Iterator[_Kept]:
    """Yield the documents of all executions of this step.

    Raises:
        Fault: one cannot be read. It may be of a session that was paid for, so none is held.
    """
    tries = context.layout.run(context.spec.run).path / "tries"
    for submission in fsio.names(tries):
        for name in fsio.names(tries / submission):
            if name.endswith(f".{what}"):
                document: _Kept = load(kind, tries / submission / name)
                if document.step == context.element.step.key:
                    yield document
