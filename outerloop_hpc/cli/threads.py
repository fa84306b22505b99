"""Threads of a forge as text and as rows. Foreign text is indented, and nothing of it can drive the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from outerloop_hpc.cli.cells import plain
from outerloop_hpc.cli.output import Column
from outerloop_hpc.engine.spec import stamp
from outerloop_hpc.forge.text import visible
from outerloop_hpc.forge.thread import Said

THREAD_COLUMNS = (
    Column("at", "when"),
    Column("author", "who"),
    Column("event", "opened, comment, labels, closed, reopened or merged"),
    Column("body", "what was said", cut=True),
    Column("added", "labels given", shown=False),
    Column("removed", "labels taken", shown=False),
)
_INDENT = " " * 4
_LONGEST = 300


def order_text(target: str, row: Mapping[str, object], events: Sequence[Said]) -> str:
    """Return an order as text: what is known of it, its body, and its thread with authors and times."""
    fields = {
        "title": row["title"],
        "author": row["author"],
        "opened": row["opened_at"],
        "labels": ", ".join(_labels(row)) or "none",
        "standing": row["standing"],
        "claims": f"{row['claims']} so far: {row['attempts']} failed, {row['outages']} ended by an outage",
        "run": row["run"],
    }
    lines = [f"order {row['number']} of {target}: {row['state']}", *field_lines(fields)]
    lines += body_lines(events[0].body)
    for said in events[1:]:
        lines += ["", f"{stamp(said.at)}  {inline(said.author)}{_did(said)}"]
        lines += body_lines(said.body, gap=False)
    return "\n".join(lines) + "\n"


def _labels(row: Mapping[str, object]) -> list[str]:
    """Return the labels of an order's row, each on one line."""
    labels = row["labels"]
    return [inline(str(label)) for label in labels] if isinstance(labels, tuple | list) else []


def thread_rows(events: Sequence[Said]) -> Iterator[Mapping[str, object]]:
    """Yield one row per event, as it was written: what writes them out makes them harmless."""
    for said in events:
        yield {
            "at": said.at,
            "author": said.author,
            "event": said.kind,
            "body": said.body,
            "added": said.added,
            "removed": said.removed,
        }


def field_lines(fields: Mapping[str, object]) -> list[str]:
    """Return names and values in two columns; what is not known is left out."""
    known = {name: value for name, value in fields.items() if value not in {None, ""}}
    longest = max(map(len, known), default=0)
    return [f"  {name.ljust(longest)}  {inline(plain(value))}" for name, value in known.items()]


def body_lines(text: str, *, gap: bool = True) -> list[str]:
    """Return foreign text as indented lines, so that none of it can pass for a line of ours."""
    shown = visible(text).rstrip("\n")
    if not shown:
        return []
    return [""] * gap + [f"{_INDENT}{line}".rstrip() for line in shown.split("\n")]


def inline(text: str) -> str:
    """Return foreign text on one line."""
    flat = " ".join(visible(text).split())
    return flat if len(flat) <= _LONGEST else f"{flat[:_LONGEST]}…"


def _did(said: Said) -> str:
    if said.kind == "comment":
        return ""
    if said.kind == "labels":
        changed = [f"+{inline(one)}" for one in said.added] + [f"-{inline(one)}" for one in said.removed]
        return f"  labels {' '.join(changed)}"
    return f"  {said.kind} it" + (f" as {said.commit[:12]}" if said.kind == "merged" else "")
