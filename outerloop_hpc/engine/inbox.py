"""Decisions by people: one file each, written by ``runs end`` and ``runs resume``, taken by the next pass."""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import datetime
from typing import ClassVar

from pydantic import AwareDatetime

from outerloop_hpc import effects, fsio
from outerloop_hpc.documents import Document, load
from outerloop_hpc.engine.events import PersonAction, PersonDecided
from outerloop_hpc.engine.layout import RunFolder
from outerloop_hpc.errors import Fault


class Decision(Document):
    """``inbox/<time>-<nonce>.json``. Version 2 is for force and ``park``: earlier tools know neither."""

    name: ClassVar[str] = "decision"
    version: ClassVar[int] = 2

    run: str
    action: PersonAction
    who: str
    reason: str
    force: bool = False
    at: AwareDatetime


def put(folder: RunFolder, action: PersonAction, *, who: str, reason: str, at: datetime, force: bool = False) -> str:
    """Leave a decision for the next pass; returns the file's name."""
    fsio.make_folder(folder.inbox)
    name = f"{at:%Y%m%dT%H%M%SZ}-{fsio.nonce()[:8]}.json"
    schema = f"decision/{2 if force or action == 'park' else 1}"
    decision = Decision(
        document_schema=schema, run=folder.run_id, action=action, who=who, reason=reason, force=force, at=at
    )
    fsio.publish(folder.inbox / name, decision.encoded())
    return name


def waiting(folder: RunFolder) -> list[PersonDecided]:
    """Decisions that lie in the inbox, oldest first.

    Raises:
        Fault: one cannot be read, or is about another run; the text names the file.
    """
    inbox = folder.inbox
    if not os.path.exists(inbox):  # noqa: PTH110 - most runs have none, and a pass asks thousands
        return []
    found = []
    for name in fsio.names(inbox):
        with suppress(FileNotFoundError):
            decision: Decision = load(Decision, inbox / name)
            if decision.run != folder.run_id:
                raise Fault(f"{inbox / name}: is about {decision.run}; it was put here by mistake")
            found.append(
                PersonDecided(
                    file=name, action=decision.action, who=decision.who, reason=decision.reason, force=decision.force
                )
            )
    return found


def done(folder: RunFolder, name: str) -> None:
    """Move a decision that the journal has taken in; gone already is fine."""
    fsio.make_folder(folder.inbox_done)

    def move() -> None:
        with fsio.writing(folder.inbox_done), suppress(FileNotFoundError):
            (folder.inbox / name).replace(folder.inbox_done / name)

    effects.perform("move", str(folder.inbox / name), move)
