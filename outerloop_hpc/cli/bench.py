"""``bench run|history|compare|ledger``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from outerloop_hpc.cli.options import DryRun, Out, TargetName, Wait, command, lists
from outerloop_hpc.cli.session import Session, session, talk

if TYPE_CHECKING:
    from outerloop_hpc.measure.history import Point

app = typer.Typer(help="Measure benchmarks, look at their history.", no_args_is_help=True, rich_markup_mode=None)

Benchmarks = Annotated[list[str] | None, typer.Option("--benchmark", "-b", help="Only this one; may be repeated.")]
OneBenchmark = Annotated[str, typer.Option("--benchmark", "-b", help="Which one, when the target has several.")]
Commit = Annotated[str, typer.Option("--commit", help="Measure this commit instead of the head.")]
Seeds = Annotated[str, typer.Option("--seeds", help="Seeds instead of the fixed ones: 1,2,3.")]
Old = Annotated[str, typer.Argument(metavar="A", help="Commit or run to compare with.")]
New = Annotated[str, typer.Argument(metavar="B", help="Commit or run to judge.")]
OfTarget = Annotated[str, typer.Option("--target", help="Which target, when there are several.")]


@command(app, "run")
def run(
    context: typer.Context,
    target: TargetName,
    benchmark: Benchmarks = None,
    commit: Commit = "",
    seeds: Seeds = "",
    wait: Wait = 0.0,
    dry_run: DryRun = False,
) -> None:
    """Measure a target now, whether its head moved or not. Prints the run ids.

    Example: outerloop-hpc bench run iris --commit HEAD --seeds 1,2,3,4,5 --wait 600
    """
    from outerloop_hpc.benchmark.lane import BenchmarkLane  # noqa: PLC0415 - heavy
    from outerloop_hpc.benchmark.work import KIND  # noqa: PLC0415 - as above
    from outerloop_hpc.cli.follow import follow  # noqa: PLC0415 - as above
    from outerloop_hpc.engine import runs  # noqa: PLC0415 - as above

    here = session(context)
    with here.targets(dry_run=dry_run) as targets:
        lane = BenchmarkLane(targets)
        seen = targets.look(target, commit)
        wanted = lane.wanted(seen, benchmark or ())
        targets.check_week(KIND, seen, len(wanted))
        cause = f"asked for at {seen.commit[:12]}"
        specs = [lane.spec(seen, one, cause=cause, seeds=_seeds(seeds)) for one in wanted]
    if dry_run:
        for spec in specs:
            talk(f"would measure {spec.work['benchmark']} at {spec.commit} with seeds {spec.work['seeds']}")
        return
    for spec in specs:
        runs.ensure(here.layout, spec)
        sys.stdout.write(f"{spec.run}\n")
    status = follow(here, [spec.run for spec in specs], wait_s=wait)
    if wait:
        raise typer.Exit(status)


@command(app, "history")
@lists
def history(context: typer.Context, target: TargetName, *, out: Out, benchmark: OneBenchmark = "") -> None:
    """List what was measured, oldest first, each with the verdict against the commit before it.

    Example: outerloop-hpc bench history iris -b accuracy
    """
    from outerloop_hpc.cli.points import HISTORY_COLUMNS, history_rows  # noqa: PLC0415 - heavy

    out.offer(HISTORY_COLUMNS)
    here = session(context)
    out.show(here, "bench history", HISTORY_COLUMNS, history_rows(here.layout, target, benchmark))


@command(app, "compare")
@lists
def compare(
    context: typer.Context, old: Old, new: New, *, out: Out, target: OfTarget = "", benchmark: OneBenchmark = ""
) -> None:
    """Compare two commits or runs in pairs of equal seeds: better, worse, no difference, or too few.

    Example: outerloop-hpc bench compare 3f2a91c 8bd04e7 --target iris
    """
    from outerloop_hpc.cli.points import COMPARE_COLUMNS, compare_rows, compare_text  # noqa: PLC0415 - heavy

    out.offer(COMPARE_COLUMNS)
    here = session(context)
    found = list(_pairs(here, old, new, target, benchmark))
    if out != Out():
        out.show(here, "bench compare", COMPARE_COLUMNS, compare_rows(found))
    else:
        sys.stdout.write(compare_text(found))


@command(app, "ledger")
@lists
def ledger(context: typer.Context, target: TargetName, *, out: Out) -> None:
    """List the best known number of each benchmark, computed from the history.

    Example: outerloop-hpc bench ledger iris
    """
    from outerloop_hpc.cli.points import LEDGER_COLUMNS, ledger_rows  # noqa: PLC0415 - as above
    from outerloop_hpc.errors import UsageError  # noqa: PLC0415 - as above
    from outerloop_hpc.measure.results import best_points, refresh_ledger  # noqa: PLC0415 - heavy

    out.offer(LEDGER_COLUMNS)
    here = session(context)
    rows = refresh_ledger(here.layout.results, target)
    if not rows and target not in here.settings.targets:
        raise UsageError(f"nothing was measured of {target}, and no target of that name is configured")
    footer = [f"rendered into {here.layout.results / target}/BENCHMARKS.md and leader.json"] if rows else []
    out.show(
        here,
        "bench ledger",
        LEDGER_COLUMNS,
        ledger_rows(rows, best_points(here.layout.results, target, rows)),
        footer=footer,
    )


def _pairs(here: Session, old: str, new: str, target: str, benchmark: str) -> list[tuple[Point, Point]]:
    from outerloop_hpc.cli.points import only_target  # noqa: PLC0415 - as above
    from outerloop_hpc.errors import UsageError  # noqa: PLC0415 - as above
    from outerloop_hpc.measure.history import pick_pair  # noqa: PLC0415 - heavy
    from outerloop_hpc.measure.results import benchmarks, points  # noqa: PLC0415 - as above

    chosen = only_target(here.layout, target)
    names = [benchmark] if benchmark else benchmarks(here.layout.results, chosen)
    found, missing = [], []
    for name in names:
        known = points(here.layout.results, chosen, name)
        try:
            found.append(pick_pair(known, old, new))
        except UsageError as error:
            missing.append(str(error))
    if not found:
        raise UsageError(missing[0] if missing else f"nothing was measured of {chosen} yet")
    return found


def _seeds(text: str) -> tuple[int, ...]:
    from outerloop_hpc.errors import UsageError  # noqa: PLC0415 - keeps help quick

    try:
        found = tuple(int(part) for part in text.split(",")) if text else ()
    except ValueError as error:
        raise UsageError(f"--seeds {text!r}: whole numbers separated by commas are needed: 1,2,3") from error
    if len(set(found)) != len(found) or any(not 0 <= seed < 2**63 for seed in found):
        raise UsageError(f"--seeds {text!r}: each seed once, from 0 to 2^63-1")
    return found
