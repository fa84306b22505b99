"""Files on a shared filesystem: publish once, replace a cache, read in spite of NFS, probe what a mount can do.

Facts behind each choice stand in docs/on-disk.md; in short: ``link()`` of a complete temp file is atomic and
exclusive, rename-replace is for caches only, and a missing file is believed only after its folder was listed again.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from outerloop_hpc import effects
from outerloop_hpc.errors import FilesystemUnfit, TryLater

_TEMP_PREFIX = ".tmp-"
_INNER = "document"
_LINK_REFUSED = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EACCES}
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EROFS}


def nonce() -> str:
    """Return 16 random hex digits; tells our own document from another's after a lost reply."""
    return os.urandom(8).hex()


def umask() -> int:
    """Return the process's umask without the usual set-and-restore race."""
    with suppress(OSError, ValueError):
        for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
            if line.startswith("Umask:"):
                return int(line.split()[1], 8)
    value = os.umask(0o077)
    os.umask(value)
    return value


def sync_folder(folder: Path) -> None:
    """Make a folder's entries durable; some filesystems refuse this and lose nothing by it."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(folder: Path, *, private: bool = False) -> None:
    """Make a folder and its parents; ``private`` ones (pickles, keys, session homes) are 0700.

    Raises:
        TryLater: the filesystem is full, read-only or over quota.
    """
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    if private and folder.stat().st_mode & 0o077:
        folder.chmod(0o700)


def publish(path: Path, data: bytes) -> bool:
    """Publish a complete document under ``path`` unless the name is taken; the first writer wins.

    Returns:
        True when the document under ``path`` is this one (also after a lost reply: equal bytes, so put a nonce
        into documents that must be told apart); False when somebody else's is there.

    Raises:
        TryLater: the filesystem is full, read-only or over quota. Nothing was published.
        FilesystemUnfit: neither links nor exclusive folders are possible here.
    """
    return effects.perform("publish", str(path), lambda: _publish(path, data))


def _publish(path: Path, data: bytes) -> bool:
    temp = path.parent / f"{_TEMP_PREFIX}{nonce()}"
    try:
        _write_durably(temp, data)
        try:
            os.link(temp, path)
        except FileExistsError:
            return read(path) == data
        except OSError as error:
            if error.errno not in _LINK_REFUSED:
                raise
            return _publish_folder(path, data)
        sync_folder(path.parent)
    except OSError as error:
        raise _as_try_later(error, path) from error
    else:
        return True
    finally:
        with suppress(OSError):
            temp.unlink(missing_ok=True)


def _publish_folder(path: Path, data: bytes) -> bool:
    """Publish without links: a non-empty folder cannot be renamed over another one, so the name is exclusive too."""
    staging = path.parent / f"{_TEMP_PREFIX}{nonce()}"
    staging.mkdir()
    try:
        _write_durably(staging / _INNER, data)
        try:
            if path.exists():
                return read(path) == data
            staging.rename(path)
        except OSError as error:
            if error.errno in {errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR}:
                return read(path) == data
            if error.errno == errno.ENOENT and path.exists():  # renamed by a request whose reply was lost
                return read(path) == data
            if error.errno in _FULL:
                raise
            raise FilesystemUnfit(
                f"{path.parent}: neither hard links nor exclusive folder renames work here ({error.strerror}); "
                "put the state folder on another filesystem, see `outerloop-hpc doctor`"
            ) from error
        sync_folder(path.parent)
        return True
    finally:
        with suppress(OSError):
            (staging / _INNER).unlink(missing_ok=True)
            staging.rmdir()


def replace(path: Path, data: bytes, *, mode: int | None = None) -> None:
    """Replace a cache or a rendering, whole or not at all. Never a claim: the last writer wins.

    Raises:
        TryLater: the filesystem is full, read-only or over quota. The old content stays.
    """
    effects.perform("replace", str(path), lambda: _replace(path, data, mode))


def _replace(path: Path, data: bytes, mode: int | None) -> None:
    temp = path.parent / f"{_TEMP_PREFIX}{nonce()}"
    try:
        _write_durably(temp, data, mode)
        temp.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        with suppress(OSError):
            temp.unlink(missing_ok=True)
        raise _as_try_later(error, path) from error


def remove(path: Path) -> None:
    """Remove a document, however it was published; gone already is fine.

    Raises:
        TryLater: the filesystem is read-only.
    """
    effects.perform("remove", str(path), lambda: _remove(path))


def _remove(path: Path) -> None:
    with writing(path), suppress(FileNotFoundError):
        if path.is_dir() and not path.is_symlink():
            content(path).unlink(missing_ok=True)
            path.rmdir()
        else:
            path.unlink()


def content(path: Path) -> Path:
    """Return the file that holds a document's bytes: where links are refused, the published name is a folder."""
    return path / _INNER if path.is_dir() else path


def _write_durably(path: Path, data: bytes, mode: int | None = None) -> None:
    # Group readers need the umask's rights: a 0600 temp file would hide the record it becomes.
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if mode is None else mode)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _as_try_later(error: OSError, path: Path) -> Exception:
    if error.errno in _FULL:
        mend = "let it be written to again" if error.errno == errno.EROFS else "free space"
        return TryLater(f"{path}: cannot be written: {error.strerror}; nothing was lost, {mend} and run again")
    return error


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Say that a filesystem is full or read-only in the words of this tool; raises TryLater then."""
    try:
        yield
    except OSError as error:
        raise _as_try_later(error, path) from error


def read(path: Path) -> bytes:
    """Read a whole document; re-opens after ESTALE, and once after ENOENT when its folder still lists it.

    Raises:
        FileNotFoundError: it is not there.
    """
    for attempt in range(3):
        try:
            return _read_once(path)
        except FileNotFoundError:
            if attempt or path.name not in names(path.parent):
                raise
        except OSError as error:
            if error.errno != errno.ESTALE or attempt == 2:  # noqa: PLR2004 - the last of three
                raise
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))


def _read_once(path: Path) -> bytes:
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - no pathlib layer in the hot path
            return file.read() or b""
    except IsADirectoryError:
        return (path / _INNER).read_bytes()


def names(folder: Path | str) -> list[str]:
    """List a folder's published entries, sorted, without half-written temp files; no folder is an empty list."""
    try:
        found = os.listdir(folder)  # noqa: PTH208 - a pass lists thousands of folders
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted([name for name in found if not name.startswith(_TEMP_PREFIX)])


@dataclass(frozen=True, slots=True)
class Probe:
    """What a folder's filesystem was seen to do.

    Attributes:
        link: hard links work and refuse a taken name.
        folder_rename: renaming a folder refuses a taken, non-empty name.
        rename: a file replaces another atomically.
        sync: a file and its folder can be fsynced.
        failures: one line for each probe that failed, with the error.
        full: a probe failed for want of space or since nothing may be written, which says nothing about the rest.
    """

    link: bool
    folder_rename: bool
    rename: bool
    sync: bool
    failures: tuple[str, ...]
    full: bool = False

    @property
    def exclusive(self) -> bool:
        """Whether anything here is exclusive; without it the tool refuses to run."""
        return self.link or self.folder_rename


def probe(folder: Path) -> Probe:
    """Try links, renames and fsync in ``folder``; leaves nothing behind."""
    failures: list[str] = []
    full = False
    stage = folder / f"{_TEMP_PREFIX}probe-{nonce()}"
    stage.mkdir(parents=True)
    checks = {
        "link": _probe_link,
        "folder_rename": _probe_folder_rename,
        "rename": _probe_rename,
        "sync": _probe_sync,
    }
    results: dict[str, bool] = {}
    try:
        for name, check in checks.items():
            try:
                problem = check(stage)
            except OSError as error:
                problem = error.strerror or str(error)
                full = full or error.errno in _FULL
            results[name] = problem is None
            if problem is not None:
                failures.append(f"{name}: {problem}")
    finally:
        _clear(stage)
    return Probe(results["link"], results["folder_rename"], results["rename"], results["sync"], tuple(failures), full)


def require_exclusive(folder: Path) -> Probe:
    """Probe ``folder`` and refuse it where nothing is exclusive.

    Raises:
        FilesystemUnfit: with the probes that failed.
        TryLater: it is full or read-only now, so nobody can tell.
    """
    with writing(folder):
        found = probe(folder)
    if not found.exclusive and found.full:
        raise TryLater(f"{folder}: cannot be probed ({'; '.join(found.failures)}); free space and run again")
    if not found.exclusive:
        raise FilesystemUnfit(
            f"{folder}: this filesystem has no exclusive publication ({'; '.join(found.failures)}); "
            "two ticks could buy the same job twice, so put the state folder elsewhere"
        )
    return found


def _probe_link(stage: Path) -> str | None:
    source, target = stage / "a", stage / "b"
    source.write_bytes(b"1")
    os.link(source, target)
    try:
        os.link(source, target)
    except FileExistsError:
        return None
    return "a taken name was linked over"


def _probe_folder_rename(stage: Path) -> str | None:
    for name in ("x", "y"):
        (stage / name).mkdir()
        (stage / name / _INNER).write_bytes(name.encode())
    try:
        (stage / "x").rename(stage / "y")
    except OSError as error:
        if error.errno in {errno.ENOTEMPTY, errno.EEXIST}:
            return None
        raise
    return "a taken folder was renamed over"


def _probe_rename(stage: Path) -> str | None:
    (stage / "new").write_bytes(b"new")
    (stage / "old").write_bytes(b"old")
    (stage / "new").replace(stage / "old")
    return None if (stage / "old").read_bytes() == b"new" else "the old content stayed"


def _probe_sync(stage: Path) -> str | None:
    _write_durably(stage / "synced", b"1")
    sync_folder(stage)
    return None


def _clear(stage: Path) -> None:
    for folder, _, files in os.walk(stage, topdown=False):
        for name in files:
            with suppress(OSError):
                Path(folder, name).unlink()
        with suppress(OSError):
            Path(folder).rmdir()
