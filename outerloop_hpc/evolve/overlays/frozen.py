"""Frozen overlays: ``<folder>/<digest>/`` with the files, 0400 in folders of 0500, there whole or not at all."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from outerloop_hpc import effects, fsio
from outerloop_hpc.engine.clearing import remove
from outerloop_hpc.errors import TryLater
from outerloop_hpc.evolve.overlays import descent
from outerloop_hpc.evolve.overlays.overlay import MOST_BYTES, MOST_FILES, IntegrityFault, Overlay

_TAKEN = {errno.EEXIST, errno.ENOTEMPTY}
_MOST_ENTRIES = MOST_FILES * 8
_FILE, _FOLDER = 0o400, 0o500


def freeze(overlay: Overlay, into: Path) -> Path:
    """Freeze an overlay under its digest; there already, it is checked and kept.

    Args:
        overlay: a candidate.
        into: the folder of all frozen ones; made when it is missing.

    Returns:
        Its folder.

    Raises:
        IntegrityFault: something else is under that digest.
        TryLater: the filesystem is full, read-only, or does not answer; nothing was frozen.
    """
    place = into / overlay.digest
    fsio.make_folder(into)
    if not place.is_dir():
        effects.perform("freeze", str(place), lambda: _freeze(overlay, place))
    load(place)
    return place


def _freeze(overlay: Overlay, place: Path) -> None:
    staging = place.parent / f".tmp-{fsio.nonce()}"
    try:
        _fill(overlay, staging)
        staging.rename(place)
        fsio.sync_folder(place.parent)
    except OSError as error:
        # Somebody was first: theirs stays, and is checked as ours would be.
        if error.errno not in _TAKEN:
            raise TryLater(f"{place}: cannot be frozen: {error.strerror}; free space there and run again") from error
    finally:
        remove(staging, lambda: False)


def _fill(overlay: Overlay, staging: Path) -> None:
    staging.mkdir()
    for path, data in overlay.files.items():
        target = staging / path
        target.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, _FILE)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(file.fileno(), _FILE)
            os.fsync(file.fileno())
    for folder, _, _ in os.walk(staging, topdown=False):
        fsio.sync_folder(Path(folder))
        Path(folder).chmod(_FOLDER)


def load(place: Path, expected: str = "") -> Overlay:
    """Read a frozen overlay and make sure that it still is what it was.

    Args:
        place: its folder.
        expected: its digest; the folder's name unless told.

    Raises:
        IntegrityFault: it is not; the text says which one, and what it is now.
        TryLater: it is not to be seen or read here now; a shared filesystem may show it later.
    """
    wanted = expected or place.name
    try:
        found = _read(place)
    except descent.Strange as strange:
        raise IntegrityFault(
            f"{place}: the frozen overlay {wanted[:16]} was tampered with: {strange}; nothing was measured with it, "
            "find out who writes there"
        ) from strange
    except OSError as error:
        raise TryLater(f"{place}: the frozen overlay cannot be read here: {error.strerror}; run again") from error
    if found.digest != wanted:
        raise IntegrityFault(
            f"{place}: the frozen overlay {wanted[:16]} now has the digest {found.digest[:16]} "
            f"({len(found.files)} files, {found.size} bytes: {_named(found)}); nothing was measured with it, "
            "find out who writes there"
        )
    return found


def _read(place: Path) -> Overlay:
    files: dict[str, bytes] = {}
    room = MOST_BYTES
    with descent.opened(place) as root:
        for path in descent.files(root, _MOST_ENTRIES):
            with descent.folder_of(root, path) as (parent, name):
                files[path], _ = descent.content(parent, name, path, room)
            room -= len(files[path])
    return Overlay(files)


def _named(found: Overlay) -> str:
    names = [ascii(path) for path in found.files]
    return ", ".join(names[:5]) + (", …" if len(names) > 5 else "")  # noqa: PLR2004 - enough to see what it is
