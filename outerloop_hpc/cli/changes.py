"""``changes list|show|merge|close``: what was proposed on a target's local forge."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from outerloop_hpc.cli.acts import Act, acts
from outerloop_hpc.cli.options import Out, TargetName, command, lists
from outerloop_hpc.cli.session import session, talk
from outerloop_hpc.errors import Exit, UsageError

app = typer.Typer(help="Look at proposed changes, merge or close them.", no_args_is_help=True, rich_markup_mode=None)

All = Annotated[bool, typer.Option("--all", "-a", help="Also merged and closed ones.")]
ChangeId = Annotated[str, typer.Argument(metavar="ID", help="Id of a change, as `changes list` shows it.")]
Why = Annotated[str, typer.Option("--reason", help="Why; it stays with the change.")]


@command(app, "list")
@lists
def list_changes(context: typer.Context, target: TargetName, *, out: Out, everything: All = False) -> None:
    """List the open changes of a target, oldest first.

    Example: outerloop-hpc changes list iris --all

    A change that cannot be read is a row that says so, and the exit status is 3.
    """
    from outerloop_hpc.cli.changerows import CHANGE_COLUMNS, change_rows, unreadable  # noqa: PLC0415 - heavy
    from outerloop_hpc.cli.forges import forge_of  # noqa: PLC0415 - as above

    out.offer(CHANGE_COLUMNS)
    here = session(context)
    rows = change_rows(forge_of(here, target), everything=everything)
    out.show(here, "changes list", CHANGE_COLUMNS, rows, meta={"target": target})
    raise typer.Exit(Exit.FINDINGS if any(map(unreadable, rows)) else Exit.DONE)


@command(app, "show")
@lists
def show(context: typer.Context, target: TargetName, change: ChangeId, *, out: Out) -> None:
    """Print one change: its text, branches, commit and order, and the paths it changes against its base.

    Example: outerloop-hpc changes show iris 1a2b3c4d
    """
    from outerloop_hpc.cli.changerows import PATH_COLUMNS, change_row, change_text, diff_of  # noqa: PLC0415 - heavy
    from outerloop_hpc.cli.forges import change_there, forge_of  # noqa: PLC0415 - as above
    from outerloop_hpc.cli.output import encodable  # noqa: PLC0415 - as above

    out.offer(PATH_COLUMNS)
    here = session(context)
    forge = forge_of(here, target)
    events = forge.change_events(change_there(forge, target, change))
    row, diff = change_row(forge.change(change), events), diff_of(here.layout, forge, events[0])
    if out != Out():
        meta = {"target": target, **row, "body": events[0].body, "base": diff.base or None, "problem": diff.problem}
        out.show(here, "changes show", PATH_COLUMNS, diff.rows, meta=meta)
        return
    sys.stdout.write(encodable(change_text(target, row, events, diff), sys.stdout))


@command(app, "merge")
@acts
def merge(
    context: typer.Context,
    target: TargetName,
    change: ChangeId,
    *,
    act: Act,
) -> None:
    """Merge a change into the branch it is meant for, and close its order. Prints the commit.

    Example: outerloop-hpc changes merge iris 1a2b3c4d

    Where both sides changed the same lines nothing is done, and the text says how to merge by hand; what is merged
    already is found so. The next pass ends the run that proposed it.
    """
    from outerloop_hpc.cli.forges import change_there, forge_of, person  # noqa: PLC0415 - heavy

    here = session(context)
    forge = forge_of(here, target)
    change_id, who = change_there(forge, target, change), person(forge, act.author)
    before, onto = forge.change(change_id), forge.opening(change_id).onto
    repository = here.settings.targets[target].repository
    if act.dry_run and before.status == "open":
        talk(f"would merge {before.branch} ({before.commit[:12]}) into {onto} of {repository} as {who}")
        return
    if act.dry_run:
        talk(f"change {change_id} is {before.status} already; nothing would be merged")
        return
    merged = forge.merge(change_id, author=who, repository=repository)
    talk(f"change {change_id} {'was merged already' if before.status == 'merged' else f'is merged into {onto}'}")
    row = {"target": target, "change": change_id, "state": merged.status, "merged_as": merged.merged_as}
    act.told(here, "changes merge", row, merged.merged_as)


@command(app, "close")
@acts
def close(
    context: typer.Context,
    target: TargetName,
    change: ChangeId,
    *,
    act: Act,
    reason: Why = "",
) -> None:
    """Close a change without merging it; the next pass ends its run, and its order waits for a comment or a label.

    Example: outerloop-hpc changes close iris 1a2b3c4d --reason "the new split is too small"
    """
    from outerloop_hpc.cli import given  # noqa: PLC0415 - heavy
    from outerloop_hpc.cli.forges import change_there, forge_of, person  # noqa: PLC0415 - as above

    here = session(context)
    forge = forge_of(here, target)
    change_id, who = change_there(forge, target, change), person(forge, act.author)
    if not reason.strip():
        raise UsageError("changes close needs --reason: who gave the order wants to know why")
    why, before = given.text(reason, "", option="--reason"), forge.change(change_id)
    if act.dry_run:
        talk(f"would close change {change_id} of {target}, which is {before.status}, as {who}: {reason}")
        return
    closed = forge.close_change(change_id, author=who, body=why)
    if before.status == "closed":
        talk(f"change {change_id} of {target} was closed already")
    act.told(here, "changes close", {"target": target, "change": change_id, "state": closed.status})
