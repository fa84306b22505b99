"""Write the tree of a commit into a folder: exactly its bytes, proven by computing the tree's id from the disk.

Git's own ways out are not used: a checkout applies filters, line endings and ident, an archive drops `export-ignore`
paths and rewrites `export-subst` ones, all at the wish of the tree itself.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from outerloop_hpc import effects
from outerloop_hpc.errors import NodeUnfit, TryLater, UsageError
from outerloop_hpc.target.repository import BlobStream, Repository
from outerloop_hpc.target.scope import folded
from outerloop_hpc.target.tree import FILE, GITLINK, PROGRAM, SYMLINK, Entry, algorithm_of, object_hash, tree_id

_NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.ESTALE}


class NoRoom(TryLater, NodeUnfit):
    """The disk that a tree is exported to is full; that of another node may not be."""


def export(repository: Repository, commit: str, folder: Path) -> str:
    """Write a commit's tree into ``folder``, which must not exist or be empty.

    Files get the rights of the umask, programs also the right to run. Symbolic links are kept when they stay inside.

    Returns:
        The tree's full id, computed from what is on disk afterwards.

    Raises:
        UsageError: the folder is in use, or the tree cannot be exported safely (submodules, links that leave,
            names that a filesystem confuses); the folder is as before.
        TryLater: the disk is full or does not answer, or git stopped; the folder is as before.
    """
    entries = repository.entries(commit)
    wanted = repository.tree(commit)
    _refuse_unsafe(entries, commit)
    if tree_id(entries, algorithm_of(wanted)) != wanted:
        raise UsageError(
            f"commit {commit[:12]} cannot be exported: its tree {wanted[:12]} holds modes that git no longer writes "
            "(such as 100664), so no copy of it can be proven; commit those files anew"
        )
    effects.perform("export", str(folder), lambda: _fill(repository, entries, folder, wanted))
    return wanted


def _fill(repository: Repository, entries: tuple[Entry, ...], folder: Path, wanted: str) -> None:
    made = _claim(folder)
    try:
        _write(repository, entries, folder)
        _prove(folder, wanted)
    except BaseException as error:
        _clear(folder, remove=made)
        if isinstance(error, OSError):
            raise _explained(error, folder) from error
        raise


def folder_tree_id(folder: Path, algorithm: str = "sha1") -> str:
    """Compute the git tree id of what is in ``folder``; empty folders do not count, as in git.

    Args:
        folder: an exported tree (a `.git` in it would count as content).
        algorithm: ``sha1`` or ``sha256``.

    Raises:
        UsageError: there is something that git cannot store, such as a socket.
    """
    return tree_id(_found(folder, algorithm), algorithm)


def _prove(folder: Path, wanted: str) -> None:
    if folder_tree_id(folder, algorithm_of(wanted)) != wanted:
        raise UsageError(
            f"{folder}: the tree {wanted[:12]} did not arrive unchanged; does this filesystem confuse letter case, "
            "Unicode forms or execute rights?"
        )


def _refuse_unsafe(entries: tuple[Entry, ...], commit: str) -> None:
    # A forged tree may hold one name twice, as a link and as a folder: what lies "in" the folder would be written
    # through the link.
    links = {folded(entry.path) for entry in entries if entry.mode == SYMLINK}
    for entry in entries:
        parts = folded(entry.path)
        if entry.mode == GITLINK:
            problem = "is a submodule, which has no content here"
        elif any(part in {"", ".", "..", ".git"} for part in parts):
            problem = "is no path that may be written"
        elif links and any(parts[:depth] in links for depth in range(1, len(parts))):
            problem = "lies beneath a symbolic link of the same tree"
        else:
            continue
        raise UsageError(f"commit {commit[:12]} cannot be exported: {entry.path!a} {problem}")


def _claim(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        if not folder.is_dir() or folder.is_symlink() or any(folder.iterdir()):
            raise UsageError(f"{folder}: is not an empty folder; a tree is exported into a fresh one") from None
        return False
    except OSError as error:
        raise _explained(error, folder) from error
    return True


def _write(repository: Repository, entries: tuple[Entry, ...], folder: Path) -> None:
    # Links come last: while files are written nothing in the folder can lead out of it.
    with repository.blobs() as blobs:
        for entry in entries:
            if entry.mode != SYMLINK:
                _write_file(blobs, entry, folder)
        for entry in entries:
            if entry.mode == SYMLINK:
                _write_link(blobs, entry, folder)
    root = Path(os.path.realpath(folder))
    for entry in entries:
        if entry.mode == SYMLINK and not Path(os.path.realpath(folder / entry.path)).is_relative_to(root):
            raise UsageError(f"{entry.path!a} is a symbolic link that leaves the tree; it is not exported")


def _write_file(blobs: BlobStream, entry: Entry, folder: Path) -> None:
    path = folder / entry.path
    path.parent.mkdir(parents=True, exist_ok=True)
    rights = 0o777 if entry.mode == PROGRAM else 0o666
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, rights)
    with os.fdopen(descriptor, "wb") as file:
        blobs.copy(entry.object_id, file)


def _write_link(blobs: BlobStream, entry: Entry, folder: Path) -> None:
    path = folder / entry.path
    path.parent.mkdir(parents=True, exist_ok=True)
    content = blobs.content(entry.object_id)
    if not content or content.startswith(b"/") or b"\0" in content:
        raise UsageError(f"{entry.path!a} is a symbolic link that leaves the tree; it is not exported")
    path.symlink_to(os.fsdecode(content))


def _found(folder: Path, algorithm: str) -> Iterator[Entry]:
    pending = [""]
    while pending:
        prefix = pending.pop()
        with os.scandir(folder / prefix) as children:
            for child in children:
                path = f"{prefix}{child.name}"
                if child.is_dir(follow_symlinks=False):
                    pending.append(f"{path}/")
                else:
                    yield _leaf(child, path, algorithm)


def _leaf(child: os.DirEntry[str], path: str, algorithm: str) -> Entry:
    if child.is_symlink():
        target = os.readlink(os.fsencode(child.path))  # noqa: PTH115 - a Path would normalise the target

        return Entry(path, SYMLINK, object_hash("blob", len(target), algorithm, target).hexdigest())
    status = child.stat(follow_symlinks=False)
    if not stat.S_ISREG(status.st_mode):
        raise UsageError(f"{child.path} is neither file, folder nor link; git cannot store it")
    digest = object_hash("blob", status.st_size, algorithm)
    with Path(child.path).open("rb") as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
    return Entry(path, PROGRAM if status.st_mode & stat.S_IXUSR else FILE, digest.hexdigest())


def _clear(folder: Path, *, remove: bool) -> None:
    if remove:
        shutil.rmtree(folder, ignore_errors=True)
        return
    for child in folder.iterdir():
        if child.is_dir() and not child.is_symlink():
            shutil.rmtree(child, ignore_errors=True)
        else:
            with suppress(OSError):
                child.unlink()


def _explained(error: OSError, folder: Path) -> Exception:
    text = f"{folder}: the tree cannot be written: {error.strerror or error}"
    if error.errno in _NO_SPACE:
        return NoRoom(f"{text}; free space there, or use another scratch folder, and run again")
    return UsageError(f"{text} ({error.filename!a})")
