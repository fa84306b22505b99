"""Options that several commands share; ``@lists`` gives a command sacct's output manners."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

if TYPE_CHECKING:
    from outerloop_hpc.cli.output import Column
    from outerloop_hpc.cli.session import Session

DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the decisions with their reasons; write nothing.")]
Run = Annotated[str, typer.Argument(metavar="RUN", help="Run id, or an unambiguous beginning or end of one.")]
TargetName = Annotated[str, typer.Argument(metavar="TARGET", help="A target of the configuration.")]
Reason = Annotated[str, typer.Option("--reason", help="Why; it goes into the journal.")]
Since = Annotated[str, typer.Option("-S", "--starttime", help="From: 2026-11-29[T12:00], now-7days, today.")]
Until = Annotated[str, typer.Option("-E", "--endtime", help="Until, in the same words.")]
Users = Annotated[str, typer.Option("-u", "--user", help="Only these users: a,b.")]


def _seconds(value: float) -> float:
    # Asked this way round because no comparison with NaN is true: a wait of NaN seconds would never be over.
    if value >= 0:
        return value
    raise typer.BadParameter(f"{value:g} is no time to wait; give seconds, 0 or more")


Wait = Annotated[
    float,
    typer.Option("--wait", callback=_seconds, help="Stay until the run needs no more, at most so many seconds."),
]
Patience = Annotated[
    float, typer.Option("--wait", callback=_seconds, show_default="no end", help="Stay at most so many seconds.")
]

_MANNERS: Mapping[str, Any] = {
    "json": (Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")], False),
    "parsable": (Annotated[bool, typer.Option("-P", "--parsable2", help="Columns separated by |, as sacct.")], False),
    "csv": (Annotated[bool, typer.Option("--csv", help="Comma-separated values for spreadsheets.")], False),
    "columns": (Annotated[str, typer.Option("-o", "--format", help="Columns to show: a,b,c.")], ""),
    "noheader": (Annotated[bool, typer.Option("-n", "--noheader", help="No header line.")], False),
    "helpformat": (Annotated[bool, typer.Option("--helpformat", help="List the columns that -o knows.")], False),
}


@dataclass(frozen=True, slots=True)
class Out:
    """How one command's rows are to be written."""

    json: bool = False
    parsable: bool = False
    csv: bool = False
    columns: str = ""
    noheader: bool = False
    helpformat: bool = False

    def offer(self, columns: Sequence[Column]) -> None:
        """Answer ``--helpformat`` before any work is done.

        Raises:
            typer.Exit: it was asked for.
        """
        if self.helpformat:
            from outerloop_hpc.cli.output import helpformat  # noqa: PLC0415 - only when asked for

            helpformat(columns, sys.stdout)
            raise typer.Exit

    def show(
        self,
        here: Session,
        command: str,
        columns: Sequence[Column],
        rows: Iterable[Mapping[str, object]],
        *,
        footer: Sequence[str] = (),
        meta: Mapping[str, object] | None = None,
    ) -> None:
        """Write rows to stdout.

        Raises:
            UsageError: two forms at once, or an unknown column.
        """
        from outerloop_hpc.cli.output import Form, Listing, Manner, emit  # noqa: PLC0415 - only commands that list
        from outerloop_hpc.cli.terminal import terminal  # noqa: PLC0415 - as above
        from outerloop_hpc.errors import UsageError  # noqa: PLC0415 - as above

        if self.json + self.parsable + self.csv > 1:
            raise UsageError("--json, -P and --csv exclude each other; choose one form")
        form = Form.JSON if self.json else Form.PARSABLE if self.parsable else Form.CSV if self.csv else Form.TABLE
        listing = Listing(command, columns, rows, meta or {}, footer)
        emit(listing, Manner(form, self.columns, not self.noheader), sys.stdout, terminal(sys.stdout, here.environ))


def command(app: typer.Typer, name: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add a command whose help starts with its example; lists of commands show the docstring's first line."""

    def add(function: Callable[..., None]) -> Callable[..., None]:
        parts = inspect.cleandoc(function.__doc__ or "").split("\n\n")
        ordered = sorted(parts, key=lambda part: not part.startswith("Example:"))
        app.command(name, help="\n\n".join(ordered), short_help=parts[0])(function)
        return function

    return add


def lists(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command that takes ``out: Out`` the options of sacct's manners instead of that parameter."""
    return bundled(command, "out", Out, _MANNERS)


def bundled(
    command: Callable[..., None], parameter: str, bundle: Callable[..., Any], options: Mapping[str, Any]
) -> Callable[..., None]:
    """Give a command options, name to (annotation, default), that reach it as one parameter made by ``bundle``."""
    hints = get_type_hints(command, include_extras=True)
    signature = inspect.signature(command)
    own = [p.replace(annotation=hints[n]) for n, p in signature.parameters.items() if n != parameter]
    keyword = inspect.Parameter.KEYWORD_ONLY
    added = [
        inspect.Parameter(name, keyword, default=default, annotation=annotation)
        for name, (annotation, default) in options.items()
    ]

    @functools.wraps(command)
    def wrapper(*args: Any, **given: Any) -> None:
        made = bundle(**{name: given.pop(name) for name in options})
        command(*args, **{parameter: made}, **given)

    wrapper.__signature__ = inspect.Signature([*own, *added])  # type: ignore[attr-defined]
    wrapper.__annotations__ = {p.name: p.annotation for p in (*own, *added)}
    del wrapper.__wrapped__
    return wrapper
