"""Secrets in other spellings: as they are, and as encoders of the usual kinds would write them. Pure."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from urllib.parse import quote

from outerloop_hpc.supervision.capture import MASK

#: A shorter secret would mask ordinary words; nobody's key is that short.
_SHORTEST = 6


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
