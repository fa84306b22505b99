from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from outerloop_hpc.evolve.applying.exchange import Exchange, FileExchange, renameat2
from tests.local.evolve import trees


@pytest.fixture(params=list(trees.EXCHANGES))
def exchange(request: pytest.FixtureRequest) -> Exchange:
    return trees.EXCHANGES[request.param]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[int]:
    (tmp_path / "name").write_bytes(b"1")
    (tmp_path / "spare").write_bytes(b"2")
    descriptor = os.open(tmp_path, os.O_RDONLY)
    yield descriptor
    os.close(descriptor)


def _contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_two_files_change_places_and_nothing_else_is_left(folder: int, tmp_path: Path, exchange: Exchange) -> None:
    exchange.swap(folder, "name", "spare", "aside")
    assert _contents(tmp_path) == {"name": b"2", "spare": b"1"}


@pytest.mark.parametrize("missing", ["name", "spare"])
def test_a_file_that_is_gone_is_not_exchanged_and_the_other_stays(
    folder: int, tmp_path: Path, exchange: Exchange, missing: str
) -> None:
    (tmp_path / missing).unlink()
    before = _contents(tmp_path)
    with pytest.raises(FileNotFoundError):
        exchange.swap(folder, "name", "spare", "aside")
    assert _contents(tmp_path) == before


def test_a_taken_name_is_never_overwritten(folder: int, tmp_path: Path, exchange: Exchange) -> None:
    with pytest.raises(FileExistsError):
        exchange.place(folder, "name", "spare")
    assert _contents(tmp_path) == {"name": b"1", "spare": b"2"}


def test_a_free_name_is_taken(folder: int, tmp_path: Path, exchange: Exchange) -> None:
    exchange.place(folder, "other", "spare")
    assert _contents(tmp_path) == {"name": b"1", "other": b"2"}


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOSYS, errno.ENOTSUP])
def test_every_way_of_lacking_the_exchange_ends_in_steps(folder: int, tmp_path: Path, number: int) -> None:
    def refuse(_folder: int, _one: str, _other: str) -> None:
        raise OSError(number, os.strerror(number))

    FileExchange(refuse).swap(folder, "name", "spare", "aside")
    assert _contents(tmp_path) == {"name": b"2", "spare": b"1"}


def test_an_error_of_the_disk_is_no_lack(folder: int, tmp_path: Path) -> None:
    def refuse(_folder: int, _one: str, _other: str) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with pytest.raises(OSError, match="Input/output"):
        FileExchange(refuse).swap(folder, "name", "spare", "aside")
    assert _contents(tmp_path) == {"name": b"1", "spare": b"2"}


def test_the_call_itself_says_what_was_wrong(folder: int) -> None:
    with pytest.raises(OSError, match=r"No such file|Invalid argument|not implemented|not supported"):
        renameat2(folder, "gone", "name")
