"""Secrets: known ones in every spelling that encoders of the usual kinds would write, others by their looks. Pure."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable
from urllib.parse import quote

from outerloop_hpc.supervision.capture import MASK

#: A shorter secret would mask ordinary words; nobody's key is that short.
_SHORTEST = 6

#: What looks like a key whoever it belongs to; of a pattern with a group, the group alone is masked.
_KEYS = tuple(
    re.compile(pattern, re.IGNORECASE | re.DOTALL)
    for pattern in (
        r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----.*?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|\Z)",
        # Its beginning may have been cut off.
        r"\A.*-----END [A-Z ]{0,40}PRIVATE KEY-----",
        r"\b(?:Bearer|Basic|Token)[ \t]+([A-Za-z0-9+/=._~-]{8,})",
        r"\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@]{0,200}:([^\s/@]{1,200})@",
        r"\b[\w-]{0,40}(?:api_?-?key|secret|token|passw(?:or)?d)s?[\"']?\s{0,3}[=:]\s{0,3}[\"']?([^\s\"',;]{6,})",
        r"\b(?:sk|pk|rk)-[A-Za-z0-9_-]{16,}",
        r"\b(?:gh[opsur]|glpat|hf|xox[abprs])[-_][A-Za-z0-9_-]{16,}",
        r"\bgithub_pat_[A-Za-z0-9_]{16,}",
        r"\bA(?:KIA|SIA)[A-Z0-9]{16}\b",
        r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}",
    )
)


def spellings(secrets: Iterable[str]) -> tuple[bytes, ...]:
    """Return what to look for in a stream: each secret plain, quoted for URLs and JSON, and in base64."""
    found: dict[bytes, None] = {}
    for secret in secrets:
        if len(secret) < _SHORTEST:
            continue
        raw = secret.encode()
        encoded = (base64.b64encode(raw), base64.urlsafe_b64encode(raw))
        quoted = (quote(secret, safe="").encode(), json.dumps(secret)[1:-1].encode())
        found |= dict.fromkeys((raw, *quoted, *encoded, *(one.rstrip(b"=") for one in encoded), raw.hex().encode()))
    return tuple(found)


def redacted(text: str, secrets: Iterable[str]) -> str:
    """Return a text without its secrets."""
    for spelling in sorted(spellings(secrets), key=len, reverse=True):
        text = text.replace(spelling.decode(), MASK.decode())
    return text


def without_keys(text: str) -> str:
    """Return a text without what looks like a key, a password in a URL, or the value of something called so.

    For text that nobody can name the secrets of. It may mask what is none; a word of the text is worth less than a key.
    """
    for pattern in _KEYS:
        text = pattern.sub(_masked, text)
    return text


def _masked(found: re.Match[str]) -> str:
    if not found.re.groups:
        return MASK.decode()
    return found[0].replace(found[1], MASK.decode())
