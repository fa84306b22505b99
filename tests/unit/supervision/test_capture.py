"""Streams of any length take bounded memory and bounded disk."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outerloop_hpc.supervision.capture import MASK, CappedLog, Redacted, Tail

pytestmark = pytest.mark.unit


@given(st.lists(st.binary(max_size=30), max_size=30), st.integers(1, 40))
def test_a_tail_is_the_end_of_the_stream(chunks: list[bytes], cap: int) -> None:
    tail = Tail(cap)
    for chunk in chunks:
        tail.add(chunk)
        assert len(tail._kept) <= 2 * cap
    whole = b"".join(chunks)
    assert tail.value() == whole[-cap:]
    assert (tail.total, tail.cut) == (len(whole), len(whole) > cap)


@pytest.mark.parametrize("size", [0, 1, 9, 10, 11, 1000])
def test_a_log_keeps_the_first_and_the_last_half(tmp_path: Path, size: int) -> None:
    path = tmp_path / "new folder" / "log"
    log = CappedLog(path, 10)
    whole = bytes(ord("a") + n % 26 for n in range(size))
    for n in range(0, size, 3):
        log.add(whole[n : n + 3])
    log.close()
    if size <= 10:
        assert path.read_bytes() == whole
    else:
        marker = b"\n[... %d bytes left out here ...]\n" % (size - 10)
        assert path.read_bytes() == whole[:5] + marker + whole[-5:]


def test_a_log_follows_no_link_that_somebody_laid(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("keep", encoding="ascii")
    (tmp_path / "log").symlink_to(tmp_path / "precious")
    log = CappedLog(tmp_path / "log", 10)
    log.add(b"data")
    log.close()
    assert (tmp_path / "precious").read_text(encoding="ascii") == "keep"
    assert log.problem is not None


def test_no_log_is_fine() -> None:
    log = CappedLog(None, 10)
    log.add(b"x" * 100)
    log.close(b"last")
    assert log.problem is None


class Heard:
    """A sink that keeps all."""

    def __init__(self) -> None:
        self.data = b""

    def add(self, chunk: bytes) -> None:
        self.data += chunk


@given(st.lists(st.sampled_from([b"se", b"cret", b"secret", b"s", b"x", b""]), max_size=30))
def test_a_secret_that_comes_in_pieces_is_masked(chunks: list[bytes]) -> None:
    heard = Heard()
    mask = Redacted([heard], [b"secret"])
    for chunk in chunks:
        mask.add(chunk)
    mask.flush()
    assert heard.data == b"".join(chunks).replace(b"secret", MASK)


def test_of_two_secrets_the_longer_one_is_masked_whole() -> None:
    heard = Heard()
    mask = Redacted([heard], [b"key", b"key-and-more"])
    mask.add(b"a key-and-more and a key")
    mask.flush()
    assert heard.data == b"a [redacted] and a [redacted]"
