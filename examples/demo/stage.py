"""The folder that the demo happens in: shows and runs commands there, and remembers what was expected of them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parents[2]
EXAMPLES = CHECKOUT / "examples"
TARGET = "iris"
_MARK = ".outerloop-demo"


class DemoError(Exception):
    """Something was not as expected; the text says what."""


@dataclass
class Demo:
    """The folder that everything happens in, and what was checked so far.

    Attributes:
        compute: ``local`` or ``slurm``.
        image: path of a container image; empty for none.
    """

    root: Path
    compute: str
    image: str
    uncontained: bool
    checks: list[tuple[bool, str]] = field(default_factory=list)

    @property
    def patience(self) -> str:
        """Longest wait for one run, in seconds; on a cluster its jobs may have to queue."""
        return {"local": "300", "slurm": "1800"}[self.compute]

    def run(self, *arguments: str, follow: bool = False, expect: Collection[int] = (0,)) -> str:
        """Show and run ``outerloop-hpc`` in the demo's folder; ``follow`` leaves stderr to the terminal's progress."""
        return self._shown(["outerloop-hpc", *arguments], follow=follow, expect=expect)

    def git(self, *arguments: str) -> str:
        """Show and run git."""
        return self._shown(["git", *arguments])

    def rows(self, *arguments: str) -> list[dict[str, Any]]:
        """Ask ``outerloop-hpc`` for data, unseen; what a person reads is shown elsewhere."""
        done = subprocess.run(
            command(["outerloop-hpc", *arguments, "--json"]),
            cwd=self.root,
            env=environment(),
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        found: list[dict[str, Any]] = json.loads(done.stdout)["rows"]
        return found

    def runs(self, kind: str = "*") -> set[str]:
        """Return the ids of all runs of a kind."""
        return {path.name for path in (self.root / "state").glob(f"runs/*/{kind}-*")}

    def submissions(self) -> set[str]:
        """Return the names of all that was ever submitted."""
        return {path.name for path in (self.root / "state").glob("runs/*/*/tries/*")}

    def copy(self, source: Path, target: str) -> None:
        """Show and do what ``cp`` does."""
        print(f"$ cp {os.path.relpath(source, self.root)} {target}\n", flush=True)
        shutil.copyfile(source, self.root / target)

    def replace(self, old: str, new: str, target: str) -> None:
        """Show and do what ``sed`` does."""
        print(f"$ sed -i s/{old}/{new}/ {target}\n", flush=True)
        path = self.root / target
        path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")

    def check(self, good: bool, what: str) -> None:  # noqa: FBT001 - reads as a sentence where it is called
        """Remember one expectation and whether it held."""
        self.checks.append((good, what))

    def _shown(self, words: Sequence[str], *, follow: bool = False, expect: Collection[int] = (0,)) -> str:
        print(f"$ {' '.join(quoted(word) for word in words)}", flush=True)
        done = subprocess.run(
            command(words),
            cwd=self.root,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=None if follow else subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.stdout:
            print(done.stdout.rstrip("\n"))
        print(flush=True)
        if done.returncode not in expect:
            raise DemoError(f"`{' '.join(words)}` ended with exit status {done.returncode}")
        return done.stdout


def say(text: str) -> None:
    """Narrate."""
    print(f"# {text}", flush=True)


def quoted(word: str) -> str:
    """Write a word as it would be typed."""
    return f'"{word}"' if " " in word else word


def command(words: Sequence[str]) -> list[str]:
    """Return what really runs: this Python's own outerloop-hpc, whatever PATH says."""
    if words[0] == "outerloop-hpc":
        return [sys.executable, "-m", "outerloop_hpc.cli.main", *words[1:]]
    return list(words)


def environment() -> dict[str, str]:
    """Return the caller's environment without settings that would lead out of the demo's folder."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("OUTERLOOP_") or name.startswith("OUTERLOOP_SLURM__")
    }
    git = {
        f"GIT_{who}_{what}": text
        for who in ("AUTHOR", "COMMITTER")
        for what, text in (("NAME", "Demo"), ("EMAIL", "demo@example.invalid"))
    }
    return {**kept, **git, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}


def fresh(root: Path) -> None:
    """Make an empty folder; wipes an earlier demo and nothing else.

    Raises:
        DemoError: something that is not a demo is there.
    """
    if root.exists() and any(root.iterdir()) and not (root / _MARK).exists():
        raise DemoError(f"{root} is not empty and not of an earlier demo; choose another --root")
    root.mkdir(parents=True, exist_ok=True)
    # The folder itself stays: somebody may be looking at it from inside.
    for path in root.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        elif path.name != _MARK:
            path.unlink()
    (root / _MARK).touch()


def finish(demo: Demo, seconds: float) -> int:
    """Print what was checked and how to look around; returns the exit status."""
    say(f"Checked, in {seconds:.0f} s:")
    for good, what in demo.checks:
        print(f"  {'ok    ' if good else 'NOT OK'}  {what}")
    failed = [what for good, what in demo.checks if not good]
    print()
    say(f"Everything is still there: cd {os.path.relpath(demo.root)}")
    say("  outerloop-hpc runs list --all       (the command is in .venv/bin of this checkout)")
    say("  less state/runs/*/*/report.md       what a person reads at the end of a run")
    say("  ls state/runs/*/*/                  spec, journal, tries, accounting: see docs/on-disk.md")
    return 1 if failed else 0
