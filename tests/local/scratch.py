"""Throw-away git repositories for tests: honest ones, forged ones, and commands that leave a trace when run."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

IDENTITY = {
    "GIT_AUTHOR_NAME": "A Ü",
    "GIT_AUTHOR_EMAIL": "a@x",
    "GIT_COMMITTER_NAME": "C",
    "GIT_COMMITTER_EMAIL": "c@x",
}
QUIET = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}


def git(folder: Path, *arguments: str, stdin: bytes | None = None, **env: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments],
        input=stdin,
        capture_output=True,
        check=True,
        env={**os.environ, **IDENTITY, **QUIET, **env},
    )
    return done.stdout.decode(errors="surrogateescape").strip()


def commit(folder: Path, message: str = "work") -> str:
    git(folder, "add", "--all", "--force")
    git(folder, "commit", "--quiet", "--allow-empty", "-m", message)
    return git(folder, "rev-parse", "HEAD")


def commit_tree(folder: Path, rows: list[tuple[str, str, str]]) -> str:
    """Commit a tree as no `git add` would make it; rows of (mode, content or id, name)."""
    lines = []
    for mode, content, name in rows:
        kind = {"040000": "tree", "160000": "commit"}.get(mode, "blob")
        digest = content if kind != "blob" else git(folder, "hash-object", "-w", "--stdin", stdin=content.encode())
        lines.append(f"{mode} {kind} {digest}\t{name}\0")
    tree = git(folder, "mktree", "-z", "--missing", stdin="".join(lines).encode())
    return git(folder, "commit-tree", "-m", "forged", tree)


def marker_command(tmp_path: Path) -> tuple[Path, str]:
    """Return a file that appears when somebody runs the command, and the command."""
    marker, script = tmp_path / "it-ran", tmp_path / "hostile"
    script.write_text(f"#!/bin/sh\ntouch '{marker}'\ncat\n")
    script.chmod(0o755)
    return marker, str(script)


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()
        for path in folder.rglob("*")
        if path.is_symlink() or path.is_file()
    }


def new_source(folder: Path) -> Path:
    """Make an empty repository whose branch is `main`."""
    folder.mkdir()
    git(folder, "init", "--quiet", "-b", "main")
    return folder
