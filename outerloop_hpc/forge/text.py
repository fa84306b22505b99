"""Foreign text on its way to a forge: fenced or in a code span, capped, and without what a reader cannot see. Pure.

Inside a fence or a code span a forge renders nothing: no link, image, mention, HTML or comment. So all that has to be
held is the fence itself, and that is longer than any run of backticks in the text.
"""

from __future__ import annotations

import re
import unicodedata

_TICKS = re.compile(r"`+")
_UNKNOWN = "\N{REPLACEMENT CHARACTER}"
_KEPT = frozenset("\n\t")
#: Categories that show nothing, or change the direction of what is around them.
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def visible(text: str) -> str:
    """Return the text with one kind of line end and a replacement character for each that nobody would see."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    return "".join(c if c in _KEPT or unicodedata.category(c) not in _UNSEEN else _UNKNOWN for c in lines)


def capped(text: str, most: int) -> str:
    """Return at most ``most`` characters of the text, with a line that says how much was left out."""
    if len(text) <= most:
        return text
    return f"{text[:most]}\n… {len(text) - most} more characters were left out"


def fenced(text: str, most: int = 20_000) -> str:
    """Return foreign text as a fenced block that it cannot leave; of a longer one the first ``most`` characters."""
    shown = visible(capped(text, most))
    longest = max((len(run) for run in _TICKS.findall(shown)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{shown.rstrip()}\n{fence}"


def span(text: str, most: int = 300) -> str:
    """Return foreign text as one code span on one line, for sentences and table cells."""
    flat = " ".join(visible(text[: 4 * most]).split())
    shown = flat if len(flat) <= most and len(text) <= 4 * most else f"{flat[:most]}…"
    if not shown:
        return "(nothing)"
    longest = max((len(run) for run in _TICKS.findall(shown)), default=0)
    ticks = "`" * (longest + 1)
    pad = " " if shown.startswith("`") or shown.endswith("`") else ""
    # A bar ends a table's cell even inside a span.
    return f"{ticks}{pad}{shown}{pad}{ticks}".replace("|", "\N{BROKEN BAR}")
