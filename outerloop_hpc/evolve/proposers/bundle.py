"""The evidence that a proposer may read: a few files, read-only, and a manifest of them and of what is left out."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from outerloop_hpc import fsio
from outerloop_hpc.agents.redact import without_keys
from outerloop_hpc.evolve.given import Prior, ProposeGiven
from outerloop_hpc.evolve.leavings import content_of
from outerloop_hpc.evolve.overlays.candidates import proposal_file

ROWS, GATES, PRIOR, MANIFEST = "selected-rows.json", "gate-summary.json", "prior-proposal.md", "manifest.json"
#: Of a proposal's text, in bytes.
MOST_TEXT = 256 * 1024


@dataclass(frozen=True, slots=True)
class Room:
    """Bytes that one file and all files together may have; the manifest comes on top."""

    file: int = 256 * 1024
    whole: int = 2 * 1024 * 1024


def bundle(
    given: ProposeGiven, prior: bytes, outputs: Sequence[bytes | None] = (), room: Room | None = None
) -> dict[str, bytes]:
    """Return the files of the evidence by name (pure).

    Where there is no room for all, outputs go first, those of the lowest rows before others, then rows, then the prior
    proposal; the manifest says so.

    Args:
        given: rows, gates and what had no room.
        prior: the last rejected proposal with the reason; empty when there was none.
        outputs: what the command of each row printed, its end; None where that is not known.
        room: how much there is.
    """
    packing = _Packing(given, prior, dict(enumerate(outputs[: len(given.rows)], 1)), room or Room())
    files = packing.fitted()
    listed = [
        {"name": name, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()} for name, data in files.items()
    ]
    manifest = {
        "schema": "evidence/1",
        "generation": given.generation,
        "rows": len(packing.rows),
        "gates": len(packing.gates),
        "files": listed,
        "dropped": [*given.dropped, *packing.dropped],
    }
    return {**files, MANIFEST: _json(manifest)}


class _Packing:
    """Takes things out until the rest fits."""

    def __init__(self, given: ProposeGiven, prior: bytes, outputs: Mapping[int, bytes | None], room: Room) -> None:
        self.rows: list[dict[str, Any]] = [_clean(row) for row in given.rows]
        self.gates = [_clean(gate) for gate in given.gates]
        self.dropped: list[str] = []
        self._outputs = {number: data for number, data in outputs.items() if data is not None}
        self._room = room
        self._prior = prior
        lacking = [str(number) for number, data in outputs.items() if data is None]
        if lacking:
            self.dropped.append(f"output of row {', '.join(lacking)}: its log is not there, or is no regular file")

    def fitted(self) -> dict[str, bytes]:
        """Return the files that fit."""
        most = self._room.file
        if len(self._prior) > most:
            self.dropped.append(f"the last {len(self._prior) - most} bytes of the prior proposal: it is too long")
            self._prior = self._prior[:most]
        for number in [one for one, data in self._outputs.items() if len(data) > most]:
            self._drop_output(number)
        while self.gates and len(_json(self.gates)) > most:
            self.gates.pop(0)
            self._drop("the oldest decision")
        while self.rows and len(_json(self._named())) > most:
            self._drop_row()
        files = self._files()
        while sum(map(len, files.values())) > self._room.whole and self._drop_something():
            files = self._files()
        return files

    def _drop_something(self) -> bool:
        if self._outputs:
            self._drop_output(max(self._outputs))
        elif self.rows:
            self._drop_row()
        elif self._prior:
            self._drop("the prior proposal")
            self._prior = b""
        elif self.gates:
            self.gates.pop(0)
            self._drop("the oldest decision")
        else:
            return False
        return True

    def _drop_output(self, number: int) -> None:
        del self._outputs[number]
        self._drop(f"output of row {number}")

    def _drop_row(self) -> None:
        self._outputs.pop(len(self.rows), None)
        row = self.rows.pop()
        self._drop(f"row {len(self.rows) + 1} (task {row.get('task')}, repeat {row.get('repeat')})")

    def _drop(self, what: str) -> None:
        self.dropped.append(f"{what}: there was no room for it")

    def _named(self) -> list[dict[str, Any]]:
        """Return the rows, each with the name of its output."""
        return [
            {**row, "output": _output(number)} if number in self._outputs else row
            for number, row in enumerate(self.rows, 1)
        ]

    def _files(self) -> dict[str, bytes]:
        files = {ROWS: _json(self._named()), GATES: _json(self.gates)}
        if self._prior:
            files[PRIOR] = self._prior
        return files | {_output(number): data for number, data in sorted(self._outputs.items())}


def _output(number: int) -> str:
    return f"output-{number}.txt"


def _clean(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row or a decision whose reasons, which may quote what was printed, hold no key."""
    cleaned: dict[str, Any] = dict(row)
    if "reason" in row:
        cleaned["reason"] = without_keys(str(row["reason"]))
    if "reasons" in row:
        cleaned["reasons"] = [without_keys(str(one)) for one in row["reasons"]]
    return cleaned


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
        without_keys(prior.reason),
        "",
        "## Its own words",
        "",
        without_keys((said or b"(none)").decode("utf-8", errors="replace")),
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
