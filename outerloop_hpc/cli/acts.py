"""Options of the commands that change something on a forge, and how they say what they have done."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from outerloop_hpc.cli.options import DryRun, Out, bundled

if TYPE_CHECKING:
    from outerloop_hpc.cli.session import Session

AsJson = Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")]
Number = Annotated[str, typer.Argument(metavar="NUMBER", help="Number of an order, as `orders list` shows it.")]

_ACT: Mapping[str, Any] = {
    "author": (Annotated[str, typer.Option("--author", help="Who writes; your login name without it.")], ""),
    "as_json": (AsJson, False),
    "dry_run": (DryRun, False),
}
_WORDS: Mapping[str, Any] = {
    "body": (Annotated[str, typer.Option("--body", help="The text.")], ""),
    "body_file": (
        Annotated[str, typer.Option("--body-file", help="File with the text, - for stdin; at most 1 MB.")],
        "",
    ),
}


@dataclass(frozen=True, slots=True)
class Act:
    """Who acts, whether in earnest, and how it is told; an empty author is whoever is logged in."""

    author: str = ""
    as_json: bool = False
    dry_run: bool = False

    def told(self, here: Session, command: str, row: Mapping[str, object], line: str = "") -> None:
        """Write what was done; see ``told``."""
        told(here, command, row, as_json=self.as_json, line=line)


@dataclass(frozen=True, slots=True)
class Words:
    """What a person writes: the text itself, or where it is."""

    body: str = ""
    body_file: str = ""


def acts(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command that takes ``act: Act`` the options of acting on a forge instead of that parameter."""
    return bundled(command, "act", Act, _ACT)


def writes(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command that takes ``words: Words`` the options for a text instead of that parameter."""
    return bundled(command, "words", Words, _WORDS)


def told(here: Session, command: str, row: Mapping[str, object], *, as_json: bool, line: str = "") -> None:
    """Write what was done: the one row as JSON, else the line that is data (a number, a commit), if there is one."""
    from outerloop_hpc.cli.output import Column  # noqa: PLC0415 - keeps help quick

    if as_json:
        Out(json=True).show(here, command, [Column(name) for name in row], [row])
    elif line:
        sys.stdout.write(f"{line}\n")
