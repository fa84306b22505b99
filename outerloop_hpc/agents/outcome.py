"""What came of an agent's session, read from how it ended and what it said. Pure.

The convention of a ``command`` agent: it ends with one of the exit statuses below, and the last line of its stdout
that is a JSON object with an ``outcome`` may say more::

    {"outcome": "done", "report": "what I did and why", "turns": 12, "cost_usd": 0.4}

Where they disagree the less happy one holds. Whether files were changed is not asked: that is looked at.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, Literal, get_args

from outerloop_hpc.agents.refusals import Outage, refusal_in
from outerloop_hpc.documents import Value
from outerloop_hpc.supervision.child import Ended, signal_name

Word = Literal["done", "no-change", "budget", "outage", "failed"]

#: Exit statuses that say something; every other one is a failure.
STATUSES: Final[Mapping[int, Word]] = {0: "done", 10: "no-change", 20: "budget", 75: "outage"}
#: From happy to unhappy: of two words the later one holds.
_WORDS: tuple[Word, ...] = get_args(Word)
_REPORT = 20_000


class Session(Value):
    """How a session ended.

    Attributes:
        word: ``done``, ``no-change`` (by its own word none is warranted), ``budget`` (turns, time, output or its own),
            ``outage`` (what it needs was refused: says nothing about the order), or ``failed``.
        outage: why it was refused, for an ``outage``.
        report: its own words, foreign text, at most 20,000 characters.
        turns: counted by itself; None when it did not say. cost_usd: likewise.
    """

    word: Word
    reason: str = ""
    outage: Outage | None = None
    report: str = ""
    turns: int | None = None
    cost_usd: float | None = None
    exit_status: int | None = None
    seconds: float = 0.0
    output_bytes: int = 0


def session_of(ended: Ended, *, over: str = "") -> Session:
    """Read a session that was not interrupted from outside.

    Args:
        ended: how the command ended and the end of what it said.
        over: which limit of ours was reached; empty when it ended by itself.
    """
    said = _said(ended.stdout)
    claimed = next((word for word in _WORDS if word == said.get("outcome")), None)
    word, reason = _ending(ended, over)
    outage: Outage | None = None
    if claimed is not None and _WORDS.index(claimed) > _WORDS.index(word):
        word, reason = claimed, f"by its own word: {claimed}"
    if word == "outage":
        outage = "throttled" if said.get("outage") == "throttled" else "refused"
    elif word == "failed" and (found := refusal_in(ended.stdout, ended.stderr)) is not None:
        word, outage, reason = "outage", found.outage, found.text
    return Session(
        word=word,
        reason=reason,
        outage=outage,
        report=_text(said.get("report")),
        turns=_number(said.get("turns"), int),
        cost_usd=_number(said.get("cost_usd"), float),
        exit_status=ended.status,
        seconds=ended.seconds,
        output_bytes=ended.output_bytes,
    )


def _ending(ended: Ended, over: str) -> tuple[Word, str]:
    if over:
        return "budget", over
    if ended.status is None:
        return "failed", ended.problem or "nobody could tell how it ended"
    if ended.status < 0:
        return "failed", f"it was ended by {signal_name(ended.status)}"
    word = STATUSES.get(ended.status, "failed")
    return word, f"it ended with status {ended.status}"


def _said(stdout: bytes) -> Mapping[str, Any]:
    """Return the last JSON object with an outcome; whatever else it printed is talk."""
    for line in reversed(stdout.decode("utf-8", errors="replace").splitlines()):
        if not line.lstrip().startswith("{"):
            continue
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict) and "outcome" in found:
            return found
    return {}


def _text(value: object) -> str:
    # JSON can hold half a surrogate pair, and no file can: a session must not be lost for one.
    return value[:_REPORT].encode("utf-8", "replace").decode() if isinstance(value, str) else ""


def _number(value: object, kind: type[int | float]) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = kind(value)
    except (ValueError, OverflowError):
        return None
    return number if 0 <= number < 1e9 else None  # noqa: PLR2004 - a turn count or a price, not a number of atoms
