"""What git prints about trees, as values, and the id that a tree must have. Pure.

Paths are text as Python's filesystem encoding gives it: bytes that are not UTF-8 become lone surrogates, so nothing
is lost and nothing raises.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from outerloop_hpc.errors import OuterloopError

FILE = 0o100644
PROGRAM = 0o100755
SYMLINK = 0o120000
GITLINK = 0o160000
_FOLDER = 0o040000
_ENTRY = re.compile(rb"([0-7]{6}) (\w+) ([0-9a-f]{40,64})\t(.+)", re.DOTALL)
_CHANGE = re.compile(rb":([0-7]{6}) ([0-7]{6}) [0-9a-f]{40,64} [0-9a-f]{40,64} ([A-Z])[0-9]*")
_OBJECT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")


@dataclass(frozen=True, slots=True)
class Entry:
    """One leaf of a tree: a file, program, symbolic link or submodule.

    Attributes:
        path: from the root of the repository, with slashes.
        mode: as git stores it, for example ``0o100644``.
        object_id: full hex id of the content (of the commit, for a submodule).
    """

    path: str
    mode: int
    object_id: str


@dataclass(frozen=True, slots=True)
class Change:
    """One path that differs between two trees; a rename is a deletion and an addition.

    Attributes:
        path: from the root of the repository, with slashes.
        old_mode: mode before, 0 when it was not there.
        new_mode: mode after, 0 when it is gone.
        status: git's letter: A, M, D or T.
    """

    path: str
    old_mode: int
    new_mode: int
    status: str

    @property
    def deleted(self) -> bool:
        """Whether the path is gone afterwards."""
        return self.new_mode == 0


def is_object_id(text: str) -> bool:
    """Whether ``text`` is a full SHA-1 or SHA-256 object id."""
    return _OBJECT.fullmatch(text) is not None


def algorithm_of(object_id: str) -> str:
    """Return the hash behind an object id: ``sha1`` (40 digits) or ``sha256`` (64)."""
    return "sha1" if len(object_id) == 40 else "sha256"  # noqa: PLR2004 - the width is the format


def parse_entries(output: bytes) -> tuple[Entry, ...]:
    """Read the output of ``git ls-tree -r -z``.

    Raises:
        OuterloopError: a record has another form (a truncated answer, an unknown git).
    """
    return tuple(_entry(record) for record in _records(output))


def _entry(record: bytes) -> Entry:
    match = _ENTRY.fullmatch(record)
    if match is None:
        raise OuterloopError(f"git ls-tree printed a record that cannot be read: {record[:80]!a}")
    return Entry(os.fsdecode(match[4]), int(match[1], 8), match[3].decode())


def parse_changes(output: bytes) -> tuple[Change, ...]:
    """Read the output of ``git diff-tree -r -z --raw --no-renames`` between two commits.

    Raises:
        OuterloopError: a record has another form (a truncated answer, an unknown git).
    """
    records = _records(output)
    if len(records) % 2:
        raise OuterloopError("git diff-tree printed half a record; nothing may be concluded from it")
    return tuple(_change(*pair) for pair in zip(records[::2], records[1::2], strict=True))


def _change(header: bytes, path: bytes) -> Change:
    match = _CHANGE.fullmatch(header)
    if match is None or not path:
        raise OuterloopError(f"git diff-tree printed a record that cannot be read: {header[:80]!a}")
    return Change(os.fsdecode(path), int(match[1], 8), int(match[2], 8), match[3].decode())


def _records(output: bytes) -> list[bytes]:
    if not output:
        return []
    if not output.endswith(b"\0"):
        raise OuterloopError("git's answer stops in the middle of a record; nothing may be concluded from it")
    return output[:-1].split(b"\0")


def tree_id(entries: Iterable[Entry], algorithm: str) -> str:
    """Compute the id of the tree with exactly these leaves, as ``git write-tree`` would.

    Args:
        entries: leaves in any order.
        algorithm: ``sha1`` or ``sha256``, the repository's object format.
    """
    folders: dict[tuple[str, ...], list[tuple[bytes, int, str]]] = defaultdict(list)
    folders[()] = []
    for entry in entries:
        *parents, name = entry.path.split("/")
        folders[tuple(parents)].append((os.fsencode(name), entry.mode, entry.object_id))
        for depth in range(len(parents)):
            folders.setdefault(tuple(parents[:depth]), [])
    for folder in sorted(folders, key=len, reverse=True):
        digest = _folder_id(folders[folder], algorithm)
        if not folder:
            return digest
        folders[folder[:-1]].append((os.fsencode(folder[-1]), _FOLDER, digest))
    raise AssertionError("unreachable: the root sorts last")


def _folder_id(children: list[tuple[bytes, int, str]], algorithm: str) -> str:
    # git sorts a folder's name as if it ended with a slash.
    ordered = sorted(children, key=lambda child: child[0] + b"/" * (child[1] == _FOLDER))
    body = b"".join(b"%o %s\0%s" % (mode, name, bytes.fromhex(digest)) for name, mode, digest in ordered)
    return object_hash("tree", len(body), algorithm, body).hexdigest()


def object_hash(kind: str, size: int, algorithm: str, content: bytes = b"") -> hashlib._Hash:
    """Begin the hash of a git object; the caller may feed the content in pieces.

    Args:
        kind: ``blob`` or ``tree``.
        size: length of the whole content in bytes.
        algorithm: ``sha1`` or ``sha256``.
        content: the first or only piece.
    """
    digest = hashlib.new(algorithm, usedforsecurity=False)
    digest.update(b"%s %d\0" % (kind.encode(), size))
    digest.update(content)
    return digest
