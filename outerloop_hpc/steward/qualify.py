"""Whether an order is taken now, passed over, or answered with the reason why it cannot be. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from outerloop_hpc.forge.markers import Standing
from outerloop_hpc.forge.port import Order
from outerloop_hpc.forge.text import span

_LINE = re.compile(
    r"^[ \t]*benchmark[ \t]*:[ \t]*`?(?P<name>[A-Za-z0-9_.-]{1,64})`?[ \t]*\r?$", re.IGNORECASE | re.MULTILINE
)
_FIRST_PAUSE = timedelta(minutes=10)
_LONGEST_PAUSE = timedelta(days=1)
_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Rules:
    """Who may order, and how often an order is tried."""

    identity: str
    authors: tuple[str, ...] = ()
    attempts: int = 3
    outages: int = 5


@dataclass(frozen=True, slots=True)
class Take:
    """It is taken, for this benchmark."""

    benchmark: str


@dataclass(frozen=True, slots=True)
class Pass:
    """It is passed over; nobody needs to be told."""

    reason: str


@dataclass(frozen=True, slots=True)
class Decline:
    """It cannot be taken as it is, which is said on it once for each ``key``."""

    key: str
    text: str
    reason: str


Verdict = Take | Pass | Decline


def qualify(order: Order, standing: Standing, benchmarks: Sequence[str], rules: Rules, now: datetime) -> Verdict:
    """Judge one order that has the lane's label."""
    if order.author == rules.identity:
        return Pass("it is the tool's own")
    if standing.held is not None:
        return Pass(f"claim {standing.held.claim} of run {standing.held.run} holds it")
    if not (order.author in rules.authors if rules.authors else order.trusted):
        text = f"{span(order.author)} may not give orders here; somebody who may has to open one."
        return Decline("author", text, f"{order.author} may not give orders")
    if (waits := _waits(order, standing, rules, now)) is not None:
        return waits
    return named(order, benchmarks)


def _waits(order: Order, standing: Standing, rules: Rules, now: datetime) -> Verdict | None:
    """What earlier claims on the order mean for it."""
    asked = standing.spoken or _since(standing.since, order.relabelled_at)
    if standing.last in {"published", "answered"} and not asked:
        return Pass(f"it is {standing.last}; a comment or a label takes it up again")
    for count, most, word, at in (
        (standing.failed, rules.attempts, "failed", standing.settled_at),
        (standing.outages, rules.outages, "outage", standing.bought_at),
    ):
        # A claim that was given back has not carried out what a person asked for.
        if count >= most and not (asked or _since(at, standing.spoken_at, order.relabelled_at)):
            text = (
                f"This order is stuck: {count} claims on it ended as `{word}`, and {most} is the limit. What they "
                "found is above. A person has to look; a comment or a label has it tried once more."
            )
            return Decline(f"stuck-{word}-{count}", text, f"{count} claims ended as {word}")
    if standing.refusals and standing.since is not None:
        pause = min(_FIRST_PAUSE * 2 ** min(standing.refusals - 1, 20), _LONGEST_PAUSE)
        if now < standing.since + pause:
            return Pass(f"{standing.refusals} claims in a row were refused; the next is due {pause} after the last")
    return None


def _since(end: datetime | None, *asked: datetime | None) -> bool:
    """Whether any of these came after an end."""
    return end is not None and any(at is not None and at > end for at in asked)


def named(order: Order, benchmarks: Sequence[str]) -> Take | Decline:
    """Find the one benchmark that an order is about: by its ``benchmark:`` line, else by whole words of its text."""
    lines = [match["name"] for match in _LINE.finditer(order.body)]
    wanted = list(dict.fromkeys(lines)) or _words(f"{order.title}\n{order.body}", benchmarks)
    known = [name for name in wanted if name in benchmarks]
    if len(wanted) == 1 and known:
        return Take(known[0])
    there = ", ".join(span(name) for name in sorted(benchmarks)[:_SHOWN])
    if not wanted:
        what, reason = "It names no benchmark", "it names no benchmark"
    elif not known:
        what, reason = f"There is no benchmark {span(wanted[0])}", f"there is no benchmark {wanted[0]}"
    else:
        listed = ", ".join(span(name) for name in wanted[:_SHOWN])
        what, reason = f"It names several: {listed}", f"it names {len(wanted)} benchmarks"
    text = f"This order cannot be taken. {what}. Write a line `benchmark: NAME` with one of {there}."
    return Decline(f"benchmark-{len(wanted)}-{len(known)}", text, reason)


def _words(text: str, benchmarks: Sequence[str]) -> list[str]:
    """Return the benchmarks that stand in a text as whole words, in the order of the contract."""
    return [name for name in benchmarks if _stands_in(name, text)]


def _stands_in(name: str, text: str) -> bool:
    # A dot after the name may end a sentence; one with a letter behind it makes another word.
    return re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-]|\.\w)", text) is not None
