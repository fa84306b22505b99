"""Rows on stdout: table, JSON, parsable and CSV, with sacct's column manners. Talk goes to stderr, never here.

The unit of a column is in its name (``elapsed_s``, ``memory_used_bytes``, ``cpu_efficiency``): machines get plain
numbers in every form, people get them readable in tables. Written by hand because rich wraps and cuts ids, reads
markup in data, and costs 0.1 s of every start.
"""

from __future__ import annotations

import csv
import difflib
import io
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, TextIO

from outerloop_hpc.cli.cells import escaped, harmless, plain, readable, width
from outerloop_hpc.cli.terminal import Terminal
from outerloop_hpc.errors import UsageError

SCHEMA: Final = "output/1"
_GAP: Final = "  "
_LEAST_CUT: Final = 8
_FORMULA_STARTS: Final = ("=", "+", "-", "@", "\t", "\r")


class Form(StrEnum):
    """How rows are written."""

    TABLE = "table"
    JSON = "json"
    PARSABLE = "parsable2"
    CSV = "csv"


@dataclass(frozen=True, slots=True)
class Column:
    """One column.

    Attributes:
        name: key in the rows and word for ``-o``.
        help: its meaning, for ``--helpformat``.
        shown: whether it is in the table when nobody chooses.
        cut: free text that may be cut to fit a terminal; ids and paths never are.
    """

    name: str
    help: str = ""
    shown: bool = True
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Manner:
    """What the caller asked for on the command line.

    Attributes:
        form: ``--json``, ``-P``, ``--csv`` or a table.
        chosen: ``-o a,b,c``; empty for the default columns.
        header: false after ``-n``.
    """

    form: Form = Form.TABLE
    chosen: str = ""
    header: bool = True


@dataclass(frozen=True, slots=True)
class Listing:
    """What a command lists.

    Attributes:
        command: its name, for the JSON object.
        columns: all columns that it knows.
        rows: column name to value; a missing or ``None`` value is "not known".
        meta: further keys of the JSON object (window, formulas, problems …).
        footer: lines under a table: window, formulas.
    """

    command: str
    columns: Sequence[Column]
    rows: Iterable[Mapping[str, object]]
    meta: Mapping[str, object] = field(default_factory=dict)
    footer: Sequence[str] = ()


def emit(listing: Listing, manner: Manner, stream: TextIO, terminal: Terminal) -> None:
    """Write a listing to ``stream`` in the manner asked for.

    Raises:
        UsageError: ``-o`` names a column that does not exist.
    """
    columns = choose(listing.columns, manner.chosen, everything=manner.form is Form.JSON)
    rows = list(listing.rows)
    if manner.form is Form.JSON:
        text = _json(listing, columns, rows)
    elif manner.form is Form.CSV:
        text = _csv(columns, rows, header=_with_header(manner, columns))
    elif manner.form is Form.PARSABLE:
        text = _parsable(columns, rows, header=_with_header(manner, columns))
    else:
        text = _table(listing, columns, rows, terminal, header=_with_header(manner, columns))
    stream.write(encodable(text, stream))


def helpformat(columns: Sequence[Column], stream: TextIO) -> None:
    """Write the columns that ``-o`` knows, one a line, as a name and its meaning."""
    longest = max((width(column.name) for column in columns), default=0)
    lines = (f"{column.name.ljust(longest)}{_GAP}{column.help}".rstrip() for column in columns)
    stream.write(encodable("".join(f"{line}\n" for line in lines), stream))


def choose(columns: Sequence[Column], chosen: str, *, everything: bool = False) -> tuple[Column, ...]:
    """Pick the columns of ``-o a,b,c``, in that order; ``+x`` adds x to the default ones.

    Raises:
        UsageError: a name is not known; the text suggests the nearest one.
    """
    names = {column.name: column for column in columns}
    words = [word.strip() for word in chosen.split(",") if word.strip()]
    default = tuple(column for column in columns if everything or column.shown)
    if not words:
        return default
    picked = list(default) if words[0].startswith("+") else []
    for word in words:
        column = names.get(word.removeprefix("+").lower())
        if column is None:
            raise UsageError(_no_column(word.removeprefix("+"), list(names)))
        if column not in picked:
            picked.append(column)
    return tuple(picked)


def _no_column(word: str, names: list[str]) -> str:
    close = difflib.get_close_matches(word.lower(), names, n=1, cutoff=0.5)
    hint = f"did you mean {close[0]}?" if close else f"known: {', '.join(names)}"
    return f"there is no column {word!r}; {hint} (--helpformat lists them)"


def _with_header(manner: Manner, columns: Sequence[Column]) -> bool:
    # One column is a list for a pipe: `… -o run_id | xargs -n1 outerloop-hpc explain`.
    return manner.header and len(columns) > 1


def _json(listing: Listing, columns: Sequence[Column], rows: Sequence[Mapping[str, object]]) -> str:
    document = {
        **listing.meta,
        "schema": SCHEMA,
        "command": listing.command,
        "rows": [{column.name: row.get(column.name) for column in columns} for row in rows],
    }
    return json.dumps(_jsonable(document), allow_nan=False) + "\n"


def _jsonable(value: Any) -> Any:
    """Make JSON of any value; what is not a number in JSON (NaN, infinity) is unknown there."""
    if isinstance(value, Mapping):
        return {str(name): _jsonable(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_jsonable(inner) for inner in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, str | int) else plain(value)


def _csv(columns: Sequence[Column], rows: Sequence[Mapping[str, object]], *, header: bool) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if header:
        writer.writerow([column.name for column in columns])
    for row in rows:
        writer.writerow([_spreadsheet(row.get(column.name)) for column in columns])
    return text.getvalue()


def _spreadsheet(value: object) -> str:
    text = harmless(plain(value), keep="\n\t")
    # A job name "=HYPERLINK(…)" must stay a name; numbers are ours and keep their sign.
    return f"'{text}" if isinstance(value, str) and text.startswith(_FORMULA_STARTS) else text


def _parsable(columns: Sequence[Column], rows: Sequence[Mapping[str, object]], *, header: bool) -> str:
    lines = ["|".join(column.name for column in columns)] if header else []
    lines += ["|".join(escaped(plain(row.get(column.name))) for column in columns) for row in rows]
    return "".join(f"{line}\n" for line in lines)


def _table(
    listing: Listing,
    columns: Sequence[Column],
    rows: Sequence[Mapping[str, object]],
    terminal: Terminal,
    *,
    header: bool,
) -> str:
    cells = [[harmless(readable(column.name, row.get(column.name))) for column in columns] for row in rows]
    title = [column.name for column in columns]
    lines = ([title] if header else []) + cells
    if not lines:
        return ""
    widths = [max(map(width, column)) for column in zip(*lines, strict=True)]
    if terminal.tty:
        widths = _fitted(columns, widths, terminal.columns)
    right = [_is_numeric(column.name, rows) for column in columns]
    printed = [_line(line, widths, right) for line in lines]
    if header:
        printed[0] = terminal.bold(printed[0])
    if header and listing.footer:
        printed += ["", *(harmless(line) for line in listing.footer)]
    return "".join(f"{line}\n" for line in printed)


def _fitted(columns: Sequence[Column], widths: list[int], room: int) -> list[int]:
    """Narrow the cuttable columns, the widest first, until the line fits; ids stay whole even if it never does."""
    fitted = list(widths)
    over = sum(fitted) + len(_GAP) * (len(fitted) - 1) - room
    for place in sorted((i for i, column in enumerate(columns) if column.cut), key=lambda i: -widths[i]):
        if over <= 0:
            break
        least = min(fitted[place], max(_LEAST_CUT, width(columns[place].name)))
        narrowed = max(least, fitted[place] - over)
        over -= fitted[place] - narrowed
        fitted[place] = narrowed
    return fitted


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    padded = []
    for cell, room, to_right in zip(cells, widths, right, strict=True):
        text = _cut(cell, room)
        space = " " * (room - width(text))
        padded.append(space + text if to_right else text + space)
    return _GAP.join(padded).rstrip()


def _cut(text: str, room: int) -> str:
    if width(text) <= room:
        return text
    while width(text) > room - 1:
        text = text[:-1]
    return f"{text}…"


def _is_numeric(name: str, rows: Sequence[Mapping[str, object]]) -> bool:
    values = [row.get(name) for row in rows]
    known = [value for value in values if value is not None]
    return bool(known) and all(isinstance(value, int | float) and not isinstance(value, bool) for value in known)


def encodable(text: str, stream: TextIO) -> str:
    """Return what the stream can take: an umlaut under LC_ALL=C must not end the command with a traceback."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return text.encode(encoding, errors="backslashreplace").decode(encoding)
