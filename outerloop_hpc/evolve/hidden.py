"""The hidden oracle files of a sweep: taken out of every checkout, handed out for the oracle's own command alone."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from outerloop_hpc import fsio
from outerloop_hpc.engine import measuring
from outerloop_hpc.engine.body import Context
from outerloop_hpc.engine.clearing import remove
from outerloop_hpc.errors import ConfigError, TryLater, UsageError
from outerloop_hpc.evolve.work import Oracle, Task
from outerloop_hpc.target.mirror import Mirror


def check_out(context: Context, commit: str, tree: str, hidden: Iterable[str], folder: Path) -> None:
    """Write a committed tree into a fresh folder, without the hidden files.

    Raises:
        NotSeenHere: the mirror has no such commit, as this node sees it.
        OtherTree: the commit has another tree.
        ConfigError: it cannot be written safely.
        TryLater: a hidden file is still there.
    """
    measuring.check_out(context, commit, tree, folder)
    for path in hidden:
        remove(folder / path, lambda: False)
        if os.path.lexists(folder / path):
            raise TryLater(f"{folder}: the oracle file {path!a} cannot be taken out of the checkout; run again")
        _drop_empty(folder / path, folder)


def _drop_empty(path: Path, root: Path) -> None:
    """Remove the folders that held only hidden files: git knows no empty ones, and their names would tell."""
    for parent in path.parents:
        if parent == root or not parent.is_relative_to(root):
            return
        with suppress(OSError):
            parent.rmdir()


def hand_out(context: Context, task: Task, oracle: Oracle) -> Path:
    """Write a task's oracle files into a fresh folder with a random name, and return it.

    Raises:
        ConfigError: the commit has no such file.
        TryLater: the disk is full or does not answer.
    """
    mirror = Mirror(context.layout.mirrors / f"{context.spec.target}.git")
    folder = context.scratch / fsio.nonce()
    for path in oracle.files:
        try:
            content = mirror.read(task.commit, path)
        except UsageError as error:
            raise ConfigError(f"task {task.id}: an oracle file cannot be read: {error}") from error
        with fsio.writing(folder):
            _write(folder / path, content)
    return folder


def _write(place: Path, content: bytes) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(content)
    place.chmod(0o555)
