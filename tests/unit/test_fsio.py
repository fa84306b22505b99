"""Publication is exclusive, complete and readable for the group, with and without hard links."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Iterator
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from outerloop_hpc import fsio
from outerloop_hpc.errors import FilesystemUnfit, TryLater

pytestmark = pytest.mark.unit

FULL = [errno.ENOSPC, errno.EDQUOT, errno.EROFS]
REFUSED = [errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS]


def failing(number: int) -> Callable[..., Any]:
    def fail(*_: object, **__: object) -> Any:
        raise OSError(number, os.strerror(number))

    return fail


@pytest.fixture(params=["link", "folder"])
def mechanism(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways to publish; every test of the contract runs with each."""
    if request.param == "folder":
        monkeypatch.setattr(os, "link", failing(errno.EPERM))
    return str(request.param)


@pytest.fixture
def masked() -> Iterator[Callable[[int], None]]:
    before = os.umask(0o022)

    def mask(value: int) -> None:
        os.umask(value)

    yield mask
    os.umask(before)


def leftovers(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name.startswith(".tmp-"))


@pytest.mark.usefixtures("mechanism")
def test_the_first_writer_wins(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    assert fsio.publish(path, b"first")
    assert not fsio.publish(path, b"second")
    assert fsio.read(path) == b"first"
    assert fsio.names(tmp_path) == ["record.json"]
    assert leftovers(tmp_path) == []


@pytest.mark.usefixtures("mechanism")
def test_our_own_bytes_under_the_name_are_success_after_a_lost_reply(tmp_path: Path) -> None:
    path = tmp_path / "00000001.json"
    assert fsio.publish(path, b"nonce 1")
    assert fsio.publish(path, b"nonce 1")
    assert leftovers(tmp_path) == []


def test_a_link_that_was_made_by_a_request_whose_reply_was_lost_is_success(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.link

    def link_then_fail(source: Path, target: Path) -> None:
        real(source, target)
        real(source, target)

    monkeypatch.setattr(os, "link", link_then_fail)
    assert fsio.publish(tmp_path / "claim.json", b"ours")
    assert fsio.read(tmp_path / "claim.json") == b"ours"


@pytest.mark.parametrize("theirs", [False, True])
def test_a_folder_rename_whose_reply_was_lost_does_not_condemn_the_filesystem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, theirs: bool
) -> None:
    path, real = tmp_path / "claim.json", Path.rename

    def rename_then_fail(source: Path, target: Path) -> Path:
        real(source, target)
        if theirs:
            (target / "document").write_bytes(b"theirs")
        return real(source, target)

    monkeypatch.setattr(os, "link", failing(errno.EPERM))
    monkeypatch.setattr(Path, "rename", rename_then_fail)
    assert fsio.publish(path, b"ours") is not theirs


@pytest.mark.parametrize("number", REFUSED)
def test_refused_links_fall_back_to_an_exclusive_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    monkeypatch.setattr(os, "link", failing(number))
    path = tmp_path / "claim.json"
    assert fsio.publish(path, b"mine")
    assert path.is_dir()
    assert fsio.content(path).read_bytes() == b"mine"


def test_a_name_published_by_either_way_is_taken_for_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    linked, foldered = tmp_path / "linked", tmp_path / "foldered"
    assert fsio.publish(linked, b"by link")
    with monkeypatch.context() as patch:
        patch.setattr(os, "link", failing(errno.EPERM))
        assert not fsio.publish(linked, b"by folder")
        assert fsio.publish(foldered, b"by folder")
    assert not fsio.publish(foldered, b"by link")
    assert (fsio.read(linked), fsio.read(foldered)) == (b"by link", b"by folder")


def test_an_existing_name_is_seen_by_the_folder_way_even_where_rename_would_replace_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "name").write_bytes(b"theirs")
    monkeypatch.setattr(os, "link", failing(errno.EPERM))
    monkeypatch.setattr(Path, "exists", lambda _: False)
    assert not fsio.publish(tmp_path / "name", b"ours")
    assert (tmp_path / "name").read_bytes() == b"theirs"


@pytest.mark.usefixtures("mechanism")
def test_of_many_threads_that_publish_one_name_exactly_one_wins(tmp_path: Path) -> None:
    together = threading.Barrier(8)
    wins: list[int] = []

    def race(number: int) -> None:
        for turn in range(20):
            together.wait()
            if fsio.publish(tmp_path / f"name-{turn}", b"%d" % number):
                wins.append(turn)

    threads = [threading.Thread(target=race, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(wins) == list(range(20))
    assert leftovers(tmp_path) == []


def _publish_in_turn(folder: str, number: int, refuse: bool) -> list[int]:
    if refuse:
        pytest.MonkeyPatch().setattr(os, "link", failing(errno.EPERM))
    return [turn for turn in range(100) if fsio.publish(Path(folder, f"name-{turn}"), b"%d" % number)]


@pytest.mark.parametrize("refused", [(False, False), (True, True), (False, True)])
def test_of_two_processes_that_publish_one_name_exactly_one_wins(tmp_path: Path, refused: tuple[bool, bool]) -> None:
    with get_context("spawn").Pool(2) as pool:
        jobs = [pool.apply_async(_publish_in_turn, (str(tmp_path), n, refuse)) for n, refuse in enumerate(refused)]
        wins = [turn for job in jobs for turn in job.get(timeout=120)]
    assert sorted(wins) == list(range(100))


def test_where_neither_links_nor_folders_are_exclusive_it_refuses_and_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "link", failing(errno.EPERM))
    monkeypatch.setattr(Path, "rename", failing(errno.EINVAL))
    with pytest.raises(FilesystemUnfit, match="neither hard links nor exclusive folder renames") as refused:
        fsio.publish(tmp_path / "claim.json", b"mine")
    assert os.strerror(errno.EINVAL) in str(refused.value)
    assert list(tmp_path.iterdir()) == []


def test_the_refusal_names_each_probe_that_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "link", failing(errno.EPERM))
    monkeypatch.setattr(Path, "rename", failing(errno.EINVAL))
    with pytest.raises(FilesystemUnfit) as refused:
        fsio.require_exclusive(tmp_path)
    assert f"link: {os.strerror(errno.EPERM)}" in str(refused.value)
    assert f"folder_rename: {os.strerror(errno.EINVAL)}" in str(refused.value)
    assert list(tmp_path.iterdir()) == []


def test_a_filesystem_that_links_over_taken_names_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "link", lambda _source, _target: None)
    found = fsio.probe(tmp_path)
    assert not found.link
    assert found.exclusive
    assert found.failures == ("link: a taken name was linked over",)


def test_a_filesystem_that_renames_over_taken_folders_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "link", failing(errno.EPERM))
    monkeypatch.setattr(Path, "rename", lambda _source, target: target)
    with pytest.raises(FilesystemUnfit, match="a taken folder was renamed over"):
        fsio.require_exclusive(tmp_path)


def test_the_probe_of_a_good_folder_finds_everything_and_leaves_nothing(tmp_path: Path) -> None:
    assert fsio.probe(tmp_path) == fsio.Probe(link=True, folder_rename=True, rename=True, sync=True, failures=())
    assert list(tmp_path.iterdir()) == []


def test_the_probe_makes_the_folder_that_is_not_there_yet(tmp_path: Path) -> None:
    assert fsio.require_exclusive(tmp_path / "new" / "state").exclusive
    assert list((tmp_path / "new" / "state").iterdir()) == []


@pytest.mark.parametrize("number", FULL)
@pytest.mark.parametrize("place", ["open", "write", "fsync", "link"])
def test_a_full_filesystem_is_try_later_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, place: str
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, place, failing(number))
        wanted = "let it be written to again" if number == errno.EROFS else "free space"
        with pytest.raises(TryLater, match=rf"record\.json: cannot be written.*{wanted} and run again"):
            fsio.publish(tmp_path / "record.json", b"data")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", FULL)
@pytest.mark.parametrize("place", ["mkdir", "rename"])
def test_a_full_filesystem_is_not_taken_for_an_unfit_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, place: str
) -> None:
    monkeypatch.setattr(os, "link", failing(errno.EPERM))
    with monkeypatch.context() as patch:
        patch.setattr(Path, place, failing(number))
        with pytest.raises(TryLater):
            fsio.publish(tmp_path / "record.json", b"data")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", FULL)
def test_a_full_filesystem_keeps_what_was_to_be_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    path = tmp_path / "snapshot.json"
    fsio.replace(path, b"old")
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", failing(number))
        with pytest.raises(TryLater):
            fsio.replace(path, b"new")
    assert path.read_bytes() == b"old"
    assert fsio.names(tmp_path) == ["snapshot.json"]
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize("number", FULL)
def test_a_folder_that_a_full_filesystem_refuses_is_try_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    monkeypatch.setattr(Path, "mkdir", failing(number))
    with pytest.raises(TryLater, match="journal"):
        fsio.make_folder(tmp_path / "journal")


def test_other_errors_stay_what_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "link", failing(errno.EIO))
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        fsio.publish(tmp_path / "record.json", b"data")
    assert list(tmp_path.iterdir()) == []


def test_short_writes_are_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: real(descriptor, data[:3]))
    assert fsio.publish(tmp_path / "record.json", b"0123456789")
    assert (tmp_path / "record.json").read_bytes() == b"0123456789"


def test_a_folder_that_cannot_be_fsynced_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.fsync

    def files_only(descriptor: int) -> None:
        if Path(f"/proc/self/fd/{descriptor}").readlink().is_dir():
            raise OSError(errno.EINVAL, "no fsync of folders here")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", files_only)
    assert fsio.publish(tmp_path / "record.json", b"data")


@pytest.mark.parametrize(("mask", "expected"), [(0o022, 0o644), (0o002, 0o664), (0o007, 0o660), (0o077, 0o600)])
@pytest.mark.usefixtures("mechanism")
def test_documents_get_the_rights_of_the_umask(
    tmp_path: Path, masked: Callable[[int], None], mask: int, expected: int
) -> None:
    masked(mask)
    assert fsio.umask() == mask
    fsio.publish(tmp_path / "published", b"1")
    fsio.replace(tmp_path / "replaced", b"1")
    for name in ("published", "replaced"):
        assert fsio.content(tmp_path / name).stat().st_mode & 0o777 == expected


def test_private_files_and_folders_are_for_their_owner_alone(tmp_path: Path, masked: Callable[[int], None]) -> None:
    masked(0o002)
    fsio.replace(tmp_path / "key", b"secret", mode=0o600)
    fsio.make_folder(tmp_path / "open")
    fsio.make_folder(tmp_path / "pickles", private=True)
    (tmp_path / "was-open").mkdir(mode=0o755)
    fsio.make_folder(tmp_path / "was-open", private=True)
    rights = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert rights == {"key": 0o600, "open": 0o775, "pickles": 0o700, "was-open": 0o700}


@pytest.mark.parametrize("times", [1, 2])
def test_a_stale_handle_is_opened_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    (tmp_path / "file").write_bytes(b"content")
    real, failures = fsio._read_once, [errno.ESTALE] * times

    def stale(path: Path) -> bytes:
        if failures:
            raise OSError(failures.pop(), "stale")
        return real(path)

    monkeypatch.setattr(fsio, "_read_once", stale)
    assert fsio.read(tmp_path / "file") == b"content"


def test_a_handle_that_stays_stale_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fsio, "_read_once", failing(errno.ESTALE))
    with pytest.raises(OSError, match=os.strerror(errno.ESTALE)):
        fsio.read(tmp_path / "file")


def test_a_file_that_is_listed_but_not_found_is_looked_at_once_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_bytes(b"content")
    real, failures = fsio._read_once, [errno.ENOENT]

    def late(path: Path) -> bytes:
        if failures:
            raise FileNotFoundError(failures.pop(), "not yet", str(path))
        return real(path)

    monkeypatch.setattr(fsio, "_read_once", late)
    assert fsio.read(tmp_path / "file") == b"content"


def test_a_file_that_is_not_listed_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Path] = []

    def gone(path: Path) -> bytes:
        asked.append(path)
        raise FileNotFoundError(errno.ENOENT, "gone", str(path))

    monkeypatch.setattr(fsio, "_read_once", gone)
    with pytest.raises(FileNotFoundError):
        fsio.read(tmp_path / "file")
    assert len(asked) == 1


def test_half_written_documents_are_not_listed(tmp_path: Path) -> None:
    for name in (".tmp-0123", "b", "a"):
        (tmp_path / name).write_bytes(b"")
    assert fsio.names(tmp_path) == ["a", "b"]
    assert fsio.names(tmp_path / "a") == []
    assert fsio.names(tmp_path / "nowhere") == []


@pytest.mark.usefixtures("mechanism")
def test_a_published_document_can_be_removed_however_it_was_published(tmp_path: Path) -> None:
    path = tmp_path / "live-run"
    fsio.publish(path, b"")
    assert fsio.read(path) == b""
    fsio.remove(path)
    fsio.remove(path)
    assert list(tmp_path.iterdir()) == []


def test_nonces_differ() -> None:
    assert len({fsio.nonce() for _ in range(100)}) == 100
