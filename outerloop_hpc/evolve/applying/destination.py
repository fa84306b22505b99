"""One file of a working tree that an applied candidate is written to: looked at, staged, exchanged, and put back.

What was done is never remembered but seen from the files, so that putting back works after any interruption.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Literal

from pydantic import Field

from outerloop_hpc.documents import Value
from outerloop_hpc.evolve.applying.exchange import Exchange
from outerloop_hpc.evolve.overlays import descent

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
#: ``missing``: it was there at submit. ``unexpected``: it was not. ``drifted``: it has other bytes, or is no file.
Difference = Literal["missing", "unexpected", "drifted"]


class Destination(Value):
    """Where one file of a candidate goes.

    Attributes:
        path: in the working tree.
        candidate: sha256 of what is to stand there.
        expected: sha256 of what stood there at submit; None for a new file.
        spare: name beside it: first of the candidate's bytes, then of what was there.
        aside: a further name beside it, where the exchange takes several steps.
    """

    path: str
    candidate: str = Field(pattern=r"^[0-9a-f]{64}$")
    expected: str | None = None
    spare: str
    aside: str


@dataclass
class Tree:
    """The working tree, open; a folder that was opened once is held, whatever its name means later."""

    root: int
    exchange: Exchange
    _held: dict[str, int] = field(default_factory=dict)

    def close(self) -> None:
        """Let all folders go."""
        for descriptor in self._held.values():
            os.close(descriptor)
        self._held.clear()

    def hold(self, to: Destination) -> tuple[int, str]:
        """Return the folder that a destination lies in, open, and its name there.

        Raises:
            FileNotFoundError: a folder on the way is missing.
            Strange: a part of the way is a link or no folder.
        """
        folder, _, name = to.path.rpartition("/")
        if folder not in self._held:
            with descent.folder_of(self.root, to.path) as (descriptor, _):
                self._held[folder] = os.dup(descriptor)
        return self._held[folder], name

    def missing_folders(self, places: Sequence[Destination]) -> tuple[str, ...]:
        """Return the folders that new files need, outer ones first."""
        wanted = dict.fromkeys(folder for one in places if one.expected is None for folder in _heads(one.path))
        missing: list[str] = []
        for folder in wanted:
            try:
                with descent.folder_of(self.root, folder) as (parent, name):
                    os.stat(name, dir_fd=parent, follow_symlinks=False)
            except FileNotFoundError:
                missing.append(folder)
        return tuple(missing)

    def make_folders(self, folders: Sequence[str]) -> None:
        """Make folders that are missing."""
        for folder in folders:
            with descent.folder_of(self.root, folder) as (parent, name), suppress(FileExistsError):
                os.mkdir(name, dir_fd=parent)

    def remove_folders(self, folders: Sequence[str]) -> None:
        """Remove those that are empty; somebody else's file keeps its folder."""
        for folder in reversed(folders):
            with suppress(OSError, descent.Strange), descent.folder_of(self.root, folder) as (parent, name):
                os.rmdir(name, dir_fd=parent)

    def difference(self, to: Destination) -> tuple[Difference, str] | None:
        """Say how a destination differs from what it was at submit, and why; None when it does not.

        It is looked up anew, so that a folder that was replaced is noticed.
        """
        try:
            with descent.folder_of(self.root, to.path) as (descriptor, name):
                now = descent.digest(descriptor, name, to.path)
                same = os.path.samestat(os.fstat(descriptor), os.fstat(self.hold(to)[0]))
        except FileNotFoundError:
            return None if to.expected is None else ("missing", "is not there any more")
        except descent.Strange as strange:
            return ("unexpected" if to.expected is None else "drifted"), strange.reason
        if to.expected is None:
            return "unexpected", "is there, and was not at submit"
        if not same:
            return "drifted", "lies in a folder that was replaced meanwhile"
        return None if now == to.expected else ("drifted", "has other bytes than at submit")

    def stage(self, to: Destination, data: bytes) -> None:
        """Write the candidate's bytes under the spare name, with the rights of the file whose place they take."""
        folder, name = self.hold(to)
        descriptor = os.open(to.spare, _NEW, 0o666, dir_fd=folder)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                if to.expected is not None:
                    _like(file.fileno(), os.stat(name, dir_fd=folder, follow_symlinks=False))
                os.fsync(file.fileno())
        except BaseException:
            _clear(folder, to.spare)
            raise

    def put(self, to: Destination) -> None:
        """Let the candidate take its place; raises OSError when it cannot or somebody else was there meanwhile."""
        folder, name = self.hold(to)
        if to.expected is None:
            self.exchange.place(folder, name, to.spare)
        else:
            self.exchange.swap(folder, name, to.spare, to.aside)

    def parity(self, to: Destination) -> str | None:
        """Say what is not as it must be after the exchange; None when the candidate replaced what was expected."""
        folder, name = self.hold(to)
        now = self._digest(folder, name)
        if now != to.candidate:
            return "does not hold the candidate's bytes"
        if to.expected is None:
            return None
        if self._digest(folder, to.spare) != to.expected:
            return "was written by somebody else in the same moment"
        modes = {stat.S_IMODE(os.stat(one, dir_fd=folder).st_mode) for one in (name, to.spare)}
        return None if len(modes) == 1 else "changed its rights in the same moment"

    def undo(self, to: Destination) -> str | None:
        """Put back what was there and clear the names beside it; say what could not be, None when all is as before."""
        try:
            folder, name = self.hold(to)
        except (OSError, descent.Strange) as error:
            return (
                None if to.expected is None and isinstance(error, FileNotFoundError) else f"cannot be opened: {error}"
            )
        try:
            return self._undone(to, folder, name)
        except OSError as error:
            return f"cannot be put back: {error.strerror or error}"

    def settle(self, to: Destination) -> None:
        """Clear the names beside a destination that was exchanged, and make it durable."""
        folder, _ = self.hold(to)
        for beside in (to.spare, to.aside):
            _clear(folder, beside)
        with suppress(OSError):
            os.fsync(folder)

    def _undone(self, to: Destination, folder: int, name: str) -> str | None:
        original, now = self._original(to, folder, name), self._digest(folder, name)
        if original is None:
            if to.expected is None and now == to.candidate and self._placed(to, folder, name):
                return self._removed(to, folder, name)
        elif now is None:
            self.exchange.place(folder, name, original)
        elif now == to.candidate:
            free = to.aside if original == to.spare else to.spare
            _clear(folder, free)  # at most another name of the candidate
            self.exchange.swap(folder, name, original, free)
            if self._digest(folder, original) != to.candidate:
                self.exchange.swap(folder, name, original, free)
                return f"was written by somebody else meanwhile, so that stays; what was there before is {original!r}"
        else:
            return f"holds what somebody else wrote meanwhile, so that stays; what was there before is {original!r}"
        self.settle(to)
        return None

    def _original(self, to: Destination, folder: int, name: str) -> str | None:
        """Return the name under which what was there is now; None when it is in its place, or there was nothing."""
        if to.expected is not None and self._digest(folder, name) == to.expected:
            return None
        beside = {one: self._digest(folder, one) for one in (to.aside, to.spare)}
        return next((one for one, digest in beside.items() if digest not in {None, to.candidate}), None)

    @staticmethod
    def _placed(to: Destination, folder: int, name: str) -> bool:
        """Whether a new file with the candidate's bytes is the one that was staged, and not somebody else's."""
        try:
            spare = os.stat(to.spare, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            return True
        return os.path.samestat(spare, os.stat(name, dir_fd=folder, follow_symlinks=False))

    def _removed(self, to: Destination, folder: int, name: str) -> str | None:
        """Take a new file away again, unless somebody else wrote it in that moment."""
        os.rename(name, to.aside, src_dir_fd=folder, dst_dir_fd=folder)
        if self._digest(folder, to.aside) != to.candidate:
            self.exchange.place(folder, name, to.aside)
            return "was written by somebody else meanwhile, so that stays"
        self.settle(to)
        return None

    @staticmethod
    def _digest(folder: int, name: str) -> str | None:
        """Return the sha256 of a file; None when there is none, empty for what is none or cannot be read whole."""
        try:
            return descent.digest(folder, name, name)
        except FileNotFoundError:
            return None
        except descent.Strange:
            return ""


def _heads(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:depth]) for depth in range(1, len(parts))]


def _like(descriptor: int, there: os.stat_result) -> None:
    with suppress(OSError):  # a group that is not ours to give
        os.fchown(descriptor, -1, there.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(there.st_mode))


def _clear(folder: int, name: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder)


@contextmanager
def opened(root: int, exchange: Exchange) -> Iterator[Tree]:
    """Use a working tree whose root is open."""
    tree = Tree(root, exchange)
    try:
        yield tree
    finally:
        tree.close()
