"""Where the data files that ship with the package are: ``jobs``, ``containers``, ``slurm-templates``."""

from __future__ import annotations

from pathlib import Path

from outerloop_hpc.errors import ConfigError

_PACKAGE = Path(__file__).resolve().parent


def shipped(name: str) -> Path:
    """Return the folder of shipped files called ``name``: inside the installed package, or beside it in a checkout.

    Raises:
        ConfigError: the installation is incomplete.
    """
    for folder in (_PACKAGE / "shipped" / name, _PACKAGE.parent / name):
        if folder.is_dir():
            return folder
    raise ConfigError(f"{name}: this installation lacks its data files; install outerloop-hpc again")
