"""Texts with which services refuse an agent: an outage, and no fault of the order. Pure.

From recorded output of Claude Code 2.1.197 and Codex 0.171.0, and from the status words of HTTP. Only looked for in a
session that failed, and only in the end of what it said: a report that mentions a rate limit is no outage.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

#: ``throttled``: too much at once, soon over. ``refused``: keys, quotas, an overloaded or broken service.
Outage = Literal["refused", "throttled"]

_THROTTLED: Final = re.compile(
    r"\b429\b|too many requests|\brate.?limit(?:ed|_error)?\b|\bthrottl(?:ed|ing)\b",
    re.IGNORECASE,
)
_REFUSED: Final = re.compile(
    r"unexpected status (?:401|402|403|5\d\d)\b|authentication_(?:failed|error)|invalid (?:x-)?api.?key"
    r"|\b401 unauthorized\b"
    r"|\boverloaded(?:_error)?\b|\b529\b|server_error|api_error|internal server error|service unavailable"
    r"|credit balance is too low|insufficient_quota|exceeded your current quota|billing_(?:error|hard_limit)"
    r"|could not resolve host|connection (?:refused|reset)|econnrefused|econnreset|enotfound|etimedout",
    re.IGNORECASE,
)
_END: Final = 16 * 1024


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refusal that was found, with the line that says it."""

    outage: Outage
    text: str


def refusal_in(stdout: bytes, stderr: str) -> Refusal | None:
    """Return the last line that says why the session was refused; None when none does."""
    for text in (stderr[-_END:], stdout[-_END:].decode("utf-8", errors="replace")):
        for line in reversed(text.splitlines()):
            if _THROTTLED.search(line):
                return Refusal("throttled", line.strip()[:500])
            if _REFUSED.search(line):
                return Refusal("refused", line.strip()[:500])
    return None
