"""Where the reference can run: the newest Python of the test machines, which has this project's dependencies too.

Both sides are then timed by the same interpreter in the same place. The reference is what is published as
``outerloop-science`` 0.6.0; it wants Python 3.12 or newer.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tests.bench.processes import CHECKOUT, environment
from tests.cluster import cache, needs, rootfs
from tests.cluster.cache import BuildFailed
from tests.cluster.machine import SOURCE, VENV, Bind, Machine, Plan
from tests.cluster.venv import venv

NAME = "outerloop-science"
VERSION = "0.6.0"
_WANTS = (3, 12)
_INSIDE = "/opt/reference"
_LIMIT_S = 1800.0
_INSTALL_LIMIT_S = 600.0


class Place(Protocol):
    """An interpreter that has this checkout and the reference."""

    @property
    def python(self) -> str:
        """What it is, for people."""
        ...

    def run(self, arguments: Sequence[str], *, programs: Path | None = None, reference: bool = False) -> str:
        """Run it; returns what it printed. ``programs`` comes first on PATH; ``reference``: that is importable too."""
        ...


@dataclass(frozen=True)
class Here:
    """This interpreter, which is new enough."""

    library: Path
    python: str = f"Python {sys.version_info.major}.{sys.version_info.minor}"

    def run(self, arguments: Sequence[str], *, programs: Path | None = None, reference: bool = False) -> str:
        """Run it in this checkout."""
        environ = environment()
        if reference:
            environ["PYTHONPATH"] = str(self.library)
        path = f"{programs}:{environ['PATH']}" if programs else environ["PATH"]
        argv, environ = [sys.executable, *arguments], {**environ, "PATH": path}
        done = subprocess.run(argv, cwd=CHECKOUT, env=environ, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"python {' '.join(arguments)}: exit status {done.returncode}: {done.stderr[-2000:]}")
        return done.stdout


@dataclass(frozen=True)
class Inside:
    """The Python of a test machine."""

    machine: Machine
    python: str

    def run(self, arguments: Sequence[str], *, programs: Path | None = None, reference: bool = False) -> str:
        """Run it in the machine's copy of this checkout."""
        env: Mapping[str, str] = {"PYTHONPATH": _INSIDE if reference else SOURCE}
        path = f"{programs}:{VENV}/bin:/usr/bin:/bin" if programs else f"{VENV}/bin:/usr/bin:/bin"
        # The interpreter itself, not the environment, where the reference is meant: it brings its own dependencies.
        python = "/usr/bin/python3" if reference else f"{VENV}/bin/python"
        done = self.machine.run([python, *arguments], env={**env, "PATH": path}, cwd=SOURCE, timeout=_LIMIT_S)
        if not done.ok:
            raise RuntimeError(f"python {' '.join(arguments)}: {done.complaint()}")
        return done.stdout


def named(where: Place) -> str:
    """Name the reference, as it runs there."""
    return f"{NAME} {VERSION} on {where.python}"


@contextmanager
def place(scratch: Path) -> Iterator[Place | str]:
    """Give such an interpreter, or the reason why there is none; ``scratch`` is visible to it under the same path."""
    if sys.version_info >= _WANTS:
        try:
            here: Place | str = Here(library(f"{sys.version_info.major}.{sys.version_info.minor}"))
        except BuildFailed as error:
            here = str(error)
        yield here
        return
    lacking = "; ".join(needs.missing())
    if lacking:
        yield f"it wants Python {_WANTS[0]}.{_WANTS[1]}, this is {sys.version.split()[0]}, and {lacking}"
        return
    try:
        base, env = rootfs.root(rootfs.SLURM26), venv(rootfs.SLURM26)
        version = next(path.name for path in (env / "lib").iterdir()).removeprefix("python")
        binds = (Bind(env, VENV), Bind(library(version), _INSIDE), Bind(scratch, str(scratch), read_only=False))
    except BuildFailed as error:
        yield str(error)
        return
    with Machine(Plan(base, binds, ((CHECKOUT, SOURCE),))) as machine:
        yield Inside(machine, f"Python {version}")


def library(python: str) -> Path:
    """Return a folder with the reference and what it needs for that Python, installed once.

    Raises:
        BuildFailed: it could not be had; the text names the log.
    """

    def build(aside: Path, log: Path) -> None:
        argv = [sys.executable, "-m", "pip", "install", "--no-input", "--disable-pip-version-check"]
        argv += ["--target", str(aside), "--only-binary", ":all:", "--python-version", python]
        # pip compares with the Python that runs it, not with the one that it was told to install for.
        argv += ["--ignore-requires-python", f"{NAME}=={VERSION}"]
        with log.open("w", encoding="utf-8") as out:
            done = subprocess.run(
                argv, stdout=out, stderr=subprocess.STDOUT, check=False, env=os.environ, timeout=_INSTALL_LIMIT_S
            )
        if done.returncode:
            raise BuildFailed(f"{NAME} {VERSION} could not be installed for Python {python}; log: {log}")

    return cache.entry(cache.folder(), f"reference-{VERSION}-{python}", build)
