"""``report runs|jobs|costs``: what ran and what it cost, from the archived accounting rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from outerloop_hpc.cli.options import Out, Since, Until, Users, bundled, command, lists
from outerloop_hpc.cli.session import session

if TYPE_CHECKING:
    from outerloop_hpc.cli.output import Column

app = typer.Typer(help="What ran, what it cost, what died and why.", no_args_is_help=True, rich_markup_mode=None)

By = Annotated[str, typer.Option("--by", help="Group by: month,account,partition,qos,user,cluster,compute,outcome.")]


_FILTERS: Mapping[str, Any] = {
    "run": (Annotated[str, typer.Option("--run", help="Only this run.")], ""),
    "since": (Since, ""),
    "until": (Until, ""),
    "users": (Users, ""),
    "accounts": (Annotated[str, typer.Option("-A", "--accounts", help="Only these accounts: a,b.")], ""),
    "clusters": (Annotated[str, typer.Option("-M", "--clusters", help="Only these clusters: a,b.")], ""),
    "states": (Annotated[str, typer.Option("-s", "--state", help="Only these Slurm states: FAILED,TIMEOUT.")], ""),
}


def _filters(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command that takes ``only: dict[str, str]`` the options that choose rows instead of that parameter."""
    return bundled(command, "only", dict, _FILTERS)


@command(app, "jobs")
@lists
@_filters
def jobs(context: typer.Context, *, out: Out, only: dict[str, str]) -> None:
    """One row per try of every run: Slurm's state, elapsed, CPU and memory efficiency, node, cost.

    Example: outerloop-hpc report jobs -S now-7days -s FAILED,TIMEOUT
    """
    from outerloop_hpc.cli.archived import chosen_pairs  # noqa: PLC0415 - heavy
    from outerloop_hpc.report import rows  # noqa: PLC0415 - as above

    shown = _columns(rows.JOB_COLUMNS, rows.JOB_SHOWN)
    out.offer(shown)
    here = session(context)
    found = chosen_pairs(here.layout, **only)
    made = [rows.job_row(job, run_id) for run_id, job in found.pairs]
    out.show(here, "report jobs", shown, made, footer=found.footer(out.columns or rows.JOB_SHOWN), meta=found.meta())


@command(app, "runs")
@lists
@_filters
def runs(context: typer.Context, *, out: Out, only: dict[str, str]) -> None:
    """One row per run, of the tries that were asked for: by outcome, elapsed, CPU and GPU hours, efficiency.

    Example: outerloop-hpc report runs -S now-30days --json
    """
    from outerloop_hpc.cli.archived import chosen_pairs  # noqa: PLC0415 - heavy
    from outerloop_hpc.report import rows  # noqa: PLC0415 - as above
    from outerloop_hpc.report.runs import run_reports  # noqa: PLC0415 - as above

    shown = _columns(rows.RUN_COLUMNS, rows.RUN_SHOWN)
    out.offer(shown)
    here = session(context)
    found = chosen_pairs(here.layout, **only)
    made = [rows.run_row(one) for one in run_reports(found.pairs)]
    out.show(here, "report runs", shown, made, footer=found.footer(out.columns or rows.RUN_SHOWN), meta=found.meta())


@command(app, "costs")
@lists
@_filters
def costs(context: typer.Context, *, out: Out, only: dict[str, str], by: By = "month,user") -> None:
    """CPU and GPU hours by month, account, partition, user …; what only touches the window counts with its part.

    Example: outerloop-hpc report costs --by month,account,partition
    """
    from outerloop_hpc.cli.archived import chosen_pairs  # noqa: PLC0415 - heavy
    from outerloop_hpc.report import rows  # noqa: PLC0415 - as above
    from outerloop_hpc.report.costs import costs as sum_up  # noqa: PLC0415 - as above

    keys = tuple(word for word in by.split(",") if word)
    names = {**dict.fromkeys(keys, "grouped by this"), **rows.COST_COLUMNS}
    shown = _columns(names, tuple(names))
    out.offer(shown)
    here = session(context)
    found = chosen_pairs(here.layout, **only)
    made = sum_up([job for _, job in found.pairs], keys, found.window, now=int(time.time()))
    footer = found.footer(out.columns or tuple(names))
    listed = [rows.cost_row(cost, keys) for cost in made]
    out.show(here, "report costs", shown, listed, footer=footer, meta=found.meta())


def _columns(meanings: Mapping[str, str], shown: Sequence[str]) -> tuple[Column, ...]:
    from outerloop_hpc.cli.output import Column  # noqa: PLC0415 - heavy

    return tuple(Column(name, text, shown=name in shown, cut=name == "notes") for name, text in meanings.items())
