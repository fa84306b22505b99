"""Events of a thread get numbers that nobody else has, and what is to be said once is said once."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from outerloop_hpc import fsio
from outerloop_hpc.errors import Fault
from outerloop_hpc.forge.port import NotThere
from outerloop_hpc.forge.thread import Said, Thread
from tests.unit.engine.made import T0

pytestmark = pytest.mark.unit


def said(body: str, key: str = "") -> Said:
    return Said(kind="comment", at=T0, author="ann", nonce=fsio.nonce(), body=body, key=key)


def opened(folder: Path) -> Thread:
    thread = Thread(folder)
    assert thread.open(said("first"))
    return thread


def test_events_of_many_writers_at_once_are_all_there(tmp_path: Path) -> None:
    thread = opened(tmp_path / "1")
    writers = [threading.Thread(target=thread.add, args=(said(f"w{number}"),)) for number in range(12)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert sorted(one.body for _, one in thread.events()) == sorted(["first", *(f"w{n}" for n in range(12))])
    assert [number for number, _ in thread.events()] == list(range(1, 14))


def test_one_key_is_said_once_however_many_say_it_at_once(tmp_path: Path) -> None:
    thread = opened(tmp_path / "1")
    numbers: list[int] = []

    def say() -> None:
        numbers.append(thread.add(said("claimed", "k"), lambda known: known.key == "k"))

    writers = [threading.Thread(target=say) for _ in range(8)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert numbers == [2] * 8
    assert len(list(thread.events())) == 2


def test_only_one_opens_a_thread(tmp_path: Path) -> None:
    opened(tmp_path / "1")
    assert not Thread(tmp_path / "1").open(said("another"))


def test_an_event_that_cannot_be_read_is_a_fault_and_never_left_out(tmp_path: Path) -> None:
    thread = opened(tmp_path / "1")
    (tmp_path / "1" / "00000002.json").write_bytes(b"")
    with pytest.raises(Fault, match=r"00000002\.json"):
        list(thread.events())


@pytest.mark.parametrize("name", ["notes.txt", "2.json", "00000002.json.orig", "0000000².json"])
def test_other_files_beside_the_events_are_no_events(tmp_path: Path, name: str) -> None:
    thread = opened(tmp_path / "1")
    (tmp_path / "1" / name).write_text("x")
    assert len(list(thread.events())) == 1


def test_a_thread_that_nobody_opened_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "1").mkdir()
    with pytest.raises(NotThere):
        list(Thread(tmp_path / "1").events())
