"""What later executions of a session's step know of earlier ones: begun, ended, kept. None is bought twice."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar, TypeVar

from pydantic import AwareDatetime

from outerloop_hpc import fsio
from outerloop_hpc.agents.outcome import Session
from outerloop_hpc.documents import Document, load
from outerloop_hpc.engine import records
from outerloop_hpc.engine.body import Context
from outerloop_hpc.errors import Fault
from outerloop_hpc.steward.findings import SessionFound

_log = logging.getLogger(__name__)

_SAID, _HELD = "said.json", "session.json"


class Said(Document):
    """``said.json`` beside a session's workspace, on the node's own disk: how it ended. Part of running it.

    Attributes:
        at: when it ended, by that host's clock.
        place: the folder. transcript: where its transcript is, relative to ``runs/``.
    """

    name: ClassVar[str] = "session-said"

    at: AwareDatetime
    place: str
    transcript: str
    session: Session


class Held(Document):
    """``eNNNN.session.json``: what a session came to, published when its candidate is in the mirror."""

    name: ClassVar[str] = "session"

    step: str
    found: SessionFound


_Kept = TypeVar("_Kept", records.Begun, Held)


def before(context: Context, host: str) -> SessionFound | Said | None:
    """Return what an earlier execution of this step came to; None when none of them has begun a session.

    One that ended and whose job died before its work was safe is gone on with where it was held, as long as its
    workspace is there. One that has left no end died with its job: that is a failed session, and costs an attempt. It
    is never bought again under the same claim.
    """
    if (found := _held(context)) is not None:
        return found
    for begun in _documents(context, records.BEGUN, records.Begun):
        if begun.host == host and begun.place and (said := _said(Path(begun.place))) is not None:
            return said
    return _lost(context)


def _said(place: Path) -> Said | None:
    """Return how the session ended that was held in a folder of this node; None when nobody can tell."""
    try:
        said: Said = load(Said, place / _SAID)
    except (Fault, OSError) as fault:
        _log.warning("%s: %s", place / _SAID, fault)
        return None
    return said


def _held(context: Context) -> SessionFound | None:
    return next((held.found for held in _documents(context, _HELD, Held)), None)


def _lost(context: Context) -> SessionFound | None:
    for begun in _documents(context, records.BEGUN, records.Begun):
        reason = f"the session that was begun on {begun.host} at {begun.at} died with its job, and left nothing"
        return SessionFound(word="failed", reason=reason)
    return None


def begin(context: Context, host: str, at: AwareDatetime, place: Path) -> SessionFound | None:
    """Note that the session begins now in ``place``; returns what a faster execution came to, and none begins here.

    Each notes its own first and then looks for others, so that of two at the same moment at most one finds none.

    Raises:
        Fault: what another one noted cannot be read.
    """
    ours = records.Begun(step=context.element.step.key, host=host, at=at, place=str(place))
    alone = fsio.publish(_path(context, records.BEGUN), ours.encoded())
    noted = list(_documents(context, records.BEGUN, records.Begun))
    return None if alone and noted == [ours] else _held(context) or _lost(context)


def never_began(context: Context) -> None:
    """Take that back: its container did not start."""
    fsio.remove(_path(context, records.BEGUN))


def end(context: Context, at: AwareDatetime, place: Path, session: Session) -> Said:
    """Note on the node's own disk how the session ended, beside what it left. Where that fails, only its job knows."""
    transcript = str(context.log.relative_to(context.layout.runs))
    said = Said(at=at, place=str(place), transcript=transcript, session=session)
    staging = place / f".{_SAID}"
    try:
        with staging.open("wb") as file:
            file.write(said.encoded())
            file.flush()
            os.fsync(file.fileno())
        staging.replace(place / _SAID)
    except OSError:
        _log.exception("%s: how the session ended could not be noted", place)
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
