"""The evidence that a proposer may read: a few files, read-only, and a manifest of them and of what is left out."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from outerloop_hpc import fsio
from outerloop_hpc.evolve.candidates import proposal_file
from outerloop_hpc.evolve.given import Prior, ProposeGiven
from outerloop_hpc.evolve.leavings import content_of

ROWS, GATES, PRIOR, MANIFEST = "selected-rows.json", "gate-summary.json", "prior-proposal.md", "manifest.json"
#: Of a proposal's text, in bytes.
MOST_TEXT = 256 * 1024


def bundle(given: ProposeGiven, prior: bytes) -> dict[str, bytes]:
    """Return the files of the evidence by name (pure).

    Args:
        given: rows, gates and what had no room.
        prior: the last rejected proposal with the reason; empty when there was none.
    """
    files = {ROWS: _json(given.rows), GATES: _json(given.gates)}
    if prior:
        files[PRIOR] = prior
    listed = [
        {"name": name, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()} for name, data in files.items()
    ]
    manifest = {
        "schema": "evidence/1",
        "generation": given.generation,
        "rows": len(given.rows),
        "gates": len(given.gates),
        "files": listed,
        "dropped": list(given.dropped),
    }
    return {**files, MANIFEST: _json(manifest)}


def prior_of(prior: Prior, candidates: Path) -> bytes:
    """Return what there is on the last proposal that was not promoted: why it lost, then its own words."""
    if not prior.digest and not prior.reason:
        return b""
    said = content_of(proposal_file(candidates, prior.digest), MOST_TEXT) if prior.digest else None
    lines = [
        "# The last proposal, which was not promoted",
        "",
        f"Overlay: {prior.digest or 'none'}",
        "",
        "Why it was not:",
        "",
        prior.reason,
        "",
        "## Its own words",
        "",
        (said or b"(none)").decode("utf-8", errors="replace"),
        "",
    ]
    return "\n".join(lines).encode()


def write(files: Mapping[str, bytes], folder: Path) -> None:
    """Write the evidence into a fresh folder that nobody may write to any more.

    Raises:
        TryLater: the disk is full.
    """
    with fsio.writing(folder):
        folder.mkdir()
        for name, data in files.items():
            (folder / name).write_bytes(data)
            (folder / name).chmod(0o444)
        folder.chmod(0o555)


def _json(value: object) -> bytes:
    return json.dumps(value, indent=1, sort_keys=True, allow_nan=False).encode() + b"\n"
