"""``claims list|release``: which runs hold which orders, and giving an order free."""

from __future__ import annotations

from typing import Annotated

import typer

from outerloop_hpc.cli.acts import AsJson, told
from outerloop_hpc.cli.options import DryRun, Out, Reason, command, lists
from outerloop_hpc.cli.session import session, talk
from outerloop_hpc.errors import Exit, UsageError

app = typer.Typer(help="See which runs hold which orders, release one.", no_args_is_help=True, rich_markup_mode=None)

All = Annotated[bool, typer.Option("--all", "-a", help="Also those that have ended.")]
TargetFilter = Annotated[str, typer.Option("--target", help="Only this target.")]
Claim = Annotated[str, typer.Argument(metavar="CLAIM", help="Id of a claim, or an unambiguous beginning of it.")]


@command(app, "list")
@lists
def list_claims(context: typer.Context, *, out: Out, target: TargetFilter = "", everything: All = False) -> None:
    """List the claims whose run is live or in the making: one row for each order that is held.

    Example: outerloop-hpc claims list --target iris --all

    A claim that cannot be read is a row that says so, and the exit status is 3: its order stays held.
    """
    from outerloop_hpc.cli.claimrows import CLAIM_COLUMNS, claim_rows, finding, known_target  # noqa: PLC0415 - heavy

    out.offer(CLAIM_COLUMNS)
    here = session(context)
    known_target(here.layout, here.settings, target)
    rows = list(claim_rows(here.layout, target, everything=everything))
    out.show(here, "claims list", CLAIM_COLUMNS, rows)
    raise typer.Exit(Exit.FINDINGS if any(map(finding, rows)) else Exit.DONE)


@command(app, "release")
def release(
    context: typer.Context, claim: Claim, reason: Reason = "", as_json: AsJson = False, dry_run: DryRun = False
) -> None:
    """Give an order free: the run that holds it is ended, as `runs end` does, by the next pass.

    Example: outerloop-hpc claims release 3f2a91c8 --reason "the order was a mistake"

    Its jobs are cancelled, and the order is told. That costs it no attempt, and it isn't bought again at once: a
    steward takes it again when somebody comments on it or changes its labels. What a benchmark's claim held is
    measured again by `bench run` alone.
    """
    from outerloop_hpc.cli.claimrows import find, in_the_making  # noqa: PLC0415 - heavy
    from outerloop_hpc.cli.runs import decide  # noqa: PLC0415 - as above
    from outerloop_hpc.clock import SystemClock  # noqa: PLC0415 - as above
    from outerloop_hpc.engine import runs  # noqa: PLC0415 - as above

    here = session(context)
    if not reason.strip():
        raise UsageError("claims release needs --reason: who reads the journal later wants to know why")
    held = find(here.layout, claim)
    if in_the_making(here.layout, held.run):
        if dry_run:
            talk(f"would end {held.run}, which is in the making: {reason}")
            return
        # Whoever is about to make it finds it made: a run is made once, by whomever.
        runs.make_up(here.layout, held.run, SystemClock().now())
    decision = decide(here, held.run, "end", reason, dry_run=dry_run)
    row = {"claim": held.id, "target": held.target, "order": held.order, "run": held.run, "decision": decision}
    if not dry_run:
        told(here, "claims release", row, as_json=as_json)
