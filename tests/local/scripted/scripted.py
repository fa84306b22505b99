"""A site whose scheduler is a scripted Slurm: commands and jobs on one virtual clock, no waiting for anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.fakeslurm.model import Settings
from tests.fakeslurm.site import FakeSlurm, Warm
from tests.local.driver import Driver
from tests.local.site import Done, Site, new_site

#: The windows that users have, except that a refused or lost try is repeated in the next pass.
_WINDOWS: dict[str, object] = {"confirm_s": 60, "soft_window_s": 150, "submit_lag_s": 600, "backoff_s": 0}
_MOST_PASSES = 60


@dataclass(frozen=True)
class Scripted:
    """One site and its cluster."""

    site: Site
    slurm: FakeSlurm

    def cli(self, *arguments: str, expect: Sequence[int] = (0,)) -> Done:
        """Run one command at the cluster's time."""
        return self.site.cli(*arguments, expect=expect)

    def advance(self, seconds: float) -> None:
        """Let time pass on the cluster."""
        self.slurm.advance(seconds)

    def run(self, *seeds: int) -> str:
        """Ask for one run with these seeds; returns its id."""
        chosen = ",".join(map(str, seeds))
        return self.cli("bench", "run", "tiny", "-b", "score", "--seeds", chosen).out.strip()

    def rows(self, *arguments: str, expect: Sequence[int] = (0,)) -> list[dict[str, Any]]:
        """Run a command with --json and return its rows."""
        return self.site.rows(*arguments, expect=expect)

    def settle(self, *, every_s: float = 30.0, expect: Sequence[int] = (0, 20, 75), most: int = _MOST_PASSES) -> None:
        """Make passes at this distance until no run is live or all that are wait for a person."""
        done = Done(0, "", "")
        for _ in range(most):
            done = self.cli("reconcile", expect=expect)
            if not self.site.live() or done.status == 20:
                return
            self.advance(every_s)
        raise AssertionError(f"not quiet after {most} passes: {self.site.live()}\n{done.out}\n{done.err}")


def new_scripted(
    root: Path,
    source: Path,
    driver: Driver,
    warm: Warm,
    settings: Settings,
    tool: Mapping[str, object] | None = None,
    **keys: object,
) -> Scripted:
    """Make a site for the target ``tiny``; ``keys`` are those of ``site.SETTINGS``, ``tool`` any, as ``slurm.wake``."""
    slurm = FakeSlurm(root / "slurm", warm, settings)
    site = new_site(root / "site", targets={"tiny": source}, driver=driver)
    site.configure(compute="slurm", **{**_WINDOWS, **keys})
    site.extend(f'[slurm]\npython = "{slurm.python}"\n')
    # Columns of sacct are kept there: those of another version's cluster are none of this one's.
    variables = {"XDG_CACHE_HOME": str(root / "cache"), **{_variable(key): _text(v) for key, v in (tool or {}).items()}}
    site.how.update(slurm.order())
    site.how["env"] = {**slurm.env, **variables}
    return Scripted(site, slurm)


def _variable(key: str) -> str:
    return f"OUTERLOOP_{key.replace('.', '__').upper()}"


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
