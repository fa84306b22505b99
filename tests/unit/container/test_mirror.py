"""The mirror of a machine's own apt sources, in both of their forms."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outerloop_hpc.container.mirror import checked_mirror, deb822, one_line, own_mirror
from outerloop_hpc.errors import ConfigError

pytestmark = pytest.mark.unit

ONE_LINE = """# deb http://old.example/debian bookworm main
deb [arch=amd64 signed-by=/usr/share/keyrings/x.gpg] http://mirror.example/debian bookworm main contrib
deb-src http://mirror.example/debian bookworm main
deb http://mirror.example/security bookworm-security main
"""
DEB822 = """Types: deb
# a note
URIs: http://one.example/debian https://two.example/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By: /usr/share/keyrings/x.gpg

Types: deb-src
URIs: http://src.example/debian
Suites: bookworm

Types: deb
URIs: http://off.example/debian
Suites: bookworm
Enabled: no
"""


def test_one_line_form() -> None:
    assert one_line(ONE_LINE) == [
        ("http://mirror.example/debian", "bookworm"),
        ("http://mirror.example/security", "bookworm-security"),
    ]


def test_deb822_form() -> None:
    assert deb822(DEB822) == [
        ("http://one.example/debian", "bookworm"),
        ("http://one.example/debian", "bookworm-updates"),
        ("https://two.example/debian", "bookworm"),
        ("https://two.example/debian", "bookworm-updates"),
    ]


def test_the_first_mirror_that_serves_the_suite(tmp_path: Path) -> None:
    (tmp_path / "sources.list.d").mkdir()
    (tmp_path / "sources.list.d/debian.sources").write_text(DEB822, encoding="utf-8")
    (tmp_path / "sources.list.d/broken.list").write_bytes(b"\xff\xfe deb\n")
    assert own_mirror("bookworm", tmp_path) == "http://one.example/debian"
    (tmp_path / "sources.list").write_text(ONE_LINE, encoding="utf-8")
    assert own_mirror("bookworm", tmp_path) == "http://mirror.example/debian"
    with pytest.raises(ConfigError, match="--mirror URL"):
        own_mirror("trixie", tmp_path)


def test_no_apt_at_all(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no mirror for bookworm"):
        own_mirror("bookworm", tmp_path / "none")


@pytest.mark.parametrize("url", ["http://h/debian", "https://h.example:8080/a/b", "http://h"])
def test_good_mirrors(url: str) -> None:
    assert checked_mirror(url) == url


@pytest.mark.parametrize(
    "url", ["", "ftp://h/x", "file:///x", "http://", "http://user:hush@h/x", "http://h/x\n%post\nid"]
)
def test_mirrors_that_cannot_stand_in_a_definition(url: str) -> None:
    with pytest.raises(ConfigError, match="mirror") as caught:
        checked_mirror(url)
    assert "hush" not in str(caught.value)


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    for url, suite in [*one_line(text), *deb822(text)]:
        assert url
        assert suite
