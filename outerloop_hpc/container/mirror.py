"""The Debian mirror that a machine's own apt sources name (pure, apart from ``own_mirror`` reading them)."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

from outerloop_hpc.errors import ConfigError

_APT = Path("/etc/apt")
_URL = re.compile(r"https?://[^\s/@]+(/[^\s@]*)?\Z")
_ONE_LINE = re.compile(r"^\s*deb\s+(?:\[[^\]]*\]\s+)?(\S+)\s+(\S+)", re.MULTILINE)


def own_mirror(suite: str, apt: Path = _APT) -> str:
    """Return the first mirror of this machine that serves ``suite``.

    Raises:
        ConfigError: there is none (another distribution, perhaps).
    """
    found: list[tuple[str, str]] = []
    for path in [apt / "sources.list", *sorted(apt.glob("sources.list.d/*"))]:
        with suppress(OSError):
            text = path.read_text(encoding="utf-8", errors="replace")
            found += deb822(text) if path.suffix == ".sources" else one_line(text)
    for url, served in found:
        if served == suite:
            return checked_mirror(url)
    raise ConfigError(f"the apt sources of this machine name no mirror for {suite}; say which with --mirror URL")


def one_line(text: str) -> list[tuple[str, str]]:
    """Read ``deb [options] URL SUITE …`` lines into (url, suite)."""
    return [(found[1], found[2]) for found in _ONE_LINE.finditer(text)]


def deb822(text: str) -> list[tuple[str, str]]:
    """Read ``Types:``/``URIs:``/``Suites:`` stanzas into (url, suite)."""
    pairs: list[tuple[str, str]] = []
    plain = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    for stanza in re.split(r"\n\s*\n", plain):
        fields = {name.lower(): value.split() for name, value in re.findall(r"(?m)^([A-Za-z-]+):(.*)$", stanza)}
        if "deb" in fields.get("types", []) and fields.get("enabled", ["yes"]) != ["no"]:
            pairs += [(url, suite) for url in fields.get("uris", []) for suite in fields.get("suites", [])]
    return pairs


def checked_mirror(url: str) -> str:
    """Return ``url`` if it can stand in a definition, which the image keeps for all to read.

    Raises:
        ConfigError: not http(s), or it holds a user name or password.
    """
    if not _URL.match(url):
        shown = re.sub(r"//[^/]*@", "//…@", url)
        raise ConfigError(f"{shown!r} cannot be used as a mirror: give http(s)://host/path without user and password")
    return url
