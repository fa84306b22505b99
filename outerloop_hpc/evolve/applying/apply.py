"""Apply a promoted candidate to a working tree: every file and every copy of it, or none.

Each place is compared with what it was at submit, twice; then all are exchanged, checked, and put back if anything is
amiss. Before anything is written there a recovery file says what is under way, so that ``mend`` can put back what a
killed process left. Nothing is ever committed.
"""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from outerloop_hpc import documents, effects, fsio
from outerloop_hpc.documents import Document
from outerloop_hpc.errors import Exit, TryLater, UsageError
from outerloop_hpc.evolve.applying.destination import Destination, Difference, Tree, opened
from outerloop_hpc.evolve.applying.exchange import Exchange, FileExchange
from outerloop_hpc.evolve.overlays import descent
from outerloop_hpc.evolve.overlays.overlay import IntegrityFault, InvalidOverlay, Overlay, check, content_digest
from outerloop_hpc.evolve.work import EvolveWork, copies_of

#: Told before each step and each file, (step, path): tests let things happen there.
Watcher = Callable[[str, str], None]
_INTERRUPTS = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
_WORDS: dict[Difference, str] = {
    "missing": "missing (there at submit)",
    "unexpected": "unexpected (not there at submit)",
    "drifted": "drifted (changed since submit)",
}


class ApplyRefused(UsageError):  # noqa: N818 - states the finding
    """The working tree is not what it was at submit; it was left, or put back, as it was found.

    Attributes:
        differences: path and reason by what is the matter.
    """

    exit_status = Exit.NOT_APPLIED

    def __init__(self, text: str, differences: Mapping[Difference, Sequence[str]] | None = None) -> None:
        super().__init__(text)
        self.differences = dict(differences or {})


class Unfinished(IntegrityFault):
    """Some places could not be put back; the recovery file says where everything is."""


class Recovery(Document):
    """What is under way in a working tree. ``done``: all was exchanged, only names beside the files are left over."""

    name: ClassVar[str] = "apply-recovery"

    checkout: str
    overlay: str
    destinations: tuple[Destination, ...]
    folders: tuple[str, ...] = ()
    done: bool = False


@dataclass(frozen=True, slots=True)
class Applied:
    """What was written. ``changed``: paths that have other bytes now; ``same``: those that had them already."""

    changed: tuple[str, ...]
    same: tuple[str, ...] = ()


def apply(
    overlay: Overlay,
    work: EvolveWork,
    checkout: Path,
    recovery: Path,
    *,
    exchange: Exchange | None = None,
    watch: Watcher = lambda _step, _path: None,
) -> Applied:
    """Put a candidate's files, and every copy of them, into a working tree; all or nothing.

    A tree that holds all of them already is left as it is.

    Args:
        overlay: loaded from where it was frozen.
        work: of the sweep: its rules, its base and its copies.
        checkout: root of the working tree.
        recovery: file of mode 0600 that is there while the tree is changed; its folder exists.
        exchange: how files change places.
        watch: told before each step.

    Raises:
        InvalidOverlay: the candidate breaks the rules of the sweep.
        ApplyRefused: a place is missing, unexpected or drifted, or somebody writes there now; all is as it was found.
        Unfinished: not everything could be put back; the recovery file is kept.
        TryLater: the disk is full or does not answer; all is as it was found.
    """
    check(overlay, work.overlay, work.base, work.copies)
    if recovery.exists():
        raise ApplyRefused(
            f"{recovery}: an earlier apply was cut off there, and nothing was changed now; mend that first "
            "(`outerloop-hpc evolve apply RUN --mend`)"
        )
    wanted = places(overlay, work)
    application = _Application(overlay.digest, checkout, recovery, exchange or FileExchange(), watch)
    return effects.perform("apply", str(checkout), lambda: application.carried_out(wanted))


def foreseen(overlay: Overlay, work: EvolveWork, checkout: Path) -> Applied:
    """Return what ``apply`` would do to a working tree as it is now; writes nothing, and raises as ``apply`` does."""
    check(overlay, work.overlay, work.base, work.copies)
    application = _Application(overlay.digest, checkout, checkout, FileExchange(), lambda _step, _path: None)
    return application.foreseen(places(overlay, work))


def mend(recovery: Path, *, exchange: Exchange | None = None) -> tuple[str, ...]:
    """Put back what an apply that was cut off had changed; returns the paths that it was about.

    Raises:
        FileNotFoundError: there is no such recovery file.
        ApplyRefused: an apply is at work in the tree, or was and has come to its end meanwhile.
        Unfinished: not everything can be put back; the text says what and why.
    """
    found: Recovery = documents.load(Recovery, recovery)
    application = _Application(
        found.overlay, Path(found.checkout), recovery, exchange or FileExchange(), lambda _step, _path: None
    )
    effects.perform("mend", found.checkout, application.mended)
    return tuple(one.path for one in found.destinations)


def places(overlay: Overlay, work: EvolveWork) -> dict[str, tuple[bytes, str | None]]:
    """Return bytes and expected digest for every place; a copy is expected to be what its source was.

    Raises:
        InvalidOverlay: a place is to be a copy of two files that differ.
    """
    wanted: dict[str, tuple[bytes, str | None]] = {}
    for path, data in overlay.files.items():
        for place in (path, *copies_of(path, work.copies)):
            if wanted.setdefault(place, (data, work.base.get(path)))[0] != data:
                raise InvalidOverlay([f"{place!a} is to be a copy of two files that differ"])
    return wanted


@dataclass
class _Application:
    overlay: str
    checkout: Path
    recovery: Path
    exchange: Exchange
    watch: Watcher

    def carried_out(self, wanted: Mapping[str, tuple[bytes, str | None]]) -> Applied:
        places = _destinations(wanted)
        with self._tree() as tree:
            self._alone(tree)
            found = self._looked_at(tree, places)
            if not found.changed:
                return found
            changing = tuple(one for one in places if one.path in found.changed)
            under_way = Recovery(
                checkout=str(self.checkout.absolute()),
                overlay=self.overlay,
                destinations=changing,
                folders=tree.missing_folders(changing),
            )
            self._claim(under_way)
            committed = False
            try:
                self._exchange(tree, places, under_way, {path: data for path, (data, _) in wanted.items()})
                with _uninterrupted():
                    done = under_way.model_copy(update={"done": True})
                    fsio.replace(self.recovery, done.encoded(), mode=0o600)
                    committed = True
                    self._settle(tree, done)
            except BaseException as error:
                if not committed:
                    self._roll_back(tree, under_way, error)
                raise
        return found

    def foreseen(self, wanted: Mapping[str, tuple[bytes, str | None]]) -> Applied:
        with self._tree() as tree:
            return self._looked_at(tree, _destinations(wanted))

    def mended(self) -> None:
        with self._tree() as tree:
            self._alone(tree)
            try:
                # Only now: an apply that was alive when this began may have come to its end since.
                found: Recovery = documents.load(Recovery, self.recovery)
            except FileNotFoundError as error:
                raise ApplyRefused(
                    f"{self.recovery}: is gone; the apply came to its end, nothing is to mend"
                ) from error
            if found.done:
                self._settle(tree, found)
            else:
                self._roll_back(tree, found, None)

    def _alone(self, tree: Tree) -> None:
        """Keep everybody else from this tree until it is let go; each run has a recovery file of its own.

        Two applies at once would lose nothing, but each would take the other one for an editor and give up half-way;
        and whoever mends would put back what a living apply is about to change.
        """
        try:
            fcntl.flock(tree.root, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in {errno.EWOULDBLOCK, errno.EACCES}:
                raise ApplyRefused(
                    f"{self.checkout}: another apply is at work in this tree; nothing was changed, run again when it "
                    "is done"
                ) from error
            # Some network filesystems lock no folders; there the comparisons have to do.

    def _claim(self, under_way: Recovery) -> None:
        """Say what is about to happen, unless somebody else is about to; the first one has the tree.

        The file is there whole or not at all: half of one could neither be mended nor be told from a whole one.
        """
        self.watch("claim", "")
        folder, made = self.recovery.parent, f".tmp-{fsio.nonce()}"
        try:
            fsio.replace(folder / made, under_way.encoded(), mode=0o600)
            with descent.opened(Path(os.path.realpath(folder))) as parent:
                FileExchange().place(parent, self.recovery.name, made)
        except FileExistsError as error:
            raise ApplyRefused(f"{self.recovery}: another apply began meanwhile; nothing was changed") from error
        finally:
            (folder / made).unlink(missing_ok=True)
        fsio.sync_folder(folder)

    @contextmanager
    def _tree(self) -> Iterator[Tree]:
        try:
            with descent.opened(Path(os.path.realpath(self.checkout))) as root, opened(root, self.exchange) as tree:
                yield tree
        except FileNotFoundError as error:
            raise ApplyRefused(
                f"{self.checkout}: {error.filename or 'it'} is not there; nothing was changed"
            ) from error
        except descent.Strange as strange:
            raise ApplyRefused(f"{self.checkout}: {strange}; nothing was changed") from strange
        except OSError as error:
            raise TryLater(f"{self.checkout}: {error.strerror or error}; it is as it was found, run again") from error

    def _looked_at(self, tree: Tree, places: Sequence[Destination]) -> Applied:
        """Compare every place with what it was at submit, unless all of them hold the candidate already."""
        if all(tree.difference(one.model_copy(update={"expected": one.candidate})) is None for one in places):
            return Applied((), tuple(one.path for one in places))
        self._compare(tree, places, "compare")
        changing = tuple(one.path for one in places if one.candidate != one.expected)
        return Applied(changing, tuple(one.path for one in places if one.path not in changing))

    def _compare(self, tree: Tree, places: Sequence[Destination], step: str) -> None:
        found: dict[Difference, list[str]] = defaultdict(list)
        for one in places:
            self.watch(step, one.path)
            difference = tree.difference(one)
            if difference is not None:
                kind, reason = difference
                found[kind].append(f"{one.path!a} {reason}")
        if found:
            text = "; ".join(f"{_WORDS[kind]}: {', '.join(found[kind])}" for kind in _WORDS if kind in found)
            raise ApplyRefused(
                f"{self.checkout}: not applied, everything is as it was found: {text}. The evidence stays valid for "
                "what was measured; bring the files back, or submit a sweep on the new ones",
                found,
            )

    def _exchange(
        self, tree: Tree, places: Sequence[Destination], under_way: Recovery, contents: Mapping[str, bytes]
    ) -> None:
        changing = under_way.destinations
        tree.make_folders(under_way.folders)
        for one in changing:
            self.watch("stage", one.path)
            tree.stage(one, contents[one.path])
        self._compare(tree, places, "recheck")
        for one in changing:
            self.watch("exchange", one.path)
            try:
                tree.put(one)
            except (FileNotFoundError, FileExistsError) as error:
                raise self._raced(one.path, "was written by somebody else in the same moment") from error
        for one in changing:
            self.watch("parity", one.path)
            problem = tree.parity(one)
            if problem is not None:
                raise self._raced(one.path, problem)
        self.watch("finish", "")

    def _raced(self, path: str, problem: str) -> ApplyRefused:
        return ApplyRefused(
            f"{self.checkout}: {path!a} {problem}; everything was put back, look at it and apply again",
            {"drifted": [f"{path!a} {problem}"]},
        )

    def _settle(self, tree: Tree, done: Recovery) -> None:
        """Clear what is left beside the files; from here on nothing is put back any more."""
        with _uninterrupted():
            try:
                for one in done.destinations:
                    self.watch("settle", one.path)
                    tree.settle(one)
            except (OSError, descent.Strange) as error:
                raise Unfinished(
                    f"{self.checkout}: the candidate is in place, and what was there before could not be removed "
                    f"({error}); {self.recovery} names these files"
                ) from error
            fsio.remove(self.recovery)

    def _roll_back(self, tree: Tree, under_way: Recovery, cause: BaseException | None) -> None:
        left: list[str] = []
        with _uninterrupted():
            for one in reversed(under_way.destinations):
                self.watch("undo", one.path)
                problem = tree.undo(one)
                if problem is not None:
                    left.append(f"{one.path!a} {problem}")
            if not left:
                tree.remove_folders(under_way.folders)
                fsio.remove(self.recovery)
        if left:
            raise Unfinished(
                f"{self.checkout}: not everything could be put back: {'; '.join(left)}; {self.recovery} says where "
                "everything is"
            ) from cause


def _destinations(wanted: Mapping[str, tuple[bytes, str | None]]) -> list[Destination]:
    return [_destination(path, content_digest(data), was) for path, (data, was) in wanted.items()]


def _destination(path: str, candidate: str, expected: str | None) -> Destination:
    mark = f".outerloop-{fsio.nonce()}"
    return Destination(path=path, candidate=candidate, expected=expected, spare=mark, aside=f"{mark}-was")


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Let a second Ctrl-C wait until everything is put back; a mask would leave it to any other thread to take it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    asked: list[int] = []
    before = {number: signal.signal(number, lambda said, _frame: asked.append(said)) for number in _INTERRUPTS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)
        if asked:
            signal.raise_signal(asked[0])
