"""The root file systems that the slurm tier runs in: which packages, from which mirror, built by debootstrap."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.cluster import cache
from tests.cluster.cache import BuildFailed

MIRROR_VARIABLE = "OUTERLOOP_TEST_MIRROR"
_BUILD_LIMIT_S = 1800
_SLURM = (
    "slurmctld",
    "slurmd",
    "slurmdbd",
    "slurm-client",
    "munge",
    "mariadb-server",
    "python3",
    "python3-venv",
    "git",
    "iproute2",
    "ca-certificates",
)


@dataclass(frozen=True, slots=True)
class Recipe:
    """One root file system: a name for people, a Debian suite, and what is installed on top of the base."""

    name: str
    suite: str
    packages: tuple[str, ...]

    @property
    def key(self) -> str:
        """Name of its cache entry; changes with the suite and the package list."""
        return f"root-{self.name}-{self.suite}-{cache.digest(self.suite, *self.packages)}"


SLURM22 = Recipe("slurm22", "bookworm", (*_SLURM, "slurm-wlm-mysql-plugin"))
SLURM26 = Recipe("slurm26", "sid", (*_SLURM, "apptainer", "squashfuse", "debootstrap"))
CONTAINER = Recipe("container", "bookworm", ("python3", "git"))
RECIPES: Mapping[str, Recipe] = {recipe.name: recipe for recipe in (SLURM22, SLURM26, CONTAINER)}


def root(recipe: Recipe, where: Path | None = None) -> Path:
    """Return the folder of a built root file system, building it first when it is not in the cache.

    Raises:
        BuildFailed: no debootstrap, no mirror, no space, …; the text names the log.
    """

    def build(aside: Path, log: Path) -> None:
        _debootstrap(recipe, mirror(), aside, log)

    return cache.entry(where or cache.folder(), recipe.key, build)


def mirror(environ: Mapping[str, str] = os.environ, apt: Path = Path("/etc/apt")) -> str:
    """Return the Debian mirror that this machine's own apt sources name.

    Raises:
        BuildFailed: they name none, and the environment does not either.
    """
    if environ.get(MIRROR_VARIABLE):
        return environ[MIRROR_VARIABLE]
    files = (apt / "sources.list", *sorted((apt / "sources.list.d").glob("*")))
    named = [path for path in files if path.suffix in {".list", ".sources"} and path.is_file()]
    found = first_mirror(path.read_text(encoding="utf-8", errors="replace") for path in named)
    if found is None:
        raise BuildFailed(f"no Debian mirror in {apt}; set {MIRROR_VARIABLE} to the address of one")
    return found


def first_mirror(sources: Iterable[str]) -> str | None:
    """Return the first http(s) URI of a ``…/debian`` archive in apt source texts of either format."""
    for text in sources:
        for line in text.splitlines():
            if line.lstrip().startswith("#"):
                continue
            found = re.search(r"\bhttps?://\S+?/debian/?(?=\s|$)", line)
            if found:
                return found.group().rstrip("/")
    return None


def _debootstrap(recipe: Recipe, source: str, target: Path, log: Path) -> None:
    include = ",".join(recipe.packages)
    program = _debootstrap_program(log)
    argv = [program, "--variant=minbase", f"--include={include}", recipe.suite, str(target), source]
    logged(argv, log, f"the root file system {recipe.name} ({recipe.suite} from {source})")


def _debootstrap_program(log: Path) -> str:
    """Find debootstrap; a bare CI machine gets it from its own package manager first."""
    search = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    if shutil.which("debootstrap", path=search) is None:
        apt = [*_noninteractive(), "apt-get"]
        logged([*apt, "update"], log, "debootstrap (apt-get update)")
        logged([*apt, "install", "-y", "--no-install-recommends", "debootstrap"], log, "debootstrap (apt-get install)")
    program = shutil.which("debootstrap", path=search)
    if program is None:
        raise BuildFailed(f"debootstrap is still not there after its installation; log: {log}")
    return program


def _noninteractive() -> list[str]:
    return ["env", "DEBIAN_FRONTEND=noninteractive"]


def logged(argv: Sequence[str], log: Path, what: str, env: Mapping[str, str] | None = None) -> None:
    """Run ``argv`` with its output appended to ``log``.

    Raises:
        BuildFailed: it ended badly or took too long; with the tail of its output and the log's path.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        try:
            done = subprocess.run(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=None if env is None else dict(env),
                timeout=_BUILD_LIMIT_S,
                check=False,
            )
            how = f"exit status {done.returncode}" if done.returncode else ""
        except (OSError, subprocess.TimeoutExpired) as error:
            how = str(error)
    if how:
        tail = log.read_text(encoding="utf-8", errors="replace")[-600:]
        raise BuildFailed(f"{what} could not be built: {how}; log: {log}\n…{tail}")
