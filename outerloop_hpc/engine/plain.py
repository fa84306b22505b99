"""Text from outside as harmless Markdown. Pure."""

from __future__ import annotations

_ENTITIES = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", "|": "&#124;", "`": "&#96;", "[": "&#91;", "@": "&#64;", "\\": "&#92;"}
)


def plain(text: str) -> str:
    """One line of outside text, harmless in Markdown: no line breaks, cells, tags, links, mentions or unseen signs."""
    flat = " ".join("".join(c if c.isprintable() else " " for c in text[:4000]).split())[:500]
    return flat.translate(_ENTITIES)
