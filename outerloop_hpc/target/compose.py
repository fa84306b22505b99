"""Commits of the tool's own: files on top of a commit, without a working folder. The same input, the same commit."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from outerloop_hpc.errors import TryLater
from outerloop_hpc.target.git import GitRefused
from outerloop_hpc.target.repository import Repository
from outerloop_hpc.target.tree import FILE, PROGRAM


@dataclass(frozen=True, slots=True)
class Signature:
    """Who a commit names, and when; nothing of the machine it is made on goes into it."""

    name: str
    email: str
    at: datetime

    def variables(self) -> dict[str, str]:
        """Return git's variables for it."""
        date = f"{int(self.at.timestamp())} +0000"
        return {
            f"GIT_{role}_{what}": value
            for role in ("AUTHOR", "COMMITTER")
            for what, value in (("NAME", self.name), ("EMAIL", self.email), ("DATE", date))
        }


def commit_on(
    repository: Repository, parent: str, files: Mapping[str, bytes], *, message: str, signature: Signature
) -> str:
    """Commit ``files`` (contents by path, regular files) on top of ``parent`` and return the new commit's id.

    A program that is there stays one.
    Where they are there already with this content, ``parent`` itself is returned.

    Raises:
        UsageError: a path cannot be a file there.
        TryLater: the repository cannot be written now.
    """
    try:
        with tempfile.TemporaryDirectory(prefix="outerloop-index-") as folder:
            index = Path(folder) / "index"
            programs = {entry.path for entry in repository.entries(parent) if entry.mode == PROGRAM}
            modes = {path: PROGRAM if path in programs else FILE for path in files}
            wanted = ((path, modes[path], content) for path, content in files.items())
            tree = repository.tree_with(parent, wanted, index=index)
    except OSError as error:
        raise TryLater(f"a temporary folder cannot be made: {error}; free space there and run again") from error
    same = tree == repository.tree(parent)
    commit = parent if same else repository.commit_tree(tree, parent, message=message, variables=signature.variables())
    # Git leaves out a path that it does not like, and lets a folder take the place of a file of that name.
    if strays := {change.path for change in repository.changes(parent, commit)} - files.keys():
        raise GitRefused(f"{repository.folder}: {min(strays)!a} would change with it")
    for path in files:
        repository.read(commit, path, limit=len(files[path]))
    return commit
