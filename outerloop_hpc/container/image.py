"""Images and their digests: what a measurement ran in is a sha256, not a path."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import MutableMapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from outerloop_hpc import fsio
from outerloop_hpc.container.runtime import NotOnThisNode, NotWorkingHere
from outerloop_hpc.documents import Document, load
from outerloop_hpc.errors import ConfigError, Fault, TryLater

_CHUNK = 1 << 20
#: A file changed this recently may change again within the same timestamp, so its digest is not kept.
_SETTLED_NS = 2_000_000_000


@dataclass(frozen=True, slots=True)
class ImageRef:
    """One image, by content.

    Attributes:
        path: absolute path of the SIF file.
        sha256: 64 hex digits over the whole file.
    """

    path: Path
    sha256: str


@dataclass(frozen=True, slots=True)
class Identity:
    """What tells two states of a file apart without reading it; a moved or touched file is read again."""

    path: str
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int

    def key(self) -> str:
        """Return a file name for the cache: a digest over all fields."""
        text = "\0".join(map(str, (self.path, self.size, self.mtime_ns, self.ctime_ns, self.inode)))
        return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


class KnownDigest(Document):
    """One cached digest; its file is named by ``Identity.key``."""

    name: ClassVar[str] = "image-digest"

    key: str
    path: str
    sha256: str


class OtherImage(ConfigError):  # noqa: N818 - states the finding
    """An image is not the one that was asked for. Text: both digests, and what to do."""


_memory: dict[Identity, str] = {}


def identify(path: Path, *, cache: Path | None = None, memory: MutableMapping[Identity, str] = _memory) -> ImageRef:
    """Return the image with its digest, reading the file only when it is not known as it stands.

    Args:
        path: the SIF file; links are followed, the digest belongs to what they point to.
        cache: private folder that keeps digests between processes; made when missing.
        memory: digests of this process.

    Raises:
        ConfigError: no such file, or not a regular file.
        TryLater: the file changed while it was read, or cannot be read now.
    """
    full = path.absolute()
    found = _identity(full)
    sha256 = memory.get(found) or (_recall(cache, found) if cache else None)
    if sha256 is None:
        sha256 = _digest(full)
        if _identity(full) != found:
            raise TryLater(f"{full}: changed while its digest was taken; wait until it is written, then run again")
        if time.time_ns() - max(found.mtime_ns, found.ctime_ns) < _SETTLED_NS:
            return ImageRef(full, sha256)
        if cache:
            _remember(cache, found, sha256)
    memory[found] = sha256
    return ImageRef(full, sha256)


def require(path: Path, sha256: str, *, cache: Path | None = None) -> ImageRef:
    """Return the image if it still is the one that was asked for.

    Raises:
        OtherImage: it is another one.
        ConfigError: it is no regular file.
        TryLater: it cannot be read now.
    """
    found = identify(path, cache=cache)
    if found.sha256 != sha256.lower():
        raise OtherImage(mismatch(found, sha256))
    return found


def mismatch(found: ImageRef, wanted: str) -> str:
    """Say that an image is not the expected one, and what to do."""
    return (
        f"{found.path}: is another image than the run asked for "
        f"(sha256 {found.sha256[:16]}…, expected {wanted[:16]}…); "
        "numbers from both must not be mixed: put the old file back, or start a new run with the new image"
    )


def _identity(path: Path) -> Identity:
    try:
        status = path.stat()
    except FileNotFoundError as error:
        raise NotOnThisNode(
            f"{path}: no such image on {os.uname().nodename}; build one with `outerloop-hpc image build`, "
            "and keep it where every node can read it"
        ) from error
    except OSError as error:
        raise NotWorkingHere(f"{path}: the image cannot be looked at: {error.strerror}") from error
    if not path.is_file():
        raise ConfigError(f"{path}: is not an image file; a SIF file is needed, since a folder has no digest")
    return Identity(str(path), status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


def _digest(path: Path) -> str:
    summed = hashlib.sha256()
    try:
        with path.open("rb", buffering=0) as file:
            while chunk := file.read(_CHUNK):
                summed.update(chunk)
    except OSError as error:
        raise NotWorkingHere(f"{path}: the image cannot be read: {error.strerror}") from error
    return summed.hexdigest()


def _recall(cache: Path, found: Identity) -> str | None:
    # A cache that cannot be read, or was written by somebody else, only costs the time to read the image.
    path = cache / f"{found.key()}.json"
    try:
        if cache.stat().st_mode & 0o022 or path.stat().st_uid != os.getuid():
            return None
        known: KnownDigest = load(KnownDigest, path)
    except (OSError, Fault):
        return None
    return known.sha256 if known.key == found.key() and known.path == found.path else None


def _remember(cache: Path, found: Identity, sha256: str) -> None:
    with suppress(OSError, TryLater):
        fsio.make_folder(cache, private=True)
        document = KnownDigest(key=found.key(), path=found.path, sha256=sha256)
        fsio.replace(cache / f"{found.key()}.json", document.encoded(), mode=0o600)
