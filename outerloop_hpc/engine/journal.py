"""A run's journal: transactions published by link under the next number, and the snapshot that spares re-reading them.

The commit is the fence: whoever finds the number taken was overtaken, drops its plan and loads again.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime

from outerloop_hpc import __version__, fsio
from outerloop_hpc.documents import decode, load
from outerloop_hpc.engine import events as ev
from outerloop_hpc.engine.fold import FOLD, apply
from outerloop_hpc.engine.layout import RunFolder
from outerloop_hpc.engine.spec import RunSpec
from outerloop_hpc.engine.state import RunState, Snapshot
from outerloop_hpc.errors import Fault, OuterloopError

_log = logging.getLogger(__name__)
#: What a snapshot rests on: two versions of the tool, or two folds, may make different states of one journal.
FOLDED_BY = f"{__version__}/{FOLD}"


class Overtaken(OuterloopError):  # noqa: N818 - states what happened
    """Another reconciler committed first; load again and plan again."""


_TRANSACTION = re.compile(r"\d{8}\.json$")


def _name(seq: int) -> str:
    return f"{seq:08d}.json"


class Journal:
    """Reads and extends one run's history. Only reconcilers use ``commit``."""

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder

    def spec(self) -> RunSpec:
        """Read the run's specification.

        Raises:
            Fault: it is missing or cannot be understood.
        """
        try:
            spec: RunSpec = load(RunSpec, self.folder.spec)
        except FileNotFoundError as error:
            entry = self.folder.path.parents[2] / "live" / self.folder.run_id
            raise Fault(f"{self.folder.spec}: is missing; put it back, or remove {entry} to give up the run") from error
        if spec.run != self.folder.run_id:
            raise Fault(f"{self.folder.spec}: is the specification of {spec.run}, not of {self.folder.run_id}")
        return spec

    def state(self) -> RunState:
        """Fold the journal, from the snapshot where there is a readable one.

        Raises:
            Fault: a transaction cannot be read or does not follow; the text names the file.
        """
        state = self._snapshot()
        for transaction in self._after(state.seq):
            try:
                state = apply(state, transaction)
            except (LookupError, TypeError) as error:
                path = self.folder.journal / _name(transaction.seq)
                raise Fault(
                    f"{path}: does not follow from what is before it ({error!r}); restore the journal"
                ) from error
        return state

    def transactions(self) -> Iterator[ev.Transaction]:
        """Every transaction from the first on, for ``explain``.

        Raises:
            Fault: one cannot be read, or is missing.
        """
        return self._after(0)

    def commit(
        self, state: RunState, events: Sequence[ev.Event], *, by: ev.Author, at: datetime, nonce: str
    ) -> RunState:
        """Publish the next transaction and return the state after it.

        Raises:
            Overtaken: the number is taken by somebody else's transaction; nothing of ours was written.
            TryLater: the filesystem is full or read-only; nothing was written.
        """
        transaction = ev.Transaction(
            run=self.folder.run_id, seq=state.seq + 1, nonce=nonce, at=at, by=by, events=tuple(events)
        )
        path = self.folder.journal / _name(transaction.seq)
        fsio.make_folder(self.folder.journal)
        if not fsio.publish(path, transaction.encoded()):
            raise Overtaken(f"{path}: another reconciler went on with {self.folder.run_id}; its plan holds")
        return apply(state, transaction)

    def still_at(self, state: RunState) -> None:
        """Make sure that nobody went on since ``state``.

        Raises:
            Overtaken: somebody did; whatever was about to be done is theirs to decide.
        """
        if self._last() > state.seq:
            raise Overtaken(f"{self.folder.run_id}: another reconciler went on meanwhile; nothing is done here")

    def save_snapshot(self, state: RunState) -> None:
        """Cache the fold. Losing it costs time only, so a full disk is not an error here."""
        with suppress(OuterloopError, OSError):
            fsio.replace(self.folder.snapshot, Snapshot(folded_by=FOLDED_BY, state=state).encoded())

    def _snapshot(self) -> RunState:
        try:
            found: Snapshot = load(Snapshot, self.folder.snapshot)
        except FileNotFoundError:
            return RunState(run=self.folder.run_id)
        except Fault as fault:
            _log.warning("%s; folding the journal from its beginning", fault)
            return RunState(run=self.folder.run_id)
        ours = (found.state.run, found.folded_by) == (self.folder.run_id, FOLDED_BY)
        return found.state if ours else RunState(run=self.folder.run_id)

    def _last(self) -> int:
        """The number of the newest transaction; one folder listing."""
        try:
            found = fsio.names(self.folder.journal)
        except OSError as error:
            raise Fault(
                f"{self.folder.journal}: cannot be listed: {error.strerror}; the run waits until it can be"
            ) from error
        # The names are sorted and of one length, so that the last one is the newest.
        last = next(filter(_TRANSACTION.match, reversed(found)), "0")
        return int(last[:8])

    def _after(self, seq: int) -> Iterator[ev.Transaction]:
        last = self._last()
        if last < seq:  # a snapshot of more: a listing may be old, but a name that is looked up and not there is lost
            self._read(seq, last)
        for number in range(seq + 1, last + 1):
            yield self._read(number, last)

    def _read(self, seq: int, last: int) -> ev.Transaction:
        path = self.folder.journal / _name(seq)
        try:
            data = fsio.read(path)
        except FileNotFoundError:
            # Going on from here would write a second history over the first.
            there = _name(last) if last >= seq else "a snapshot of it"
            raise Fault(f"{path}: is missing, and {there} is there; restore it, the run waits until then") from None
        except OSError as error:
            raise Fault(f"{path}: cannot be read: {error.strerror}; the run waits until it can be") from error
        transaction: ev.Transaction = decode(ev.Transaction, data, path)
        if transaction.seq != seq or transaction.run != self.folder.run_id:
            raise Fault(f"{path}: says transaction {transaction.seq} of {transaction.run}; it was put here by mistake")
        return transaction
