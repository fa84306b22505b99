"""System calls that a full or a read-only filesystem refuses below a folder."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

#: What a read-only filesystem refuses, beside opening files for writing.
_MAKING = ("mkdir", "link", "rename", "replace", "unlink", "rmdir")
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def refuse_from_now(what: Mapping[str, Any] | None) -> None:
    """Refuse ``{"full": folder}`` or ``{"read_only": folder}`` in this process to its end; ``None``: nothing."""
    for name, fake in _fakes(what or {}).items():
        setattr(os, name, fake)


def _fakes(what: Mapping[str, Any]) -> dict[str, Callable[..., Any]]:
    if "full" in what:
        folder = Path(what["full"])
        return {"write": _full(os.write, folder), "mkdir": _guarded(os.mkdir, folder, errno.ENOSPC)}
    if "read_only" in what:
        folder = Path(what["read_only"])
        guarded = {name: _guarded(getattr(os, name), folder, errno.EROFS) for name in _MAKING}
        return {**guarded, "open": _read_only(os.open, folder)}
    return {}


def _error(number: int, path: object = None) -> OSError:
    return OSError(number, os.strerror(number), path)


def _below(path: object, folder: Path) -> bool:
    return isinstance(path, str | os.PathLike) and folder in Path(path).parents


def _guarded(real: Callable[..., Any], folder: Path, number: int) -> Callable[..., Any]:
    def guarded(path: Any, *arguments: Any, **keywords: Any) -> Any:
        # The kernel says EEXIST of a folder that is there, and ENOENT of a name that is not, before anything else.
        known = Path(path).exists() != (real.__name__ == "mkdir")
        if known and _below(path, folder):
            raise _error(number, path)
        return real(path, *arguments, **keywords)

    return guarded


def _read_only(real: Callable[..., int], folder: Path) -> Callable[..., int]:
    def opened(path: Any, flags: int, *arguments: Any, **keywords: Any) -> int:
        if flags & _WRITING and _below(path, folder):
            raise _error(errno.EROFS, path)
        return real(path, flags, *arguments, **keywords)

    return opened


def _full(real: Callable[..., int], folder: Path) -> Callable[..., int]:
    def write(descriptor: int, data: Any) -> int:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        if folder in path.parents:
            raise _error(errno.ENOSPC)
        return real(descriptor, data)

    return write
