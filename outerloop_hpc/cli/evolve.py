"""``evolve submit|status|watch|list|gate|power|cancel|resume``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from outerloop_hpc.cli.options import DryRun, Out, Patience, Reason, Run, Wait, command, lists
from outerloop_hpc.cli.session import Session, session, talk

if TYPE_CHECKING:
    from collections.abc import Sequence

    from outerloop_hpc.engine.events import PersonAction
    from outerloop_hpc.engine.state import RunState
    from outerloop_hpc.engine.watch import LiveRun

app = typer.Typer(help="Sweeps: propose, measure, decide, apply.", no_args_is_help=True, rich_markup_mode=None)

File = Annotated[Path, typer.Argument(metavar="SWEEP", help="The sweep file, YAML.")]
Expensive = Annotated[bool, typer.Option("--expensive", help="Include tasks that are marked expensive.")]
Everything = Annotated[bool, typer.Option("--all", "-a", help="Closed ones too.")]
Recompute = Annotated[bool, typer.Option("--recompute", help="Decide again from the stored pairs, and compare.")]
Pairs = Annotated[
    int, typer.Option("--pairs", min=2, max=1000, help="Pairs of the incumbent beside itself, each task.")
]
Pilot = Annotated[str, typer.Option("--pilot", help="Read this pilot instead of measuring one.")]

#: A watch without an end: nobody waits for ten years.
_FOREVER_S = 3.2e8


@command(app, "submit")
def submit(
    context: typer.Context, sweep: File, wait: Wait = 0.0, dry_run: DryRun = False, *, expensive: Expensive = False
) -> None:
    """Submit a sweep and return. Prints the run id.

    Example: outerloop-hpc evolve submit sweep.yaml

    On Slurm its own jobs move it on; without Slurm `evolve watch` or a tick does.

    Everything is checked before anything is submitted, and what the sweep may cost is said. With --wait the exit
    status is the verdict's: 0 promoted, 3 finished without promotion, 4 the proposer gave up, 6 the harness is broken,
    7 halted; 10: still under way, 20: it waits for a person.
    """
    from outerloop_hpc.cli.sweeping import begin, estimate, made  # noqa: PLC0415 - heavy

    here = session(context)
    asked = made(here, sweep, expensive=expensive, dry_run=dry_run)
    for line in estimate(here, asked):
        talk(line)
    if dry_run:
        talk(f"would submit {asked.spec.run}")
        return
    begin(here, asked)
    sys.stdout.write(f"{asked.spec.run}\n")
    status = _follow(here, asked.spec.run, wait)
    if wait:
        raise typer.Exit(status)


@command(app, "status")
@lists
def status(context: typer.Context, run: Run, *, out: Out) -> None:
    """Say how a sweep stands; reads files only, asks no scheduler.

    Example: outerloop-hpc evolve status 1a2b3c4d --json
    """
    from outerloop_hpc.cli.sweeprows import SWEEP_COLUMNS, said, sweep_row  # noqa: PLC0415 - heavy
    from outerloop_hpc.clock import SystemClock  # noqa: PLC0415 - as above
    from outerloop_hpc.evolve.standing import standing  # noqa: PLC0415 - as above

    out.offer(SWEEP_COLUMNS)
    here, now = session(context), SystemClock().now()
    found = loaded(here, run)
    if out != Out():
        out.show(here, "evolve status", SWEEP_COLUMNS, [sweep_row(here.layout, found.run_id, now)])
        return
    sys.stdout.write(
        f"{found.run_id}: {found.state.phase}\n{said(found.spec, standing(found.spec, found.state, now))}\n"
    )
    if found.state.parked is not None:
        sys.stdout.write(f"waits for a person: {found.state.parked.question}\n")
    if found.state.ended is not None:
        sys.stdout.write(f"{found.state.ended.ending}: {found.state.ended.reason}\n")


@command(app, "watch")
def watch(context: typer.Context, run: Run, wait: Patience = _FOREVER_S) -> None:
    """Stay with a sweep until it has a verdict or waits for a person; moves it on, says what changes.

    Example: outerloop-hpc evolve watch 1a2b3c4d

    Exit status as of `evolve submit --wait`. Leaving is harmless: on Slurm the sweep goes on by itself,
    without Slurm from where it was with the next watch or tick.
    """
    here = session(context)
    raise typer.Exit(_follow(here, loaded(here, run).run_id, wait))


@command(app, "list")
@lists
def list_sweeps(context: typer.Context, *, out: Out, everything: Everything = False) -> None:
    """List sweeps, newest first.

    Example: outerloop-hpc evolve list --all -o run,name,ending,gain
    """
    from outerloop_hpc.cli.sweeprows import SWEEP_COLUMNS, sweep_rows  # noqa: PLC0415 - heavy
    from outerloop_hpc.clock import SystemClock  # noqa: PLC0415 - as above

    out.offer(SWEEP_COLUMNS)
    here = session(context)
    rows = sweep_rows(here.layout, SystemClock().now(), everything=everything)
    out.show(here, "evolve list", SWEEP_COLUMNS, rows)


@command(app, "gate")
@lists
def gate(context: typer.Context, run: Run, *, out: Out, recompute: Recompute = False) -> None:
    """List a sweep's gate decisions; with --recompute decide each again from its own pairs.

    Example: outerloop-hpc evolve gate 1a2b3c4d --recompute

    Exit status 7: a decision does not follow from its pairs. The documents themselves are in the run's results.
    """
    from outerloop_hpc.cli.gaterows import GATE_COLUMNS, gate_rows  # noqa: PLC0415 - heavy
    from outerloop_hpc.errors import Exit  # noqa: PLC0415 - as above

    out.offer(GATE_COLUMNS)
    here = session(context)
    found = loaded(here, run)
    rows = list(gate_rows(found.state, recompute=recompute))
    out.show(here, "evolve gate", GATE_COLUMNS, rows, meta={"run": found.run_id})
    if any(row["recomputed"] == "differs" for row in rows):
        raise typer.Exit(Exit.HALTED)


@command(app, "power")
def power(
    context: typer.Context,
    sweep: File,
    pairs: Pairs = 10,
    pilot: Pilot = "",
    wait: Wait = 0.0,
    dry_run: DryRun = False,
    *,
    expensive: Expensive = False,
) -> None:
    """Measure the incumbent beside itself, and say what gain the sweep's plan can see and how many pairs it needs.

    Example: outerloop-hpc evolve power sweep.yaml --pairs 10 --wait 3600

    The pilot is kept: `evolve submit` warns when the plan cannot see the gain that it asks for.
    """
    from outerloop_hpc.cli.sweeping import begin, estimate, made, read_pilot  # noqa: PLC0415 - heavy

    here = session(context)
    asked = made(here, sweep, expensive=expensive, dry_run=dry_run or bool(pilot), pilot=pairs)
    if pilot:
        sys.stdout.write(f"{read_pilot(asked, loaded(here, pilot))}\n")
        return
    for line in estimate(here, asked):
        talk(line)
    if dry_run:
        talk(f"would measure {pairs} pairs a task as {asked.spec.run}")
        return
    begin(here, asked)
    sys.stdout.write(f"{asked.spec.run}\n")
    status = _follow(here, asked.spec.run, wait)
    ended = loaded(here, asked.spec.run).state.ended
    if ended is not None:
        sys.stdout.write(f"{ended.reason}\n")
    if wait:
        raise typer.Exit(status)


@command(app, "cancel")
def cancel(context: typer.Context, run: Run, reason: Reason = "", dry_run: DryRun = False) -> None:
    """Stop a sweep: what is under way is cancelled, what is measured stays, `evolve resume` goes on from there.

    Example: outerloop-hpc evolve cancel 1a2b3c4d --reason "the cluster is needed"

    `outerloop-hpc runs end` ends it for good instead.
    """
    _decide(session(context), run, "park", reason, dry_run=dry_run)


@command(app, "resume")
def resume(context: typer.Context, run: Run, reason: Reason = "", dry_run: DryRun = False) -> None:
    """Let a stopped or parked sweep go on; no finished cell is measured again.

    Example: outerloop-hpc evolve resume 1a2b3c4d --reason "nodes are back"
    """
    _decide(session(context), run, "resume", reason, dry_run=dry_run)


def _decide(here: Session, run: str, action: PersonAction, reason: str, *, dry_run: bool) -> None:
    from outerloop_hpc.cli.runs import decide  # noqa: PLC0415 - heavy
    from outerloop_hpc.errors import UsageError  # noqa: PLC0415 - as above

    if not reason.strip():
        name = "cancel" if action == "park" else action
        raise UsageError(f"evolve {name} needs --reason: who reads the journal later wants to know why")
    found = loaded(here, run)
    if decide(here, found.run_id, action, reason, dry_run=dry_run):
        _follow(here, found.run_id, 0.0)
        if action == "resume":
            from outerloop_hpc.cli.wake import resumed  # noqa: PLC0415 - heavy

            resumed(here, found.run_id)


def loaded(here: Session, run: str) -> LiveRun:
    """Load a sweep.

    Raises:
        UsageError: there is no such run, or it is of another kind.
    """
    from outerloop_hpc.engine import watch as live  # noqa: PLC0415 - heavy
    from outerloop_hpc.engine.runs import find  # noqa: PLC0415 - as above
    from outerloop_hpc.errors import UsageError  # noqa: PLC0415 - as above
    from outerloop_hpc.evolve.work import KIND  # noqa: PLC0415 - as above

    found = live.load(here.layout, find(here.layout, run).run_id)
    if found.spec.kind != KIND:
        raise UsageError(
            f"{found.run_id} is a {found.spec.kind} run, no sweep; `outerloop-hpc evolve list --all` lists them"
        )
    return found


def _follow(here: Session, run: str, wait_s: float) -> int:
    """Make passes over one sweep, tell what changes, and return its verdict's exit status."""
    from outerloop_hpc.cli.follow import follow  # noqa: PLC0415 - heavy
    from outerloop_hpc.cli.sweeprows import said, verdict_status  # noqa: PLC0415 - as above
    from outerloop_hpc.clock import SystemClock  # noqa: PLC0415 - as above
    from outerloop_hpc.errors import Exit  # noqa: PLC0415 - as above
    from outerloop_hpc.evolve.standing import standing  # noqa: PLC0415 - as above

    spec, told = loaded(here, run).spec, [""]

    def tell(states: Sequence[RunState]) -> None:
        for state in states:
            line = said(spec, standing(spec, state, SystemClock().now()))
            if wait_s and line != told[0]:
                talk(line)
                told[0] = line

    passed = follow(here, [run], wait_s=wait_s, tell=tell)
    if passed is Exit.PARTLY_FAILED:
        return passed
    state = loaded(here, run).state
    if state.ended is not None:
        talk(f"{state.ended.ending}: {state.ended.reason}")
    elif state.parked is not None:
        talk(f"waits for a person: {state.parked.question}")
    return verdict_status(state)
