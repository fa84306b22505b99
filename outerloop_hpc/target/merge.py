"""Proposed branches in a bare repository of their own, and merging one into the repository it is meant for."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from outerloop_hpc import effects, fsio
from outerloop_hpc.errors import TryLater, UsageError
from outerloop_hpc.target.compose import Signature
from outerloop_hpc.target.git import GitRefused
from outerloop_hpc.target.mirror import address_of, checked_branch
from outerloop_hpc.target.repository import Repository, create_bare

_BRANCH = "main"


class Branches:
    """A bare repository that holds proposed branches; made when the first one comes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def head(self, branch: str) -> str | None:
        """Return the commit of a branch, or None when it is not here."""
        if not (self.folder / "HEAD").is_file():
            return None
        return Repository(self.folder).ref(f"refs/heads/{checked_branch(branch)}")

    def bring(self, source: Path, commit: str, branch: str) -> None:
        """Bring a commit of a local repository here as a new branch.

        Raises:
            GitRefused: the branch has moved to another commit meanwhile.
        """
        here, there = self._repository(), Repository(source)
        kept = f"refs/outerloop/proposed/{checked_branch(branch)}"
        # A name of its own over there too: a commit that no reference names may not be handed out, or be cleaned up.
        there.set_ref(kept, commit)
        here.fetch(str(source), f"{kept}:refs/heads/{branch}")

    def merge_into(self, repository: str, onto: str, branch: str, *, message: str, author: str, at: datetime) -> str:
        """Merge a branch into ``onto`` of another repository and return the commit that ``onto`` names then.

        Nothing is made anew when it is merged there already; where ``onto`` has not moved, it is moved forward.

        Raises:
            UsageError: both sides changed the same lines, or the repository takes no push.
            TryLater: the repository does not answer, or its branch moved meanwhile.
        """
        here, address = self._repository(), address_of(repository)
        head = self.head(branch)
        if head is None:
            raise UsageError(f"{self.folder}: there is no branch {branch!r}")
        # One name for each branch, which stays: one for each merge would be left by every merge that is killed.
        base_ref = f"refs/outerloop/base/{branch}"
        here.fetch(address, f"+refs/heads/{checked_branch(onto)}:{base_ref}")
        base = here.resolve(base_ref)
        if here.is_ancestor(head, base):
            return base
        if here.is_ancestor(base, head):
            merged = head
        else:
            tree = here.merged_tree(base, head)
            if tree is None:
                raise UsageError(
                    f"{branch} and {onto} changed the same lines; close the change, or merge it by hand: "
                    f"git fetch {self.folder} {branch}"
                )
            signature = Signature(author, f"{author}@localhost", at)
            merged = here.commit_tree(tree, base, head, message=message, variables=signature.variables())
        self._push(here, address, merged, onto, branch, base)
        return merged

    def _push(self, here: Repository, address: str, commit: str, onto: str, branch: str, base: str) -> None:
        try:
            here.push(address, commit, onto, expected=base)
        except GitRefused as refused:
            raise UsageError(
                f"{address} takes no push of {onto}; merge it there (git pull {self.folder} {branch}), run this again, "
                f"and it is noted. It said: {refused}"
            ) from refused

    def _repository(self) -> Repository:
        if not (self.folder / "HEAD").is_file():
            fsio.make_folder(self.folder.parent)
            staging = self.folder.parent / f".tmp-branches-{fsio.nonce()}"
            create_bare(staging, _BRANCH)
            try:
                effects.perform("rename", str(self.folder), lambda: staging.rename(self.folder))
            except OSError as error:
                if not (self.folder / "HEAD").is_file():
                    raise TryLater(f"{self.folder}: cannot be put into place: {error.strerror}; run again") from error
        return Repository(self.folder)
