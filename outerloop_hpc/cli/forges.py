"""A target's local forge at the command line: who writes there, and what is named there."""

from __future__ import annotations

import getpass
import unicodedata
from collections.abc import Sequence

from outerloop_hpc.cli.session import Session
from outerloop_hpc.clock import SystemClock
from outerloop_hpc.config.settings import Settings
from outerloop_hpc.engine.layout import Layout
from outerloop_hpc.errors import UsageError
from outerloop_hpc.forge.local import LocalForge

_LONGEST_NAME = 100
_SHOWN = 20


def local_forge(settings: Settings, layout: Layout, target: str) -> LocalForge:
    """Open a target's forge of files.

    Raises:
        UsageError: it is not a configured target.
    """
    if target not in settings.targets:
        known = ", ".join(sorted(settings.targets)) or "none"
        raise UsageError(f"{target!a} is not a configured target (there are: {known}); see [targets]")
    return LocalForge(layout.forge / target, identity=settings.forge.identity, clock=SystemClock())


def forge_of(here: Session, target: str) -> LocalForge:
    """Open the forge of one of this session's targets; raises as ``local_forge`` does."""
    return local_forge(here.settings, here.layout, target)


def person(forge: LocalForge, given: str) -> str:
    """Return the name under which a person writes: the one given, else the login name.

    Raises:
        UsageError: it is the tool's own name, however it is spelt, or cannot be a name.
    """
    name = given or _login()
    if not name.isprintable() or len(name) > _LONGEST_NAME or not any(letter.isalnum() for letter in name):
        raise UsageError(
            f"{name[:_LONGEST_NAME]!a} cannot be an author: a name is one line of at most {_LONGEST_NAME} characters, "
            "with a letter or digit; give --author NAME"
        )
    if _folded(name) == _folded(forge.identity):
        raise UsageError(f"{name} is the tool's own name on this forge; people write under their own: --author NAME")
    return name.strip()


def _folded(name: str) -> str:
    return unicodedata.normalize("NFKC", name).strip().casefold()


def _login() -> str:
    try:
        return getpass.getuser()
    except (ImportError, KeyError, OSError) as error:
        raise UsageError(f"this user has no login name here ({error}); give --author NAME") from error


def order_there(forge: LocalForge, target: str, number: str) -> str:
    """Return the number of an order as the forge writes it.

    Raises:
        UsageError: there is none; the text says which there are.
    """
    return _there(
        forge.order_ids(), number.removeprefix("#").lstrip("0"), f"order {number[:_SHOWN]!a}", "orders", target
    )


def change_there(forge: LocalForge, target: str, change_id: str) -> str:
    """Return the id of a change.

    Raises:
        UsageError: there is none; the text says which there are.
    """
    return _there(forge.change_ids(), change_id, f"change {change_id[:_SHOWN]!a}", "changes", target)


def _there(known: Sequence[str], wanted: str, what: str, command: str, target: str) -> str:
    if wanted in known:
        return wanted
    some = ", ".join(known[-_SHOWN:]) or "none"
    more = f" and {len(known) - _SHOWN} older ones" if len(known) > _SHOWN else ""
    raise UsageError(
        f"{target} has no {what}; there are {some}{more} (`outerloop-hpc {command} list {target} --all` shows them)"
    )
