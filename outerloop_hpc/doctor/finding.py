"""What a check of ``doctor`` answers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How bad it is. ``WARN`` limits something; ``FAIL`` stops the tool from working."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Finding:
    """One check's answer."""

    check: str
    level: Level
    saw: str
    advice: str = ""
