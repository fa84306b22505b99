"""Where built things are kept between runs: one folder per entry, built aside under a lock, published by rename."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

VARIABLE = "OUTERLOOP_TEST_CACHE"


class BuildFailed(Exception):  # noqa: N818 - states what happened
    """Something that the slurm tier needs could not be built; the text names the log."""


def folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the cache folder: ``$OUTERLOOP_TEST_CACHE``, else below ``$XDG_CACHE_HOME`` or ``~/.cache``."""
    chosen = environ.get(VARIABLE)
    if chosen:
        return Path(chosen).absolute()
    base = environ.get("XDG_CACHE_HOME") or Path(environ.get("HOME", "/root")) / ".cache"
    return Path(base).absolute() / "outerloop-hpc-tests"


def digest(*parts: str) -> str:
    """Return 12 hex digits that change when any part (or the border between two parts) changes."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]


def entry(cache: Path, name: str, build: Callable[[Path, Path], None]) -> Path:
    """Return the finished folder ``cache/name``; when it is missing, let ``build(folder, log)`` fill it first.

    Two processes never build the same entry at once, and a half-built one is never seen under its name.

    Raises:
        BuildFailed: as ``build`` raised it; the half-built folder is gone, the log stays.
    """
    finished = cache / name
    if finished.is_dir():
        return finished
    cache.mkdir(parents=True, exist_ok=True)
    with _locked(cache / f"{name}.lock"):
        if finished.is_dir():
            return finished
        aside = cache / f"{name}.building"
        _discard(aside)
        aside.mkdir()
        try:
            build(aside, cache / f"{name}.log")
        except BaseException:
            _discard(aside)
            raise
        aside.rename(finished)
    return finished


def _discard(aside: Path) -> None:
    if aside.exists():
        shutil.rmtree(aside)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    # The cache is local to one machine, so flock excludes; the kernel drops it when the holder dies.
    with path.open("w", encoding="ascii") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
