"""Journal commits in a second, beside a plain write, fsync and rename of the same bytes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from outerloop_hpc import fsio
from outerloop_hpc.engine.events import Author, RunParked
from outerloop_hpc.engine.journal import Journal
from outerloop_hpc.engine.layout import Layout, new_run_id
from outerloop_hpc.engine.state import RunState
from tests.bench.figure import Figure, beside
from tests.bench.places import disk, memory, scratch
from tests.bench.samples import in_turn

_ROUNDS = 7
_COMMITS = 50
_PEER = "write + fsync + rename"
_AUTHOR = Author(host="login1", pid=1, user="alice", version="bench")
_EVENT = RunParked(question="what became of it? Resume to try again, or end the run.", reason="nothing anywhere " * 8)


def measure() -> list[Figure]:
    """Measure on this disk, and in memory where there is such a mount."""
    where = {"disk": disk(), "tmpfs": memory()}
    return [_in(name, parent) for name, parent in where.items() if parent is not None]


def _in(name: str, parent: Path) -> Figure:
    with scratch(parent) as folder:
        commits = partial(per_second, partial(commit_many, folder / "state"))
        plain = partial(per_second, partial(write_many, folder / "plain", transaction_bytes(folder / "state")))
        taken = in_turn({"commits": commits, "plain": plain}, _ROUNDS)
    return beside(f"journal_commit.{name}", "commits/s", taken["commits"], _PEER, taken["plain"])


def per_second(many: Callable[[], int]) -> float:
    """Return how often per second something was done."""
    begun = time.perf_counter()
    count = many()
    return count / (time.perf_counter() - begun)


def commit_many(root: Path) -> int:
    """Extend the journal of a new run, one transaction after the other."""
    at = datetime.now(UTC)
    folder = Layout(root).run(new_run_id("benchmark", "bench", at, fsio.nonce()[:8]))
    journal, state = Journal(folder), RunState(run=folder.run_id)
    for _ in range(_COMMITS):
        state = journal.commit(state, (_EVENT,), by=_AUTHOR, at=at, nonce=fsio.nonce())
    return state.seq


def transaction_bytes(root: Path) -> bytes:
    """Return one transaction as it lies on the disk."""
    commit_many(root)
    return next(root.glob("runs/*/*/journal/00000001.json")).read_bytes()


def write_many(folder: Path, data: bytes) -> int:
    """Write the same bytes into new files: durable content, no exclusive name, no durable folder entry."""
    folder.mkdir(exist_ok=True)
    for _ in range(_COMMITS):
        name = folder / fsio.nonce()
        descriptor = os.open(f"{name}.tmp", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        try:
            os.write(descriptor, data)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        Path(f"{name}.tmp").replace(name)
    return _COMMITS
