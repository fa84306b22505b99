"""Which working tree a promoted candidate is applied to."""

from __future__ import annotations

from pathlib import Path

from outerloop_hpc.config.settings import Settings
from outerloop_hpc.engine.spec import RunSpec
from outerloop_hpc.errors import UsageError
from outerloop_hpc.target.repository import Repository


def checkout_of(settings: Settings, spec: RunSpec, into: Path | None, here: Path) -> Path:
    """Return the root of the working tree.

    Args:
        settings: know the target's repository.
        spec: of the sweep.
        into: what a person named; without it the target's repository where that is a working tree, else the tree that
            ``here`` lies in, if it knows the sweep's commit.
        here: the current folder.

    Raises:
        UsageError: none of these is one; the text says what to name.
    """
    if into is not None:
        return _named(into)
    target = settings.targets.get(spec.target)
    repository = Path(target.repository) if target is not None and "://" not in target.repository else None
    if repository is not None and (repository / ".git").exists():
        return repository
    root = _root(here)
    if root is not None and Repository(root).has(spec.commit):
        return root
    where = "is not configured here" if target is None else f"has its repository at {target.repository}"
    raise UsageError(
        f"{spec.target} {where}, and {here} lies in no working tree that has commit {spec.commit[:12]}; "
        "name one with --into CHECKOUT, or open a change with --propose"
    )


def _named(into: Path) -> Path:
    if not into.is_dir():
        raise UsageError(f"{into}: is no folder; --into takes the root of a working tree")
    root = _root(into)
    if root is not None and root != into.absolute().resolve():
        raise UsageError(f"{into}: lies inside of a working tree; name its root: --into {root}")
    return into


def _root(folder: Path) -> Path | None:
    """Return the root of the working tree that a folder lies in."""
    whole = folder.absolute().resolve()
    return next((one for one in (whole, *whole.parents) if (one / ".git").exists()), None)
