"""One invocation of the command line: its settings, state folder, output streams, and the engine wired to them."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from outerloop_hpc.benchmark.lane import BenchmarkLane
    from outerloop_hpc.config import Settings
    from outerloop_hpc.configsources import Loaded
    from outerloop_hpc.engine.layout import Layout
    from outerloop_hpc.engine.tick import Engine


@dataclass
class Session:
    """What the global options said; everything else is made when first needed."""

    config: Path | None = None
    state: Path | None = None
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))

    @cached_property
    def loaded(self) -> Loaded:
        """The settings with their origins."""
        from outerloop_hpc.configsources import load  # noqa: PLC0415 - only when a command needs settings

        root = None if self.state is None else str(self.state.absolute())
        return load(Path.cwd(), self.environ, {"state.root": root}, config=self.config)

    @property
    def settings(self) -> Settings:
        """The merged settings."""
        return self.loaded.settings

    @cached_property
    def layout(self) -> Layout:
        """The state folder, made when it is not there."""
        from outerloop_hpc import fsio  # noqa: PLC0415 - only when a command needs the state folder
        from outerloop_hpc.engine.layout import Layout  # noqa: PLC0415 - as above

        fsio.make_folder(self.settings.state.root)
        return Layout(self.settings.state.root)

    @cached_property
    def engine(self) -> Engine:
        """The engine, wired to this machine."""
        from outerloop_hpc.cli.wiring import build_engine  # noqa: PLC0415 - heavy, and only for passes

        return build_engine(self.settings, self.layout, {**self.environ, **self._same_settings()})

    def _same_settings(self) -> dict[str, str]:
        """Variables by which a job that comes back for a run finds this project file and this state folder."""
        found = {"OUTERLOOP_STATE__ROOT": str(self.layout.root)}
        if self.loaded.project is not None:
            found["OUTERLOOP_CONFIG"] = str(self.loaded.project.absolute())
        return found

    @cached_property
    def lane(self) -> BenchmarkLane:
        """The benchmark lane."""
        from outerloop_hpc.benchmark.lane import BenchmarkLane  # noqa: PLC0415 - heavy
        from outerloop_hpc.clock import SystemClock  # noqa: PLC0415 - goes with it

        return BenchmarkLane(self.settings, self.layout, SystemClock())


def session(context: typer.Context) -> Session:
    """Return the session of this invocation."""
    found = context.find_object(Session)
    return found if found is not None else Session()


def talk(text: str) -> None:
    """Say something to the person at the terminal: stderr, so that stdout stays data."""
    sys.stderr.write(text + "\n")
