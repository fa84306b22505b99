"""Where benchmarks put their files: this disk, and memory where there is such a mount."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.bench.processes import CHECKOUT

_MEMORY = Path("/dev/shm")
_FREE = 3 * 2**30


def memory() -> Path | None:
    """Return a writable tmpfs with room, if this machine has one."""
    if not os.access(_MEMORY, os.W_OK) or shutil.disk_usage(_MEMORY).free < _FREE:
        return None
    return _MEMORY


def disk() -> Path:
    """Return a folder on the disk of this checkout."""
    folder = CHECKOUT / "build"
    folder.mkdir(exist_ok=True)
    return folder


@contextmanager
def scratch(parent: Path) -> Iterator[Path]:
    """Give a folder that is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="outerloop-bench-", dir=parent) as folder:
        yield Path(folder)
