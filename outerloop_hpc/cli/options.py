"""Options that several commands share, and the session that ``--config`` and ``--state`` open."""

from __future__ import annotations

from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")]
Parsable = Annotated[bool, typer.Option("-P", "--parsable2", help="Columns separated by |, as sacct prints them.")]
Csv = Annotated[bool, typer.Option("--csv", help="Comma-separated values for spreadsheets.")]
Columns = Annotated[str, typer.Option("-o", "--format", help="Columns to show: a,b,c (see --helpformat).")]
NoHeader = Annotated[bool, typer.Option("-n", "--noheader", help="No header line.")]
HelpFormat = Annotated[bool, typer.Option("--helpformat", help="List the columns that -o knows.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the decisions with their reasons; write nothing.")]
Run = Annotated[str, typer.Argument(metavar="RUN", help="Run id, or an unambiguous beginning or end of one.")]
TargetName = Annotated[str, typer.Argument(metavar="TARGET", help="A target of the configuration.")]
Reason = Annotated[str, typer.Option("--reason", help="Why; it goes into the journal.")]
Since = Annotated[str, typer.Option("-S", "--starttime", help="From: 2026-11-29[T12:00], now-7days, today.")]
Until = Annotated[str, typer.Option("-E", "--endtime", help="Until, in the same words.")]
