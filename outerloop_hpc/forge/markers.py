"""The marker protocol: what the tool has said on an order about its claims, written and read in exactly one form. Pure.

A marker is the whole first line of a comment by the tool's own identity. Anything else, however alike, is text: a
quotation, a second line, another author, one more space. The last event about a claim wins, and only the claim that
holds an order can be ended.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile
from typing import Literal, get_args

from pydantic import AwareDatetime

from outerloop_hpc.documents import Value
from outerloop_hpc.errors import ConfigError
from outerloop_hpc.forge.port import Comment

#: Why a claim ended. Only ``failed`` costs one of the order's attempts.
EndReason = Literal["published", "answered", "failed", "outage", "refused"]

_REASONS: tuple[EndReason, ...] = get_args(EndReason)
_LINE = re.compile(
    r"<!-- outerloop:claim/1 id=(?P<claim>[0-9a-f]{16}) run=(?P<run>[A-Za-z0-9_.-]{1,128})"
    r" attempt=(?P<attempt>[1-9][0-9]{0,3}) (?P<event>claimed|ended:(?:" + "|".join(_REASONS) + r")) -->"
)


class Marker(Value):
    """One event of a claim: taken when ``reason`` is None, else ended for that reason."""

    claim: str
    run: str
    attempt: int
    reason: EndReason | None = None

    def line(self) -> str:
        """Return the only form in which it is written, and read."""
        event = "claimed" if self.reason is None else f"ended:{self.reason}"
        return f"<!-- outerloop:claim/1 id={self.claim} run={self.run} attempt={self.attempt} {event} -->"


def read(body: str) -> Marker | None:
    """Return the marker that a comment begins with, if it does."""
    match = _LINE.fullmatch(body.split("\n", 1)[0])
    if match is None:
        return None
    ended = match["event"].partition(":")[2]
    reason = next((word for word in _REASONS if word == ended), None)
    return Marker(claim=match["claim"], run=match["run"], attempt=int(match["attempt"]), reason=reason)


class Standing(Value):
    """What an order's thread says about it.

    Attributes:
        held: the claim that holds it, if one does.
        attempts: how many claims there were; the next one is one more.
        failed: claims that ended as ``failed``. outages: that ended as ``outage``.
        refusals: how many claims in a row, the newest one last, ended as ``refused``.
        last: how the newest claim ended; None while it is held, or when there was none.
        since: when the newest claim ended. settled_at: the newest one that came to something, so neither ``refused``
            nor ``outage``. bought_at: the newest one whose session was begun, so not ``refused``.
        spoken: whether somebody whose word counts has said something after the newest end. spoken_at: when last.
        said: keys of what the tool has said there; nothing is said twice under one key.
    """

    held: Marker | None = None
    attempts: int = 0
    failed: int = 0
    outages: int = 0
    refusals: int = 0
    last: EndReason | None = None
    since: AwareDatetime | None = None
    settled_at: AwareDatetime | None = None
    bought_at: AwareDatetime | None = None
    spoken: bool = False
    spoken_at: AwareDatetime | None = None
    said: tuple[str, ...] = ()


def counts(comment: Comment, identity: str, authors: Sequence[str]) -> bool:
    """Whether a comment is by a person whose word counts; ``authors`` empty: by anybody whom the forge vouches for."""
    return comment.author != identity and (comment.author in authors if authors else comment.trusted)


def standing(comments: Sequence[Comment], identity: str, authors: Sequence[str] = ()) -> Standing:
    """Read a thread, oldest comment first. ``authors`` are those whose word counts; empty for all that are trusted.

    Raises:
        ConfigError: the identity is empty. No claim would be seen then, and every tick would buy the order again.
    """
    if not identity:
        raise ConfigError("the forge's identity is empty; without it no claim can be told from a quotation of one")
    claims: dict[str, Marker] = {}
    held: Marker | None = None
    ended: dict[str, EndReason] = {}
    since: AwareDatetime | None = None
    settled_at: AwareDatetime | None = None
    bought_at: AwareDatetime | None = None
    spoken, spoken_at = False, None
    for comment in comments:
        if comment.author != identity:
            if counts(comment, identity, authors):
                spoken, spoken_at = True, comment.at
            continue
        marker = read(comment.body)
        if marker is None:
            continue
        if marker.reason is None:
            claims.setdefault(marker.claim, marker)
            held = marker
        elif held is not None and marker.claim == held.claim:
            ended[marker.claim] = marker.reason
            held, since, spoken = None, comment.at, False
            bought_at = bought_at if marker.reason == "refused" else comment.at
            settled_at = settled_at if marker.reason in {"refused", "outage"} else comment.at
    reasons = list(ended.values())
    return Standing(
        held=held,
        attempts=max((marker.attempt for marker in claims.values()), default=0),
        failed=reasons.count("failed"),
        outages=reasons.count("outage"),
        refusals=len(list(takewhile(lambda reason: reason == "refused", reversed(reasons)))),
        last=None if held is not None or not reasons else reasons[-1],
        since=since,
        settled_at=settled_at,
        bought_at=bought_at,
        spoken=spoken,
        spoken_at=spoken_at,
        said=tuple(comment.key for comment in comments if comment.author == identity and comment.key),
    )
