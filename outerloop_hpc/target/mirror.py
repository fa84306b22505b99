"""A target's bare mirror on the shared folder: what jobs read, and where candidates travel as ``refs/outerloop/…``.

Safe for any number of hosts at once without a lock of ours: a mirror is built aside and renamed into place, and git's
own reference locks order the updates. Nothing is ever pruned or repacked here, so a commit once seen stays readable.
"""

from __future__ import annotations

import errno
import re
import shutil
from collections.abc import Collection
from pathlib import Path
from urllib.parse import unquote, urlsplit

from outerloop_hpc import effects, fsio
from outerloop_hpc.clock import Clock, SystemClock
from outerloop_hpc.errors import TryLater, UsageError
from outerloop_hpc.target.export import export
from outerloop_hpc.target.git import Contended, answer, environment, trusting
from outerloop_hpc.target.repository import LogEntry, Repository, create_bare
from outerloop_hpc.target.tree import Change, Entry

_TRIES = 5
_BACK_OFF_S = 0.25
_TAKEN = {errno.EEXIST, errno.ENOTEMPTY}
_BAD_BRANCH = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|^[-/.]|[/.]$|/\.|\.lock(/|$)|^@$")
_SSH_SHORT = re.compile(r"[A-Za-z0-9][\w.@-]*:[^:].*")


class Mirror:
    """One bare mirror.

    Args:
        path: ``STATE/mirrors/<target>.git``; made by the first ``sync``.
        clock: for waiting between tries.
        timeout_s: seconds that one git command may take.
    """

    def __init__(self, path: Path, *, clock: Clock | None = None, timeout_s: float = 600.0) -> None:
        self.path = path.absolute()
        self._clock = clock or SystemClock()
        self._timeout_s = timeout_s

    def sync(self, source: str, branch: str) -> str:
        """Bring ``branch`` of ``source`` here, making the mirror when there is none.

        Args:
            source: a local repository's path, an ``https`` or ``ssh`` URL; never one with a password in it.
            branch: its name there and here.

        Returns:
            The id of the commit that the branch names now.

        Raises:
            UsageError: no such repository or branch.
            TryLater: the source, the network or the filesystem does not answer, or others update the same branch.
        """
        address, name = address_of(source), checked_branch(branch)
        if not self.exists():
            self._build(address, name)
        else:
            self._fetch(self._repository(), address, name)
        return self.head(name)

    def exists(self) -> bool:
        """Whether the mirror has been made."""
        return (self.path / "HEAD").is_file()

    def head(self, branch: str) -> str:
        """Return the commit that a mirrored branch names; raises UsageError when it was never synced."""
        return self._repository().resolve(f"refs/heads/{checked_branch(branch)}")

    def resolve(self, ref: str) -> str:
        """Return the full id of the commit that ``ref`` names here."""
        return self._repository().resolve(ref)

    def tree(self, commit: str) -> str:
        """Return the full id of a commit's tree."""
        return self._repository().tree(commit)

    def has(self, commit: str) -> bool:
        """Whether the commit is here; no mirror has no commits."""
        return self.exists() and self._repository().has(commit)

    def read(self, commit: str, path: str, *, limit: int = 16 * 1024 * 1024) -> bytes:
        """Return the bytes of one regular file at a commit; see ``Repository.read``."""
        return self._repository().read(commit, path, limit=limit)

    def entries(self, commit: str) -> tuple[Entry, ...]:
        """Return every leaf of a commit's tree."""
        return self._repository().entries(commit)

    def digests(self, commit: str, paths: Collection[str]) -> dict[str, str]:
        """Return the sha256 of each of these files at a commit; see ``Repository.digests``."""
        return self._repository().digests(commit, paths)

    def changes(self, old: str, new: str) -> tuple[Change, ...]:
        """Return every path that differs between two commits."""
        return self._repository().changes(old, new)

    def log(self, since: str, until: str, *, limit: int = 1000) -> tuple[LogEntry, ...]:
        """Return the commits that ``until`` has and ``since`` has not, newest first."""
        return self._repository().log(since, until, limit=limit)

    def export(self, commit: str, folder: Path) -> str:
        """Write a commit's tree into a fresh folder and return the tree's id; see ``export.export``."""
        return export(self._repository(), commit, folder)

    def take(self, source: Path, ref: str, name: str) -> None:
        """Bring a reference of a local repository here under another name; there already with this commit is fine."""
        if not name.startswith("refs/outerloop/"):
            raise UsageError(f"{name!a} is not a name for candidates; those travel as refs/outerloop/…")
        self._retry(self._repository(), str(source), f"+{ref}:{name}")

    def _repository(self) -> Repository:
        if not self.exists():
            raise UsageError(f"{self.path}: there is no mirror yet; sync the target first")
        return Repository(self.path, timeout_s=self._timeout_s)

    def _build(self, address: str, branch: str) -> None:
        try:
            fsio.make_folder(self.path.parent)
        except OSError as error:
            raise TryLater(f"{self.path.parent}: cannot be made: {error.strerror}; nothing was changed") from error
        staging = self.path.parent / f".tmp-mirror-{fsio.nonce()}"
        try:
            create_bare(staging, branch)
            self._fetch(Repository(staging, timeout_s=self._timeout_s), address, branch)
            try:
                effects.perform("rename", str(self.path), lambda: staging.rename(self.path))
            except OSError as error:
                if error.errno not in _TAKEN:
                    raise TryLater(f"{self.path}: cannot be put into place: {error.strerror}; run again") from error
                # Somebody else was first: theirs stays, and gets what ours fetched.
                self._fetch(self._repository(), address, branch)
            else:
                fsio.sync_folder(self.path.parent)
        finally:
            shutil.rmtree(staging, ignore_errors=True)

    def _fetch(self, repository: Repository, address: str, branch: str) -> None:
        self._retry(repository, address, f"+refs/heads/{branch}:refs/heads/{branch}")

    def _retry(self, repository: Repository, address: str, refspec: str) -> None:
        for number in range(1, _TRIES + 1):
            try:
                repository.fetch(address, refspec)
            except Contended:
                if number == _TRIES:
                    raise
                self._clock.sleep(_BACK_OFF_S * 2**number)
            else:
                return


def ask(source: str, branch: str, *, timeout_s: float) -> None:
    """Ask a target's repository for its branch and fetch nothing.

    Raises:
        UsageError: no such repository or branch.
        TryLater: the source or the network does not answer.
    """
    address, name = address_of(source), checked_branch(branch)
    with trusting(address) as config:
        settings = {**environment(), "GIT_CONFIG_GLOBAL": str(config)}
        said = answer(Path("/"), ("ls-remote", "--", address, f"refs/heads/{name}"), settings, timeout_s, b"")
    if not said.strip():
        raise UsageError(f"{source}: there is no branch {branch!r}")


def checked_branch(branch: str) -> str:
    """Return ``branch`` when git would take it as a branch name; raises UsageError otherwise."""
    if not branch or _BAD_BRANCH.search(branch) or not branch.isprintable():
        raise UsageError(f"{branch!a} is not a branch name")
    return branch


def address_of(source: str) -> str:
    """Return what to give to git for ``source``: an absolute path, or an https or ssh address.

    Raises:
        UsageError: another kind of address, or one with a secret in it (it would show in process listings).
    """
    if not source or source.startswith("-") or not source.isprintable():
        raise UsageError(f"{source!a} is not the address of a repository")
    if "://" in source:
        return _url(source)
    if source.startswith(("/", ".")) or not _SSH_SHORT.fullmatch(source) or Path(source).exists():
        return str(Path(source).absolute())
    return source


def _url(source: str) -> str:
    try:
        parts = urlsplit(source)
    except ValueError as error:
        raise UsageError(f"the address of the repository cannot be read: {error}") from error
    if parts.password is not None or (parts.scheme == "https" and parts.username is not None):
        raise UsageError(
            f"the address of the repository at {parts.hostname} holds a user name or password, which every user of "
            "this machine could read; use ssh, or a local clone that you update yourself"
        )
    if parts.scheme == "file" and not parts.netloc:
        return unquote(parts.path)
    if parts.scheme not in {"https", "ssh"} or not parts.hostname:
        raise UsageError(f"{parts.scheme}:// repositories are not read; use https, ssh or a local path")
    return source
