"""Where a run keeps what was proposed: ``candidates/<digest>/``, frozen, and beside it what its proposer wrote."""

from __future__ import annotations

from pathlib import Path

from outerloop_hpc.engine.body import Context
from outerloop_hpc.engine.layout import RunFolder


def folder_of(run: RunFolder) -> Path:
    """Return the folder of a run's frozen overlays."""
    return run.path / "candidates"


def candidates(context: Context) -> Path:
    """Return the folder of frozen overlays of this job's run."""
    return folder_of(context.layout.run(context.spec.run))


def proposal_file(folder: Path, digest: str) -> Path:
    """Return where the text is that came with a candidate; not in its folder, which holds the overlay alone."""
    return folder / f"{digest}.md"
