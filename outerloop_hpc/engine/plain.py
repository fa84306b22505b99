"""Text from outside as harmless Markdown. Pure."""

from __future__ import annotations


def plain(text: str) -> str:
    """One line of outside text, harmless in Markdown: no line breaks, table cells, tags or control characters."""
    flat = " ".join("".join(c if c.isprintable() else " " for c in text).split())[:500]
    for character, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("|", "&#124;"), ("`", "&#96;")):
        flat = flat.replace(character, entity)
    return flat
