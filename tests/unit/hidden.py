"""A folder that the user may not list, also for tests that run as root."""

from __future__ import annotations

from pathlib import Path

import pytest

from outerloop_hpc import fsio


def hide(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse to list ``folder`` for the rest of the test."""
    plain = fsio.names

    def names(path: Path | str) -> list[str]:
        if path == folder:
            raise PermissionError(13, "Permission denied", str(path))
        return plain(path)

    monkeypatch.setattr(fsio, "names", names)
