"""A run's journal: transactions published by link under the next number, and the snapshot that spares re-reading them.

The commit is the fence: whoever finds the number taken was overtaken, drops its plan and loads again.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from outerloop_hpc import fsio
from outerloop_hpc.documents import decode, load
from outerloop_hpc.engine import events as ev
from outerloop_hpc.engine.layout import RunFolder
from outerloop_hpc.engine.spec import RunSpec
from outerloop_hpc.engine.state import RunState, apply
from outerloop_hpc.errors import Fault, OuterloopError

_log = logging.getLogger(__name__)


class Overtaken(OuterloopError):  # noqa: N818 - states what happened
    """Another reconciler committed first; load again and plan again."""


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
        while (transaction := self._read(state.seq + 1)) is not None:
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
            Fault: one cannot be read.
        """
        seq = 1
        while (transaction := self._read(seq)) is not None:
            yield transaction
            seq += 1

    def commit(
        self, state: RunState, events: Sequence[ev.Event], *, by: ev.Author, at: datetime, nonce: str
    ) -> RunState:
        """Publish the next transaction and return the state after it.

        Raises:
            Overtaken: the number is taken by somebody else's transaction; nothing of ours was written.
            Fault: a transaction is missing before later ones; nothing of ours was written.
            TryLater: the filesystem is full or read-only; nothing was written.
        """
        transaction = ev.Transaction(
            run=self.folder.run_id, seq=state.seq + 1, nonce=nonce, at=at, by=by, events=tuple(events)
        )
        path = self.folder.journal / _name(transaction.seq)
        fsio.make_folder(self.folder.journal)
        self._from(transaction.seq)
        if not fsio.publish(path, transaction.encoded()):
            raise Overtaken(f"{path}: another reconciler went on with {self.folder.run_id}; its plan holds")
        return apply(state, transaction)

    def still_at(self, state: RunState) -> None:
        """Make sure that nobody went on since ``state``.

        Raises:
            Overtaken: somebody did; whatever was about to be done is theirs to decide.
            Fault: a transaction is missing before later ones; going on from the gap would do things twice.
        """
        if _name(state.seq + 1) in self._from(state.seq + 1):
            raise Overtaken(f"{self.folder.run_id}: another reconciler went on meanwhile; nothing is done here")

    def _from(self, seq: int) -> list[str]:
        """Names of the transactions from ``seq`` on; refuses a gap in front of them."""
        following = _name(seq)
        later = [name for name in fsio.names(self.folder.journal) if name >= following]
        if later and later[0] != following:
            path = self.folder.journal / following
            raise Fault(f"{path}: is missing, but {later[0]} is there; put it back, nothing is done with a gap")
        return later

    def save_snapshot(self, state: RunState) -> None:
        """Cache the fold. Losing it costs time only, so a full disk is not an error here."""
        with suppress(OuterloopError, OSError):
            fsio.replace(self.folder.snapshot, state.encoded())

    def _snapshot(self) -> RunState:
        try:
            state: RunState = load(RunState, self.folder.snapshot)
        except FileNotFoundError:
            return RunState(run=self.folder.run_id)
        except Fault as fault:
            _log.warning("%s; folding the journal from its beginning", fault)
            return RunState(run=self.folder.run_id)
        return state if state.run == self.folder.run_id else RunState(run=self.folder.run_id)

    def _read(self, seq: int) -> ev.Transaction | None:
        path = self.folder.journal / _name(seq)
        try:
            data = fsio.read(path)
        except FileNotFoundError:
            return self._read(seq) if self._goes_on_at(path) else None
        except OSError as error:
            raise Fault(f"{path}: cannot be read: {error.strerror}; the run waits until it can be") from error
        transaction: ev.Transaction = decode(ev.Transaction, data, path)
        if transaction.seq != seq or transaction.run != self.folder.run_id:
            raise Fault(f"{path}: says transaction {transaction.seq} of {transaction.run}; it was put here by mistake")
        return transaction

    def _goes_on_at(self, path: Path) -> bool:
        """Whether a transaction that was missing a moment ago is there now.

        Raises:
            Fault: it is missing and later ones are there: going on here would write a second history over the first.
        """
        present = fsio.names(path.parent)
        if path.name in present:
            return True
        if any(name > path.name for name in present):
            raise Fault(f"{path}: is missing, and {present[-1]} is there; restore it, the run waits until then")
        return False
