"""``tick``, ``reconcile`` and ``advance``."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated

import typer

from outerloop_hpc.cli.options import DryRun, Out, Run, Wait, command, lists
from outerloop_hpc.cli.session import Session, session, talk
from outerloop_hpc.cli.trouble import tell_faults, tell_problems
from outerloop_hpc.errors import Exit

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print faults only; for cron and timers.")]

if TYPE_CHECKING:
    from outerloop_hpc.engine.passresult import PassResult


def register(app: typer.Typer) -> None:
    """Add the commands."""
    command(app, "tick")(tick)
    command(app, "reconcile")(reconcile)
    command(app, "advance")(advance)


@lists
def tick(context: typer.Context, *, out: Out, dry_run: DryRun = False, quiet: Quiet = False) -> None:
    """One pass: settle what became of jobs, then submit what is due.

    Example: outerloop-hpc tick --dry-run

    Bounded and safe under overlap; call it every few minutes from scrontab, cron or a systemd timer.

    Exit status 4: something failed, see stderr; 20: all is done that can be, a run waits for a person; 75: Slurm or
    the filesystem did not answer, the next pass tries again.
    """
    _pass(session(context), "tick", out, launch=True, dry_run=dry_run, quiet=quiet)


@lists
def reconcile(context: typer.Context, *, out: Out, dry_run: DryRun = False, quiet: Quiet = False) -> None:
    """The same pass without new runs; always possible, also under PAUSE, HOLD or with a broken contract.

    Example: outerloop-hpc reconcile --dry-run --json
    """
    _pass(session(context), "reconcile", out, launch=False, dry_run=dry_run, quiet=quiet)


def advance(context: typer.Context, run: Run, wait: Wait = 0.0, dry_run: DryRun = False) -> None:
    """Move one run on: plan it, commit, submit. Wake jobs call this.

    Example: outerloop-hpc advance benchmark-iris-20261129T120000Z-1a2b3c4d --wait 60

    Exit status 10: the run is still under way; 20: it waits for a person.
    """
    from outerloop_hpc.cli.follow import follow  # noqa: PLC0415 - heavy
    from outerloop_hpc.engine.runs import find  # noqa: PLC0415 - heavy
    from outerloop_hpc.engine.tick import Pass  # noqa: PLC0415 - as above

    here = session(context)
    folder = find(here.layout, run)
    if dry_run:
        planned = Pass(here.engine, launch=False, dry_run=True, only=[folder.run_id]).run()
        for _, line in planned.lines:
            talk(f"{line.subject}: {line.verdict} by {line.rule}: {line.reason}")
        raise typer.Exit(say_how_it_went(planned))
    raise typer.Exit(follow(here, [folder.run_id], wait_s=wait))


def _pass(here: Session, command: str, out: Out, *, launch: bool, dry_run: bool, quiet: bool) -> None:
    from outerloop_hpc.cli.decisions import DECISION_COLUMNS, decision_row  # noqa: PLC0415 - only when it runs
    from outerloop_hpc.cli.polite import polite_lock  # noqa: PLC0415 - as above
    from outerloop_hpc.cli.wiring import build_lanes  # noqa: PLC0415 - heavy
    from outerloop_hpc.engine.tick import Pass  # noqa: PLC0415 - as above

    out.offer(DECISION_COLUMNS)
    with polite_lock(here.layout, wanted=not dry_run), ExitStack() as opened:
        targets = opened.enter_context(here.targets(dry_run=dry_run)) if launch else None
        lanes = () if targets is None else build_lanes(targets, here.engine.hands.forges, dry_run=dry_run)
        result = Pass(here.engine, launch=launch, dry_run=dry_run, lanes=lanes).run()
    rows = (decision_row(run, line, evidence=out != Out()) for run, line in result.lines)
    meta = {
        "dry_run": dry_run,
        "held": result.held,
        "faults": [{"run": run, "fault": fault} for run, fault in result.faults],
        "problems": list(dict.fromkeys(result.problems)),
        "notes": list(dict.fromkeys(result.notes)),
        "live": result.live,
        "submitted": result.submitted,
        "closed": result.closed,
        "parked": result.parked,
        "refused": result.refused,
        "scheduler_calls": result.calls,
        "housekeeping": {
            "removed": result.tidied.removed,
            "bytes": result.tidied.bytes,
            "more": result.tidied.more,
        },
    }
    if not quiet:
        out.show(here, command, DECISION_COLUMNS, rows, meta=meta)
    raise typer.Exit(say_how_it_went(result, quiet=quiet))


def say_how_it_went(result: PassResult, *, quiet: bool = False) -> Exit:
    """Tell the person what needs attention and return the exit status; ``quiet`` keeps passing trouble to itself."""
    tell_faults(result)
    if not quiet:
        tell_problems(result)
    if result.faults or result.refused:
        return Exit.PARTLY_FAILED
    if result.unavailable:
        return Exit.TRY_LATER
    return Exit.WAITS_FOR_PERSON if result.parked else Exit.DONE
