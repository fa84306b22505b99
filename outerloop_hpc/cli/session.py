"""One invocation of the command line: its settings, state folder, output streams, and the engine wired to them."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from outerloop_hpc.config.settings import Settings
    from outerloop_hpc.config.sources import Loaded
    from outerloop_hpc.engine.layout import Layout
    from outerloop_hpc.engine.targets import Targets
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
        from outerloop_hpc.config.sources import load  # noqa: PLC0415 - only when a command needs settings

        root = None if self.state is None else str(self.state.absolute())
        return load(Path.cwd(), self.environ, {"state.root": root}, config=self.config)

    @property
    def settings(self) -> Settings:
        """The merged settings."""
        return self.loaded.settings

    @cached_property
    def layout(self) -> Layout:
        """The state folder. Only ``init`` makes one: a new one where a mount is missing would buy everything again.

        Raises:
            ConfigError: it is not there.
        """
        from outerloop_hpc.engine.layout import Layout  # noqa: PLC0415 - only when a command needs the state folder
        from outerloop_hpc.errors import ConfigError  # noqa: PLC0415 - as above

        root = self.settings.state.root
        if not root.is_dir():
            raise ConfigError(
                f"{root}: there is no state folder; is its filesystem mounted? `outerloop-hpc init` makes a new one"
            )
        return Layout(root)

    @cached_property
    def engine(self) -> Engine:
        """The engine, wired to this machine."""
        from outerloop_hpc.cli.wiring import build_engine  # noqa: PLC0415 - heavy, and only for passes

        return build_engine(self.settings, self.layout, self.environ, project=self.loaded.project)

    @contextmanager
    def targets(self, *, dry_run: bool = False) -> Iterator[Targets]:
        """Open the targets; a dry run looks at them through mirrors of its own, gone afterwards."""
        from outerloop_hpc.cli.wiring import cache_folder  # noqa: PLC0415 - heavy
        from outerloop_hpc.clock import SystemClock  # noqa: PLC0415 - goes with it
        from outerloop_hpc.engine.targets import Targets  # noqa: PLC0415 - as above

        cache = cache_folder(self.environ)
        if not dry_run:
            yield Targets(self.settings, self.layout, SystemClock(), mirrors=self.layout.mirrors, cache=cache)
            return
        with tempfile.TemporaryDirectory(prefix="outerloop-dry-run-") as folder:
            yield Targets(self.settings, self.layout, SystemClock(), mirrors=Path(folder), cache=cache)


def session(context: typer.Context) -> Session:
    """Return the session of this invocation."""
    found = context.find_object(Session)
    return found if found is not None else Session()


def talk(text: str) -> None:
    """Say something to the person at the terminal: stderr, so that stdout stays data.

    What git, a scheduler or somebody's text said may be in it, and cannot drive the terminal either.
    """
    from outerloop_hpc.cli.cells import harmless  # noqa: PLC0415 - not needed for help

    sys.stderr.write(harmless(text, keep="\n\t") + "\n")
