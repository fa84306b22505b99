"""A working tree, a candidate for it, and ways in which files change places; for tests of apply."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Any

from outerloop_hpc.engine.spec import ResourceAsk
from outerloop_hpc.evolve.applying.exchange import FileExchange
from outerloop_hpc.evolve.gate.policy import GatePolicy, Metric
from outerloop_hpc.evolve.overlays.overlay import Overlay, content_digest
from outerloop_hpc.evolve.work import Copy, Dirs, EvolveWork, OverlayRules, Task

OLD = {"src/a.py": b"old a\n", "src/deep/b.py": b"old b\n", "dist/a.py": b"old a\n"}
CANDIDATE = Overlay({"src/a.py": b"new a\n", "src/deep/b.py": b"new b\n", "src/more/deep/c.py": b"new c\n"})
NEW = {**dict(CANDIDATE.files), "dist/a.py": b"new a\n"}
MODES = {"src/a.py": 0o755, "src/deep/b.py": 0o640, "dist/a.py": 0o600}


def work(**more: Any) -> EvolveWork:
    given: dict[str, Any] = {
        "name": "demo",
        "document": "d",
        "overlay": OverlayRules(allow=("src/**",), may_add=True),
        "copies": (Copy(source="src/a.py", to="dist/a.py"),),
        "proposer": Dirs(digests=(CANDIDATE.digest,)),
        "tasks": (Task(id="t", commit="c", tree="t", command=("x",), timeout_s=1, resources=ResourceAsk(minutes=1)),),
        "unit": "cell",
        "gate": GatePolicy(primary=Metric(name="loss", direction="min")),
        "base": {path: content_digest(data) for path, data in OLD.items() if path.startswith("src/")},
        "proposing": ResourceAsk(minutes=1),
    }
    return EvolveWork(**{**given, **more})


def make(folder: Path) -> Path:
    """A working tree as it was at submit."""
    for path, data in OLD.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
        (folder / path).chmod(MODES[path])
    return folder


def state(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Bytes and rights of every file, whatever its name."""
    return {
        str(path.relative_to(folder)): (path.read_bytes(), stat.S_IMODE(path.stat().st_mode))
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


def folders(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_dir()}


def save(path: Path, data: bytes = b"by an editor\n") -> None:
    """Save as editors do: another file takes the name."""
    beside = path.with_name(f"{path.name}~")
    beside.write_bytes(data)
    beside.replace(path)


def lacking(_folder: int, _one: str, _other: str) -> None:
    """A filesystem without RENAME_EXCHANGE."""
    raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))


#: Both ways in which files change places.
EXCHANGES = {"in one step": FileExchange(), "in steps": FileExchange(lacking)}
