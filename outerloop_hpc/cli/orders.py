"""``orders new|list|show|comment|relabel|close``: work orders on a target's local forge."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from outerloop_hpc.cli.acts import Act, Number, Words, acts, writes
from outerloop_hpc.cli.options import Out, Since, TargetName, Until, Users, command, lists
from outerloop_hpc.cli.session import session, talk
from outerloop_hpc.errors import Exit, UsageError

app = typer.Typer(help="Give work orders, follow and close them.", no_args_is_help=True, rich_markup_mode=None)

All = Annotated[bool, typer.Option("--all", "-a", help="Also closed ones.")]
Title = Annotated[str, typer.Option("--title", help="What is wanted, in one line.")]
OfBenchmark = Annotated[
    str, typer.Option("--benchmark", "-b", help="What it is about: adds the line `benchmark: NAME` to the text.")
]
Labels = Annotated[list[str] | None, typer.Option("--label", help="Instead of the steward's label; may be repeated.")]
WithLabel = Annotated[str, typer.Option("--label", help="Only those with this label.")]
Added = Annotated[list[str] | None, typer.Option("--add", help="Label to give; may be repeated.")]
Removed = Annotated[list[str] | None, typer.Option("--remove", help="Label to take; may be repeated.")]


@command(app, "new")
@acts
@writes
def new(
    context: typer.Context,
    target: TargetName,
    title: Title,
    *,
    act: Act,
    words: Words,
    benchmark: OfBenchmark = "",
    label: Labels = None,
) -> None:
    """Open an order. Prints its number.

    Example: outerloop-hpc orders new iris --title "The test split is frozen" --benchmark accuracy --body-file why.md

    With the steward's label the next tick takes it, when it names exactly one benchmark of the contract.
    """
    from outerloop_hpc.cli import given  # noqa: PLC0415 - heavy
    from outerloop_hpc.cli.forges import forge_of, person  # noqa: PLC0415 - as above

    here = session(context)
    forge = forge_of(here, target)
    who, line = person(forge, act.author), given.line(title, "--title")
    labels = tuple(dict.fromkeys(given.line(one, "--label") for one in label or (here.settings.steward.label,)))
    written = given.with_benchmark(given.text(words.body, words.body_file), benchmark)
    if act.dry_run:
        talk(f"would open an order of {target} as {who}, labelled {', '.join(labels)}: {line}")
        return
    if here.settings.steward.label in labels and not here.settings.steward.command:
        talk("[steward] has no command: no tick takes the order until it has one")
    number = forge.open_order(author=who, title=line, body=written, labels=labels)
    row = {"target": target, "number": int(number), "author": who, "title": line, "labels": labels}
    act.told(here, "orders new", row, number)


@command(app, "list")
@lists
def list_orders(
    context: typer.Context,
    target: TargetName,
    *,
    out: Out,
    everything: All = False,
    label: WithLabel = "",
    since: Since = "",
    until: Until = "",
    users: Users = "",
) -> None:
    """List the open orders of a target, oldest first, and what holds each.

    Example: outerloop-hpc orders list iris --all --label outerloop:steward

    -S and -E are about when an order was opened, -u about its author. An order that cannot be read is a row that says
    so, and the exit status is 3.
    """
    from outerloop_hpc.cli.archived import selection  # noqa: PLC0415 - heavy
    from outerloop_hpc.cli.forges import forge_of  # noqa: PLC0415 - as above
    from outerloop_hpc.cli.orderrows import ORDER_COLUMNS, Wanted, order_rows, unreadable  # noqa: PLC0415 - as above

    out.offer(ORDER_COLUMNS)
    here = session(context)
    chosen = selection(since=since, until=until, users=users)
    wanted = Wanted(everything=everything, label=label, window=chosen.window, authors=chosen.users)
    rows = list(order_rows(forge_of(here, target), here.layout, target, here.settings.steward, wanted))
    out.show(here, "orders list", ORDER_COLUMNS, rows, meta={"target": target})
    raise typer.Exit(Exit.FINDINGS if any(map(unreadable, rows)) else Exit.DONE)


@command(app, "show")
@lists
def show(context: typer.Context, target: TargetName, number: Number, *, out: Out) -> None:
    """Print one order: its text, what was said on it, and where it stands.

    Example: outerloop-hpc orders show iris 3
    """
    from outerloop_hpc.cli.forges import forge_of, order_there  # noqa: PLC0415 - heavy
    from outerloop_hpc.cli.orderrows import order_row  # noqa: PLC0415 - as above
    from outerloop_hpc.cli.output import encodable  # noqa: PLC0415 - as above
    from outerloop_hpc.cli.threads import THREAD_COLUMNS, order_text, thread_rows  # noqa: PLC0415 - as above

    out.offer(THREAD_COLUMNS)
    here = session(context)
    forge = forge_of(here, target)
    order_id = order_there(forge, target, number)
    events = forge.order_events(order_id)
    row = order_row(forge, here.layout, target, here.settings.steward, forge.order(order_id))
    if out != Out():
        meta = {"target": target, **row, "body": events[0].body}
        out.show(here, "orders show", THREAD_COLUMNS, thread_rows(events), meta=meta)
        return
    sys.stdout.write(encodable(order_text(target, row, events), sys.stdout))


@command(app, "comment")
@acts
@writes
def comment(
    context: typer.Context,
    target: TargetName,
    number: Number,
    *,
    act: Act,
    words: Words,
) -> None:
    """Say something on an order; one that was answered, or is stuck, is then taken up again.

    Example: outerloop-hpc orders comment iris 3 --body "Please resample with the seed as well."
    """
    from outerloop_hpc.cli import given  # noqa: PLC0415 - heavy
    from outerloop_hpc.cli.forges import forge_of, order_there, person  # noqa: PLC0415 - as above

    here = session(context)
    forge = forge_of(here, target)
    order_id, who = order_there(forge, target, number), person(forge, act.author)
    written = given.text(words.body, words.body_file)
    if not written.strip():
        raise UsageError("a comment needs a text: --body TEXT or --body-file FILE")
    if act.dry_run:
        talk(f"would say so on order {order_id} of {target} as {who}")
        return
    said = forge.say(order_id, author=who, body=written)
    row = {"target": target, "number": int(order_id), "comment": said, "author": who}
    act.told(here, "orders comment", row)


@command(app, "relabel")
@acts
def relabel(
    context: typer.Context,
    target: TargetName,
    number: Number,
    *,
    act: Act,
    add: Added = None,
    remove: Removed = None,
) -> None:
    """Give labels to an order or take them; one that was answered, or is stuck, is then taken up again.

    Example: outerloop-hpc orders relabel iris 3 --add outerloop:steward --remove question
    """
    from outerloop_hpc.cli import given  # noqa: PLC0415 - heavy
    from outerloop_hpc.cli.forges import forge_of, order_there, person  # noqa: PLC0415 - as above

    here = session(context)
    forge = forge_of(here, target)
    order_id, who = order_there(forge, target, number), person(forge, act.author)
    added = tuple(dict.fromkeys(given.line(one, "--add") for one in add or ()))
    removed = tuple(dict.fromkeys(given.line(one, "--remove") for one in remove or ()))
    if not added and not removed:
        raise UsageError("nothing to do: --add LABEL gives one, --remove LABEL takes one")
    if both := sorted({*added} & {*removed}):
        raise UsageError(f"{both[0]!a} is to be given and taken; choose one")
    if act.dry_run:
        talk(f"would give {list(added)} to order {order_id} of {target} and take {list(removed)}, as {who}")
        return
    forge.relabel(order_id, author=who, added=added, removed=removed)
    row = {"target": target, "number": int(order_id), "labels": forge.order(order_id).labels, "author": who}
    act.told(here, "orders relabel", row)


@command(app, "close")
@acts
def close(
    context: typer.Context,
    target: TargetName,
    number: Number,
    *,
    act: Act,
) -> None:
    """Close an order: it is not taken any more. A run that holds it goes on; `claims release` ends that.

    Example: outerloop-hpc orders close iris 3
    """
    from outerloop_hpc.cli.forges import forge_of, order_there, person  # noqa: PLC0415 - heavy
    from outerloop_hpc.cli.orderrows import order_row  # noqa: PLC0415 - as above

    here = session(context)
    forge = forge_of(here, target)
    order_id, who = order_there(forge, target, number), person(forge, act.author)
    found = forge.order(order_id)
    held = order_row(forge, here.layout, target, here.settings.steward, found)
    if act.dry_run:
        talk(f"would close order {order_id} of {target} as {who}" if found.open else f"order {order_id} is closed")
        return
    if not found.open:
        talk(f"order {order_id} of {target} was closed already")
    elif held["claim"]:
        talk(f"run {held['run']} goes on; `outerloop-hpc claims release {held['claim']} --reason …` ends it")
    forge.close_order(order_id, author=who)
    act.told(here, "orders close", {"target": target, "number": int(order_id), "state": "closed"})
