"""Threads as files: an order or a change of the local forge is a folder of numbered events, each published once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import AwareDatetime

from outerloop_hpc import fsio
from outerloop_hpc.documents import Document, load
from outerloop_hpc.forge.port import NotThere

_DIGITS = 8


class Said(Document):
    """``NNNNNNNN.json`` of a thread. The first one opens it; ``key`` names what is said once only."""

    name: ClassVar[str] = "forge-event"

    kind: Literal["opened", "comment", "labels", "closed", "reopened", "merged"]
    at: AwareDatetime
    author: str
    nonce: str
    key: str = ""
    title: str = ""
    body: str = ""
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    branch: str = ""
    onto: str = ""
    commit: str = ""
    order: str = ""


class Thread:
    """One folder of events. The next number is taken by a link, so nobody's event replaces another's."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def exists(self) -> bool:
        """Whether it was opened."""
        return (self.folder / _file(1)).exists()

    def events(self, since: int = 0) -> Iterator[tuple[int, Said]]:
        """Yield number and content of every event, in order.

        Raises:
            NotThere: nobody opened this thread.
            Fault: an event cannot be read. None is left out: it might be the one that takes or frees an order.
        """
        numbers = [int(name.removesuffix(".json")) for name in fsio.names(self.folder) if _is_event(name)]
        if 1 not in numbers:
            raise NotThere(f"{self.folder.name}: there is no such order or change in {self.folder.parent}")
        for number in sorted(numbers):
            if number > since:
                said: Said = load(Said, self.folder / _file(number))
                yield number, said

    def open(self, first: Said) -> bool:
        """Publish the opening event; False when somebody else opened this thread."""
        fsio.make_folder(self.folder)
        return fsio.publish(self.folder / _file(1), first.encoded())

    def add(self, said: Said, unless: Callable[[Said], bool] = lambda _: False, *, since: int = 0) -> int:
        """Publish one more event and return its number, or that of one after ``since`` for which ``unless`` holds.

        Every event after that has been looked at when a number is taken, so what is to be said once is said once,
        whoever else says it at the same moment.
        """
        last = since
        while True:
            for number, known in self.events(since=last):
                if unless(known):
                    return number
                last = number
            if fsio.publish(self.folder / _file(last + 1), said.encoded()):
                return last + 1


def _file(number: int) -> str:
    return f"{number:0{_DIGITS}d}.json"


def _is_event(name: str) -> bool:
    stem = name.removesuffix(".json")
    return name.endswith(".json") and len(stem) == _DIGITS and stem.isascii() and stem.isdigit()
