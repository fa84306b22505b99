"""What a forge would make of a comment: its code, and everything that is not code."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from markdown_it import MarkdownIt
from markdown_it.token import Token

_READER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
_CODE = {"fence", "code_block", "code_inline"}
_RUN = re.compile(r"steward-[a-z]+-[0-9]{8}T[0-9]{6}Z?-[0-9a-z]+|steward-[\w-]+")
_HEX = re.compile(r"\b[0-9a-f]{7,64}\b")
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?")


def outline(text: str) -> list[str]:
    """Return how a text is built and every word of it outside code; ids and numbers are masked."""
    return [
        token.type if token.type in _CODE else f"{token.type} {masked(token.content)}".rstrip()
        for token in _tokens(text)
    ]


def code(text: str) -> list[str]:
    """Return the contents of fences and code spans."""
    return [token.content for token in _tokens(text) if token.type in _CODE]


def masked(text: str) -> str:
    """Return a text with run ids replaced by one word, ids of objects and numbers by another."""
    return _NUMBER.sub("N", _HEX.sub("N", _RUN.sub("RUN", text)))


def unseen(text: str) -> set[str]:
    """Return the names of characters in a text that show nothing or turn its direction."""
    hidden = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
    return {f"U+{ord(c):04X}" for c in set(text) - {"\n", "\t"} if unicodedata.category(c) in hidden}


def _tokens(text: str) -> Iterator[Token]:
    for token in _READER.parse(text):
        if token.children is None:
            yield token
        else:
            yield from token.children
