"""Recorded sacct answers as the rows that the engine archives."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

import pytest

DATA = Path(__file__).parents[2] / "data" / "reports"
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")


class Captured(Protocol):
    """Reads one recorded answer."""

    def __call__(self, name: str) -> list[dict[str, str]]: ...


def _epoch(text: str) -> str:
    if not _TIME.fullmatch(text):
        return text
    return str(int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()))


@pytest.fixture
def captured() -> Captured:
    """Rows of a recording; its times become epoch seconds, which is what the engine asks Slurm for."""

    def read(name: str) -> list[dict[str, str]]:
        lines = (DATA / f"{name}.txt").read_text(encoding="utf-8").splitlines()
        delimiter = "|#" if "|#" in lines[1] else "|"
        header = lines[1].split(delimiter)
        rows = [line.split(delimiter) for line in lines[2:] if not line.startswith("---")]
        # The recording holds one job whose name contains the delimiter; the engine's own delimiter cannot occur.
        return [dict(zip(header, map(_epoch, row), strict=True)) for row in rows if len(row) == len(header)]

    return read
