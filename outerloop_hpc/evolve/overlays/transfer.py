"""Take an overlay out of a folder that a proposer wrote, and lay it into a checkout; through no link on either side."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from outerloop_hpc import effects, fsio
from outerloop_hpc.errors import TryLater
from outerloop_hpc.evolve.overlays import descent
from outerloop_hpc.evolve.overlays.overlay import InvalidOverlay, Overlay, check
from outerloop_hpc.evolve.work import Copy, OverlayRules
from outerloop_hpc.target.scope import path_problem

#: Folders count as entries, too; so many for each file that is allowed.
_ENTRIES_PER_FILE = 4
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def collect(folder: Path, rules: OverlayRules, base: Mapping[str, str], copies: Sequence[Copy] = ()) -> Overlay:
    """Read what a proposer left, and make sure that it is a candidate.

    Args:
        folder: what it wrote, its paths those of the repository. Nobody writes there any more.
        rules: of the sweep.
        base: sha256 of each incumbent file that the rules allow, by path.
        copies: of the sweep.

    Raises:
        InvalidOverlay: there is no such folder, or what is in it breaks the rules; the text says every reason.
        TryLater: it cannot be read now.
    """
    found = read(folder, rules)
    check(found, rules, base, copies)
    return found


def read(folder: Path, rules: OverlayRules) -> Overlay:
    """Read the files of a folder, within the bounds of the rules; whether they are a candidate is not asked.

    Raises:
        InvalidOverlay: there is no such folder, something in it is no regular file, or it is too large.
        TryLater: it cannot be read now.
    """
    try:
        return _read(folder, rules)
    except FileNotFoundError as error:
        raise InvalidOverlay([f"{folder.name!a} is not there, or lost files while it was read"]) from error
    except descent.Strange as strange:
        raise InvalidOverlay([str(strange)]) from strange
    except PermissionError as error:
        # Whoever wrote it closed it; asked again, it would be as closed.
        named = os.fspath(error.filename or folder.name)
        raise InvalidOverlay([f"{named!a} cannot be opened: its rights do not allow it"]) from error
    except OSError as error:
        raise TryLater(f"{folder}: cannot be read: {error.strerror}; run again") from error


def _read(folder: Path, rules: OverlayRules) -> Overlay:
    """Read every file, in bounds; all that is no regular file is one refusal."""
    files: dict[str, bytes] = {}
    strange: list[str] = []
    room = rules.max_bytes
    with descent.opened(folder) as root:
        for path in descent.files(root, rules.max_files * _ENTRIES_PER_FILE):
            with descent.folder_of(root, path) as (parent, name):
                try:
                    files[path], _ = descent.content(parent, name, path, room)
                except descent.Strange as one:
                    strange.append(str(one))
                    continue
                room -= len(files[path])
    if strange:
        raise InvalidOverlay(strange)
    return Overlay(files)


def lay(overlay: Overlay, checkout: Path) -> None:
    """Write an overlay into a checkout; a file that is there keeps its mode, a new one gets the umask's.

    Raises:
        InvalidOverlay: something there is in the way: a link, or a file for a folder or the reverse.
        TryLater: the disk is full or does not answer; the checkout is half written then and has to go.
    """
    effects.perform("lay", str(checkout), lambda: _lay(overlay, checkout))


def _lay(overlay: Overlay, checkout: Path) -> None:
    leaving = [f"{path!a} {reason}" for path in overlay.files if (reason := path_problem(path)) is not None]
    if leaving:
        raise InvalidOverlay(leaving)
    try:
        with descent.opened(checkout) as root:
            for path, data in overlay.files.items():
                with descent.folder_of(root, path, make=True) as (parent, name):
                    _put(parent, name, path, data)
    except descent.Strange as strange:
        raise InvalidOverlay([str(strange)]) from strange
    except OSError as error:
        raise TryLater(f"{checkout}: the overlay cannot be laid into it: {error.strerror}; run again") from error


def _put(parent: int, name: str, path: str, data: bytes) -> None:
    """Put a file in the place of another; a name that also stands elsewhere keeps its bytes there."""
    mode = None
    with suppress(FileNotFoundError):
        there = os.stat(name, dir_fd=parent, follow_symlinks=False)
        if not stat.S_ISREG(there.st_mode):
            raise descent.Strange(path, "is a symbolic link" if stat.S_ISLNK(there.st_mode) else "is no regular file")
        mode = stat.S_IMODE(there.st_mode)
    temp = f".tmp-{fsio.nonce()}"
    descriptor = os.open(temp, _NEW, 0o666, dir_fd=parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            if mode is not None:
                os.fchmod(file.fileno(), mode)
        os.rename(temp, name, src_dir_fd=parent, dst_dir_fd=parent)
    except BaseException:
        with suppress(OSError):
            os.unlink(temp, dir_fd=parent)
        raise


def differing(overlay: Overlay, checkout: Path) -> tuple[str, ...]:
    """Return the paths at which a checkout does not hold the overlay's bytes (any more).

    Raises:
        TryLater: it cannot be read now.
    """
    wrong: list[str] = []
    try:
        with descent.opened(checkout) as root:
            for path, data in overlay.files.items():
                try:
                    with descent.folder_of(root, path) as (parent, name):
                        same = descent.content(parent, name, path, len(data))[0] == data
                except (FileNotFoundError, descent.Strange):
                    same = False
                if not same:
                    wrong.append(path)
    except descent.Strange:
        return tuple(overlay.files)
    except OSError as error:
        raise TryLater(f"{checkout}: cannot be read: {error.strerror}; run again") from error
    return tuple(wrong)
