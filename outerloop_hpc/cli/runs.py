"""``runs list|show|end|resume`` and ``explain``."""

from __future__ import annotations

import getpass
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from outerloop_hpc.cli.options import DryRun, Out, Reason, Run, Since, Until, Users, command, lists
from outerloop_hpc.cli.session import Session, session, talk

if TYPE_CHECKING:
    from outerloop_hpc.engine.events import PersonAction

runs_app = typer.Typer(help="Look at runs, end or resume them.", no_args_is_help=True, rich_markup_mode=None)

All = Annotated[bool, typer.Option("--all", "-a", help="Also closed runs (reads the whole history).")]
States = Annotated[str, typer.Option("-s", "--state", help="Only these phases: running,parked,ended,closed,faulty.")]
Force = Annotated[bool, typer.Option("--force", help="Close it although nobody knows what became of its jobs.")]
TargetFilter = Annotated[str, typer.Option("--target", help="Only this target.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(runs_app, name="runs")
    command(app, "explain")(explain)


@command(runs_app, "list")
@lists
def list_runs(
    context: typer.Context,
    *,
    out: Out,
    everything: All = False,
    states: States = "",
    target: TargetFilter = "",
    since: Since = "",
    until: Until = "",
    users: Users = "",
) -> None:
    """List runs; reads local files only, asks no scheduler.

    Example: outerloop-hpc runs list --all -s parked,ended -S now-7days

    -S and -E are about when a run was made, -u about who made it.
    """
    from outerloop_hpc.cli.archived import selection  # noqa: PLC0415 - heavy
    from outerloop_hpc.cli.listing import RUN_COLUMNS, Wanted, phases, run_rows  # noqa: PLC0415 - as above

    out.offer(RUN_COLUMNS)
    here = session(context)
    made = selection(since=since, until=until, users=users)
    wanted = Wanted(phases(states), target, made.window, made.users)
    rows = run_rows(here.layout, wanted, everything=everything)
    out.show(here, "runs list", RUN_COLUMNS, rows)


@command(runs_app, "show")
@lists
def show(context: typer.Context, run: Run, *, out: Out) -> None:
    """List the tries of one run.

    Example: outerloop-hpc runs show 1a2b3c4d
    """
    from outerloop_hpc.cli.listing import TRY_COLUMNS, try_rows  # noqa: PLC0415 - heavy
    from outerloop_hpc.engine.runs import find  # noqa: PLC0415 - as above
    from outerloop_hpc.engine.watch import load  # noqa: PLC0415 - as above

    out.offer(TRY_COLUMNS)
    here = session(context)
    folder = find(here.layout, run)
    state = load(here.layout, folder.run_id).state
    footer = [f"{folder.run_id}: {state.phase}"]
    if state.parked is not None:
        footer.append(f"waits for a person: {state.parked.question}")
    if state.ended is not None:
        footer.append(f"{state.ended.ending}: {state.ended.reason}")
    meta = {"run": folder.run_id, "phase": state.phase, "folder": str(folder.path)}
    out.show(here, "runs show", TRY_COLUMNS, try_rows(folder, state), footer=footer, meta=meta)


@command(runs_app, "end")
def end(
    context: typer.Context, run: Run, reason: Reason = "", dry_run: DryRun = False, *, force: Force = False
) -> None:
    """End a run: its jobs are cancelled and its claim is released by the next pass.

    Example: outerloop-hpc runs end 1a2b3c4d --reason "wrong image"

    Example: outerloop-hpc runs end 1a2b3c4d --force --reason "the cluster is gone" --dry-run

    With --force it is also closed without knowing what became of its jobs: for a Slurm that will not answer any more,
    or files that stay unreadable. Jobs that did not start are kept from starting, the others are asked to end once,
    and what they still bring changes nothing. Only a forge that must be told is still waited for. --dry-run says what
    is not known.
    """
    decide(session(context), run, "end", reason, dry_run=dry_run, force=force)


@command(runs_app, "resume")
def resume(context: typer.Context, run: Run, reason: Reason = "", dry_run: DryRun = False) -> None:
    """Let a parked run go on: what was cancelled, lost or timed out is tried again.

    Example: outerloop-hpc runs resume 1a2b3c4d --reason "node is back"
    """
    decide(session(context), run, "resume", reason, dry_run=dry_run)


def decide(here: Session, run: str, action: PersonAction, reason: str, *, dry_run: bool, force: bool = False) -> str:
    """Leave a person's decision in the inbox of a run and return its name there; empty after a dry run.

    Raises:
        UsageError: there is no such run, no reason, or nothing left to decide.
    """
    from outerloop_hpc import fsio  # noqa: PLC0415 - heavy
    from outerloop_hpc.clock import SystemClock  # noqa: PLC0415 - as above
    from outerloop_hpc.engine import inbox, people, watch  # noqa: PLC0415 - as above
    from outerloop_hpc.engine.runs import find  # noqa: PLC0415 - as above
    from outerloop_hpc.errors import UsageError  # noqa: PLC0415 - as above

    if not reason.strip():
        raise UsageError(f"{action} needs --reason: who reads the journal later wants to know why")
    folder = find(here.layout, run)
    state = watch.load(here.layout, folder.run_id).state
    if state.ended is not None and not (force and not state.closed):
        final = "it is closed, nothing is left to force" if force else "an ending is final"
        raise UsageError(f"{folder.run_id} has ended ({state.ended.ending}); {final}")
    if action == "resume" and state.parked is None:
        raise UsageError(f"{folder.run_id} is not parked; it goes on by itself")
    if action == "park" and state.parked is not None and not people.stoppable(state):
        raise UsageError(f"{folder.run_id} is parked already: {state.parked.question}")
    who, how = getpass.getuser(), " by force" if force else ""
    if dry_run:
        talk(f"would {action} {folder.run_id}{how}: {reason}")
        if force:
            _foretell(here, folder.run_id, who, reason)
        return ""
    at = SystemClock().now()
    if force:
        # What is closed for good must not rest on a pass that did not even ask.
        for compute in here.engine.hands.computes:
            fsio.remove(here.layout.patience(compute))
    name = inbox.put(folder, action, who=who, reason=reason, at=at, force=force)
    talk(f"{folder.run_id}: the next pass takes {name} ({action}{how}); `outerloop-hpc reconcile` makes one now")
    return name


def _foretell(here: Session, run_id: str, who: str, reason: str) -> None:
    """Say what force would do now, and what nobody knows; by the same code as the pass itself."""
    from outerloop_hpc.cli.trouble import tell_faults, tell_problems  # noqa: PLC0415 - only when it runs
    from outerloop_hpc.engine.events import PersonDecided  # noqa: PLC0415 - heavy
    from outerloop_hpc.engine.tick import Pass  # noqa: PLC0415 - as above

    said = PersonDecided(file="imagined", action="end", who=who, reason=reason, force=True)
    result = Pass(here.engine, launch=False, dry_run=True, only=[run_id], imagined=[said]).run()
    for _, line in result.lines:
        talk(f"{line.subject}: {line.verdict} by {line.rule}: {line.reason}")
    tell_faults(result)
    tell_problems(result)


@lists
def explain(context: typer.Context, run: Run, *, out: Out) -> None:
    """Print the whole chain of evidence of a run: every decision, its rule, and what is awaited now.

    Example: outerloop-hpc explain 1a2b3c4d
    """
    from outerloop_hpc.cli.chain import CHAIN_COLUMNS, chain_rows, chain_text  # noqa: PLC0415 - heavy
    from outerloop_hpc.engine.runs import find  # noqa: PLC0415 - as above

    out.offer(CHAIN_COLUMNS)
    here = session(context)
    folder = find(here.layout, run)
    awaited = list(_awaited(here, folder.run_id))
    if out != Out():
        meta = {"run": folder.run_id, "awaited": awaited}
        out.show(here, "explain", CHAIN_COLUMNS, chain_rows(folder), meta=meta)
        return
    sys.stdout.write(chain_text(folder, awaited))


def _awaited(here: Session, run_id: str) -> Iterator[Mapping[str, object]]:
    """What a pass would decide now, by the same code as the pass itself; nothing for a closed run."""
    from outerloop_hpc.cli.decisions import decision_row  # noqa: PLC0415 - only explain needs it
    from outerloop_hpc.engine import runs as all_runs  # noqa: PLC0415 - heavy
    from outerloop_hpc.engine.tick import Pass  # noqa: PLC0415 - as above

    if run_id not in all_runs.live(here.layout):
        return
    result = Pass(here.engine, launch=False, dry_run=True, only=[run_id]).run()
    for _, line in result.lines:
        yield decision_row(run_id, line, evidence=True)
    for _, fault in result.faults:
        yield {"subject": "run", "decision": "fault", "rule": "fault", "reason": fault, "needs": "a readable file"}
