"""Read what the job of a try left behind; a file that cannot be understood is a fault, never an absence."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from outerloop_hpc import fsio
from outerloop_hpc.documents import load
from outerloop_hpc.engine import records
from outerloop_hpc.engine.evidence import Files
from outerloop_hpc.engine.layout import element_file
from outerloop_hpc.engine.state import Try
from outerloop_hpc.errors import Fault


def listing(folder: Path) -> frozenset[str]:
    """One folder listing serves all elements of a submission."""
    return frozenset(fsio.names(folder))


def files_of(folder: Path, present: frozenset[str], current: Try, *, run: str) -> Files:
    """Read what one try's job left, given the listing of its submission's folder.

    A file that cannot be understood is a fault, never an absence.
    """
    begun = element_file(current.index, records.BEGUN) in present
    try:
        record = _read(records.Record, folder, present, current.index, records.RECORD)
        if record is not None:
            _check(record, current, run, folder)
            return Files(record=record, begun=begun)
        return Files(
            claim=_read(records.Claim, folder, present, current.index, records.CLAIM),
            interrupted=_read(records.Interrupted, folder, present, current.index, records.INTERRUPTED),
            begun=begun,
        )
    except Fault as fault:
        return Files(fault=str(fault), begun=begun)


def _read(model: type[Any], folder: Path, present: frozenset[str], index: int, what: str) -> Any:
    name = element_file(index, what)
    if name not in present:
        return None
    try:
        return load(model, folder / name)
    except FileNotFoundError:
        return None


def _check(record: records.Record, current: Try, run: str, folder: Path) -> None:
    said = (record.run, record.submission, record.index, record.try_number)
    expected = (run, current.submission, current.index, current.number)
    if said != expected:
        path = os.fspath(folder / element_file(current.index, records.RECORD))
        raise Fault(f"{path}: is about {said}, expected {expected}; it was put here by mistake")
