"""Container images for the slurm tier: built once by the Apptainer of the newer root file system, usable by all."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.cluster import cache
from tests.cluster.cache import BuildFailed
from tests.cluster.cluster import IMAGES
from tests.cluster.machine import SOURCE, Bind, Machine, Plan
from tests.cluster.rootfs import CONTAINER, SLURM26, mirror, root
from tests.cluster.venv import CHECKOUT, host_pip_configuration, host_settings, pip_settings

_FILE = "image.sif"
_BUILD_LIMIT_S = 1200.0


def image(definition: Path | None = None, where: Path | None = None) -> str:
    """Return an image's path inside every cluster, building it first when it is not in the cache.

    Args:
        definition: an Apptainer definition of the checkout, built as it stands (with network, in the checkout's
            copy, its template variable ``MIRROR`` being this machine's Debian mirror). Without one the image is
            made from a prepared root file system with Python and git, which needs neither ``%post`` nor a
            capability for it.
        where: the cache folder.

    Raises:
        BuildFailed: Apptainer refused; the text names the log.
    """
    store = where or cache.folder()

    def build(aside: Path, log: Path) -> None:
        if definition is None:
            _from_root(root(CONTAINER, store), store, aside, log)
        else:
            _from_definition(definition.resolve().relative_to(CHECKOUT), store, aside, log)

    name = CONTAINER.key if definition is None else f"{definition.stem}-{cache.digest(_text(definition), SLURM26.key)}"
    built = cache.entry(store / "images", name, build)
    return f"{IMAGES}/{built.name}/{_FILE}"


def _text(definition: Path) -> str:
    return definition.read_text(encoding="utf-8")


def _from_root(prepared: Path, store: Path, aside: Path, log: Path) -> None:
    binds = (Bind(prepared, "/prepared"), Bind(aside, "/built", read_only=False))
    with Machine(Plan(root(SLURM26, store), binds), store) as machine:
        _build(machine, ["/prepared"], {}, aside, log)


def _from_definition(definition: Path, store: Path, aside: Path, log: Path) -> None:
    settings = pip_settings(os.environ, host_pip_configuration())
    binds = (*host_settings(settings), Bind(aside, "/built", read_only=False))
    plan = Plan(root(SLURM26, store), binds, ((CHECKOUT, SOURCE),), network=True)
    with Machine(plan, store) as machine:
        given = ["--build-arg", f"MIRROR={mirror()}"] if "MIRROR" in _text(CHECKOUT / definition) else []
        _build(machine, [*given, str(definition)], settings, aside, log)


def _build(machine: Machine, source: Sequence[str], settings: Mapping[str, str], aside: Path, log: Path) -> None:
    options, what = source[:-1], source[-1]
    argv = ["apptainer", "build", *options, f"/built/{_FILE}", what]
    done = machine.run(argv, env=settings, timeout=_BUILD_LIMIT_S, cwd="/" if what.startswith("/") else SOURCE)
    log.write_text(f"$ {' '.join(argv)}\n{done.stdout}{done.stderr}", encoding="utf-8")
    if not done.ok:
        raise BuildFailed(f"the container image from {what} could not be built: {done.complaint()}; log: {log}")
    (aside / _FILE).chmod(0o644)
    aside.chmod(0o755)
