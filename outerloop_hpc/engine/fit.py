"""Whether the state folder's filesystem can tell two passes apart; found out once, and kept beside the heartbeat."""

from __future__ import annotations

import json
from datetime import datetime

from outerloop_hpc import fsio
from outerloop_hpc.engine.layout import Layout
from outerloop_hpc.engine.spec import stamp


def require_exclusive(layout: Layout, now: datetime) -> None:
    """Refuse a filesystem on which two passes could not be told apart.

    Raises:
        FilesystemUnfit: nothing is exclusive there.
    """
    known = layout.tick / "filesystem.json"
    if known.exists():
        return
    found = fsio.require_exclusive(layout.root)
    fsio.make_folder(known.parent)
    said = {"schema": "filesystem/1", "at": stamp(now), "link": found.link, "failures": found.failures}
    fsio.replace(known, json.dumps(said).encode() + b"\n")
