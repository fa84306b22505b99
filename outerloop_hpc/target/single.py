"""A throw-away repository of one commit: for whoever may see a tree, but neither its history nor the way back."""

from __future__ import annotations

from pathlib import Path

from outerloop_hpc import fsio
from outerloop_hpc.target.compose import Signature
from outerloop_hpc.target.git import answer, environment
from outerloop_hpc.target.repository import Repository

_BRANCH = "main"
_BYTES = "* -text !eol -ident !filter !working-tree-encoding\n"


def single_commit(folder: Path, *, message: str, signature: Signature) -> str:
    """Make a repository of the files in ``folder``, with one commit of all of them, and return the commit's id.

    Nothing of another repository is in it or named by it.

    Raises:
        UsageError: git does not take the files.
        TryLater: the disk is full or does not answer.
    """
    _git(folder, "init", "--quiet", "--template=", f"--initial-branch={_BRANCH}")
    with fsio.writing(folder):
        # What the tree itself says about line endings, filters and encodings is not followed: its bytes are.
        (folder / ".git" / "info").mkdir(exist_ok=True)
        (folder / ".git" / "info" / "attributes").write_text(_BYTES, encoding="ascii")
    _git(folder, "add", "--all", "--force")
    tree = _git(folder, "write-tree").decode().strip()
    repository = Repository(folder)
    commit = repository.commit_tree(tree, message=message, variables=signature.variables())
    repository.set_ref(f"refs/heads/{_BRANCH}", commit)
    return commit


def _git(folder: Path, *arguments: str) -> bytes:
    return answer(folder, arguments, environment(folder), 600.0, b"")
