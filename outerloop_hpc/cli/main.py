"""The ``outerloop-hpc`` command."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from outerloop_hpc import __version__, collector
from outerloop_hpc.cli import applying, bench, changes, claims, evolve, image, orders, passes, report, runs, setup
from outerloop_hpc.cli.session import Session, talk
from outerloop_hpc.errors import Exit, OuterloopError

app = typer.Typer(
    name="outerloop-hpc",
    help=(
        "Example: outerloop-hpc init && outerloop-hpc tick && outerloop-hpc runs list\n\n"
        "Turns work orders into Slurm jobs, and job results into evidence that people can trust."
    ),
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    add_completion=False,
)
for part in (setup, passes, runs):
    part.register(app)
applying.register(evolve.app)
app.add_typer(bench.app, name="bench")
app.add_typer(evolve.app, name="evolve")
app.add_typer(orders.app, name="orders")
app.add_typer(changes.app, name="changes")
app.add_typer(claims.app, name="claims")
app.add_typer(report.app, name="report")
app.add_typer(image.app, name="image")


def _version(wanted: bool) -> None:  # noqa: FBT001 - typer calls it with the flag
    if wanted:
        sys.stdout.write(f"outerloop-hpc {__version__}\n")
        raise typer.Exit


@app.callback()
def globally(
    context: typer.Context,
    config: Annotated[Path | None, typer.Option("--config", help="Project file instead of ./outerloop.toml.")] = None,
    state: Annotated[Path | None, typer.Option("--state", help="State folder instead of the configured one.")] = None,
    verbose: Annotated[
        int, typer.Option("-v", "--verbose", count=True, help="Say more on stderr; -vv still more.")
    ] = 0,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Only errors on stderr.")] = False,
    log_file: Annotated[Path | None, typer.Option("--log-file", help="Also log there, as JSON lines.")] = None,
    version: Annotated[  # noqa: ARG001 - its callback answers
        bool, typer.Option("--version", help="Print the version and leave.", is_eager=True, callback=_version)
    ] = False,
) -> None:
    """Read the options that stand before every command."""
    from outerloop_hpc.cli.logs import set_up  # noqa: PLC0415 - not needed for help

    set_up(-1 if quiet else verbose, sys.stderr, log_file)
    context.obj = Session(config=config, state=state)


def main() -> None:
    """Run the command line and leave with the exit status of DESIGN §10."""
    collector.seldom()
    signal.signal(signal.SIGINT, _interrupted)
    # Whoever started this may ignore it; a program that failed (git, sbatch) would then seem to have ended well.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        _whole()
    except OuterloopError as error:
        talk(f"outerloop-hpc: {error}")
        sys.exit(error.exit_status)
    except BrokenPipeError:
        # Whoever read our output has enough; Python must not complain while it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.exit(Exit.DONE)
    except OSError as error:
        talk(f"outerloop-hpc: {error}; the same command may work later")
        sys.exit(Exit.TRY_LATER)


def _whole() -> None:
    """Run the command and write out what it said, so that whatever goes wrong with stdout is answered by ``main``."""
    try:
        app()
    except SystemExit:
        # Typer answers a closed pipe itself: it wraps stdout and leaves with 1, which means a fault of ours here.
        if type(sys.stdout).__name__.endswith("PacifyFlushWrapper"):
            raise BrokenPipeError from None
        sys.stdout.flush()
        raise


def _interrupted(_number: int, _frame: FrameType | None) -> None:
    sys.exit(Exit.INTERRUPTED)


if __name__ == "__main__":
    main()
