"""``python -m tests.cluster prepare`` fills the cache; ``… run slurm26 -- COMMAND`` runs one command on a cluster."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from tests.cluster import rootfs
from tests.cluster.cluster import start
from tests.cluster.image import image
from tests.cluster.venv import venv

_LIMIT_S = 3600.0


def prepare() -> None:
    """Build (or find in the cache) root file systems, environments and the container image; say where they are."""
    for recipe in (rootfs.SLURM22, rootfs.SLURM26):
        sys.stdout.write(f"{recipe.name}: {rootfs.root(recipe)}\n{recipe.name}: {venv(recipe)}\n")
        sys.stdout.flush()
    sys.stdout.write(f"container image: {image()} (inside)\n")
    sys.stdout.flush()


def run(version: str, user: str, command: Sequence[str]) -> int:
    """Start a cluster, run a command on it, end the cluster; returns the command's exit status."""
    with start(rootfs.RECIPES[version]) as cluster:
        done = cluster.run(command, user=user, timeout=_LIMIT_S, cwd="/shared")
    sys.stdout.write(done.stdout)
    sys.stderr.write(done.stderr)
    return 1 if done.status is None else done.status


def main(argv: Sequence[str] | None = None) -> int:
    """Read the command line; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.cluster", description=__doc__)
    actions = parser.add_subparsers(dest="action", required=True)
    actions.add_parser("prepare", help="build what the slurm tier needs")
    running = actions.add_parser("run", help="run one command on a fresh cluster")
    running.add_argument("version", choices=(rootfs.SLURM22.name, rootfs.SLURM26.name))
    running.add_argument("--user", default="alice")
    running.add_argument("command", nargs="+")
    options = parser.parse_args(argv)
    if options.action == "prepare":
        prepare()
        return 0
    return run(options.version, options.user, options.command)


if __name__ == "__main__":
    sys.exit(main())
