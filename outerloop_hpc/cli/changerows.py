"""Rows and text about proposed changes: what became of each, and which paths it changes."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from outerloop_hpc.cli.cells import harmless
from outerloop_hpc.cli.output import Column
from outerloop_hpc.cli.threads import body_lines, field_lines, inline
from outerloop_hpc.documents import load
from outerloop_hpc.engine.layout import Layout, RunFolder
from outerloop_hpc.engine.runs import find
from outerloop_hpc.engine.spec import RunSpec, stamp
from outerloop_hpc.errors import Fault, OuterloopError, UsageError
from outerloop_hpc.forge.local import LocalForge
from outerloop_hpc.forge.port import Change, NotThere
from outerloop_hpc.forge.thread import Said
from outerloop_hpc.target.repository import Repository

CHANGE_COLUMNS = (
    Column("change", "id of the change"),
    Column("state", "open, merged, closed or unreadable"),
    Column("order", "number of the order that it answers"),
    Column("title", "what it does", cut=True),
    Column("branch", "its branch"),
    Column("onto", "branch that it is meant for", shown=False),
    Column("commit", "its head"),
    Column("opened_at", "when it was opened"),
    Column("merged_as", "commit that brought it in", shown=False),
    Column("decided_by", "who merged or closed it", shown=False),
    Column("reason", "why it was closed, or what cannot be read", shown=False),
)
PATH_COLUMNS = (
    Column("path", "path of the repository"),
    Column("what", "added, changed, deleted or type changed"),
    Column("mode", "as git stores it, before and after", shown=False),
)
_WORDS = {"A": "added", "M": "changed", "D": "deleted", "T": "type changed"}
_UNREADABLE = "unreadable"


def change_rows(forge: LocalForge, *, everything: bool) -> list[Mapping[str, object]]:
    """Return one row per change, oldest first; one that cannot be read comes last, and is always there."""
    rows, broken = [], []
    for change_id in forge.change_ids():
        try:
            change = forge.change(change_id)
            if everything or change.status == "open":
                rows.append(change_row(change, forge.change_events(change_id)))
        except (Fault, NotThere) as fault:
            broken.append({"change": change_id, "state": _UNREADABLE, "title": str(fault), "reason": str(fault)})
    return [*sorted(rows, key=lambda row: str(row["opened_at"])), *broken]


def unreadable(row: Mapping[str, object]) -> bool:
    """Whether a row is of something that cannot be read."""
    return row["state"] == _UNREADABLE


def change_row(change: Change, events: Sequence[Said]) -> Mapping[str, object]:
    """Return the row of one change."""
    first = events[0]
    decided = next((said for said in events if said.kind in {"merged", "closed"}), None)
    return {
        "change": change.change_id,
        "state": change.status,
        "order": first.order or None,
        "title": first.title,
        "branch": change.branch,
        "onto": first.onto,
        "commit": change.commit,
        "opened_at": first.at,
        "merged_as": change.merged_as or None,
        "decided_by": None if decided is None else decided.author,
        "reason": None if decided is None else decided.body or None,
    }


@dataclass(frozen=True, slots=True)
class Diff:
    """The paths that a change changes against ``base``, the commit its run began with; or why they are not known."""

    rows: Sequence[Mapping[str, object]] = ()
    base: str = ""
    where: str = ""
    problem: str = ""


def diff_of(layout: Layout, forge: LocalForge, opening: Said) -> Diff:
    """Compare a change with its base."""
    try:
        spec: RunSpec = load(RunSpec, _run_of(layout, opening.branch).spec)
        repository = Repository(forge.branches.folder)
        found = repository.changes(spec.commit, opening.commit)
    except (OuterloopError, FileNotFoundError) as error:
        return Diff(problem=f"its paths are not known: {error}")
    rows = [
        {
            "path": os.fsencode(one.path).decode("utf-8", errors="backslashreplace"),
            "what": _WORDS.get(one.status, one.status),
            "mode": f"{one.old_mode:06o} {one.new_mode:06o}",
        }
        for one in found
    ]
    return Diff(rows, spec.commit, str(repository.folder))


def _run_of(layout: Layout, branch: str) -> RunFolder:
    """Return the run that proposed a branch: the last part of its name is the run's id, or a kind and the id's end."""
    name = branch.rpartition("/")[2]
    try:
        return layout.run(name)
    except UsageError:
        return find(layout, name.rpartition("-")[2])


def change_text(target: str, row: Mapping[str, object], events: Sequence[Said], diff: Diff) -> str:
    """Return a change as text: what is known of it, its body, what became of it, and its paths."""
    fields = {
        "title": row["title"],
        "order": row["order"],
        "branch": row["branch"],
        "onto": row["onto"],
        "commit": row["commit"],
        "base": diff.base,
        "opened": row["opened_at"],
        "merged as": row["merged_as"],
    }
    lines = [f"change {row['change']} of {target}: {row['state']}", *field_lines(fields)]
    lines += body_lines(events[0].body)
    for said in events[1:]:
        lines += ["", f"{stamp(said.at)}  {inline(said.author)}  {said.kind} it", *body_lines(said.body, gap=False)]
    lines += ["", harmless(diff.problem) if diff.problem else f"{len(diff.rows)} paths differ from its base"]
    # Left column first, so that no path can push the word about it out of sight.
    lines += [f"  {one['what']!s:<12}  {harmless(str(one['path']))}" for one in diff.rows]
    if diff.base:
        lines += ["", f"git -C {shlex.quote(harmless(diff.where))} diff {diff.base[:12]} {str(row['commit'])[:12]}"]
    return "\n".join(lines) + "\n"
