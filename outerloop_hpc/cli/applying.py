"""``evolve apply`` and ``evolve replay``: use what a sweep promoted, measure one of its cells again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from outerloop_hpc.cli.options import DryRun, Out, Run, command, lists
from outerloop_hpc.cli.session import Session, session, talk

if TYPE_CHECKING:
    from outerloop_hpc.cli.output import Column
    from outerloop_hpc.engine.watch import LiveRun

Into = Annotated[
    Path | None, typer.Option("--into", metavar="CHECKOUT", help="Root of the working tree to change, if not the own.")
]
Propose = Annotated[bool, typer.Option("--propose", help="Open a change on the forge; touch no working tree.")]
Mend = Annotated[bool, typer.Option("--mend", help="Put back what an apply that was cut off had changed.")]
Cell = Annotated[str, typer.Argument(metavar="CELL", help="Id of a cell, or an unambiguous beginning of one.")]
Keep = Annotated[
    Path | None, typer.Option("--keep", metavar="FOLDER", help="Keep the log and what was found in this new folder.")
]


def register(app: typer.Typer) -> None:
    """Add the commands to those about sweeps."""
    command(app, "apply")(apply)
    command(app, "replay")(replay)


@lists
def apply(
    context: typer.Context,
    run: Run,
    *,
    out: Out,
    into: Into = None,
    propose: Propose = False,
    mend: Mend = False,
    dry_run: DryRun = False,
) -> None:
    """Put what a sweep promoted into a working tree: every file and every copy of it, or none. Commits nothing.

    Example: outerloop-hpc evolve apply 1a2b3c4d --dry-run

    Example: outerloop-hpc evolve apply 1a2b3c4d --propose

    The decision is made again from its pairs, and every place is compared with what it was at submit. The tree is
    --into, else the target's repository where that is a working tree, else the one that the current folder lies in.
    Exit status 5: not applied, the text says which path differs; 7: something is not what was frozen.
    """
    from outerloop_hpc.errors import UsageError  # noqa: PLC0415 - keeps help quick

    columns = _columns()
    out.offer(columns)
    here = session(context)
    if propose + mend + (into is not None) > 1:
        raise UsageError("--into, --propose and --mend exclude each other; choose one")
    found = _sweep(here, run)
    if mend:
        _mend(here, found, out, dry_run=dry_run)
    elif propose:
        _propose(here, found, out, dry_run=dry_run)
    else:
        _put(here, found, out, into, dry_run=dry_run)


def _columns() -> tuple[Column, ...]:
    from outerloop_hpc.cli.output import Column  # noqa: PLC0415 - keeps help quick

    return (Column("path", "path in the working tree"), Column("what", "changed, same, proposed or put back"))


def _put(here: Session, found: LiveRun, out: Out, into: Path | None, *, dry_run: bool) -> None:
    from outerloop_hpc.cli.promoted import promoted, put  # noqa: PLC0415 - heavy
    from outerloop_hpc.clock import SystemClock  # noqa: PLC0415 - as above

    checkout, done = put(here, promoted(found, SystemClock().now()), into, dry_run=dry_run)
    if not done.changed:
        talk(f"{checkout} holds all of it already; nothing {'would be' if dry_run else 'was'} changed")
    elif dry_run:
        talk(f"would change {len(done.changed)} files in {checkout}")
    else:
        talk(f"changed {len(done.changed)} files in {checkout}; nothing was committed")
    rows = [{"path": path, "what": "would change" if dry_run else "changed"} for path in done.changed]
    rows += [{"path": path, "what": "same"} for path in done.same]
    meta = {"run": found.run_id, "checkout": str(checkout), "dry_run": dry_run}
    out.show(here, "evolve apply", _columns(), rows, meta=meta)


def _mend(here: Session, found: LiveRun, out: Out, *, dry_run: bool) -> None:
    from outerloop_hpc.cli.promoted import mended, recovery_of  # noqa: PLC0415 - heavy

    recovery = recovery_of(found.journal.folder)
    if dry_run:
        talk(f"would mend by {recovery}" if recovery.exists() else f"{recovery}: is not there, nothing is to mend")
        return
    rows = [{"path": path, "what": "put back"} for path in mended(here, found.run_id)]
    out.show(here, "evolve apply", _columns(), rows, meta={"run": found.run_id})


def _propose(here: Session, found: LiveRun, out: Out, *, dry_run: bool) -> None:
    from outerloop_hpc.cli.promoted import offer, promoted  # noqa: PLC0415 - heavy
    from outerloop_hpc.clock import SystemClock  # noqa: PLC0415 - as above

    offered = offer(here, promoted(found, SystemClock().now()), dry_run=dry_run)
    change, target = offered.change, found.spec.target
    meta: dict[str, object] = {"run": found.run_id, "branch": offered.branch, "onto": offered.onto, "dry_run": dry_run}
    if not offered.paths:
        talk(f"{offered.onto} of {target} holds all of it already; nothing is proposed")
    elif change is None:
        talk(f"would propose {offered.branch} for {offered.onto} of {target}")
    else:
        meta |= {"change": change.change_id, "state": change.status, "commit": change.commit, "where": change.where}
        talk(f"{change.where} of {target} is {change.status}: {offered.branch} for {offered.onto}")
        talk(f"`outerloop-hpc changes show {target} {change.change_id}` shows it")
    what = "would propose" if dry_run else "proposed"
    out.show(here, "evolve apply", _columns(), [{"path": path, "what": what} for path in offered.paths], meta=meta)


@lists
def replay(context: typer.Context, run: Run, cell: Cell, *, out: Out, keep: Keep = None) -> None:
    """Measure one cell of a sweep again, on this machine and now, and lay that beside what was recorded.

    Example: outerloop-hpc evolve replay 1a2b3c4d 0f3a --keep /tmp/again

    Nothing of the run is written. --json has the whole of both. Exit status 3: an arm now succeeds or fails where it
    did not then; metrics that are times differ always.
    """
    from outerloop_hpc.cli.replaying import REPLAY_COLUMNS, replayed  # noqa: PLC0415 - heavy
    from outerloop_hpc.errors import Exit  # noqa: PLC0415 - as above

    out.offer(REPLAY_COLUMNS)
    here = session(context)
    done = replayed(here, _sweep(here, run), cell, keep)
    out.show(here, "evolve replay", REPLAY_COLUMNS, done.rows(), footer=[done.said()], meta=done.meta())
    raise typer.Exit(Exit.FINDINGS if done.contradicts else Exit.DONE)


def _sweep(here: Session, run: str) -> LiveRun:
    from outerloop_hpc.cli.evolve import loaded  # noqa: PLC0415 - as the app is made of both

    return loaded(here, run)
