"""Replay a cell at the command line: scratch and a log of its own, an end on Ctrl-C, and rows that compare."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from outerloop_hpc import fsio
from outerloop_hpc.cli.output import Column
from outerloop_hpc.cli.session import Session, talk
from outerloop_hpc.clock import SystemClock
from outerloop_hpc.engine.body import Stop
from outerloop_hpc.engine.scratch import made, scratch_root
from outerloop_hpc.engine.state import Step
from outerloop_hpc.engine.watch import LiveRun
from outerloop_hpc.errors import Exit, OuterloopError, TryLater, UsageError
from outerloop_hpc.evolve.applying.replay import Compared, compared, recorded, replay, step_of
from outerloop_hpc.evolve.findings import CellFound

REPLAY_COLUMNS = (
    Column("arm", "incumbent or candidate"),
    Column("value", "word, success, or a metric"),
    Column("recorded", "what it was in the run"),
    Column("now", "what it is here and now"),
    Column("same", "whether both are equal"),
)
_LOG, _FOUND = "log", "found.json"


class Interrupted(OuterloopError):  # noqa: N818 - states what happened
    """A person ended the replay."""

    exit_status = Exit.INTERRUPTED


@dataclass(frozen=True)
class Replayed:
    """What came of a replay, beside what was recorded."""

    run: str
    before: CellFound | None
    now: CellFound

    @property
    def lines(self) -> Sequence[Compared]:
        """Every value of every arm."""
        return compared(self.before, self.now)

    @property
    def contradicts(self) -> bool:
        """Whether an arm came to another word or another success than in the run."""
        return self.before is not None and any(one.weighs and not one.same for one in self.lines)

    def rows(self) -> Iterator[Mapping[str, object]]:
        """Yield a row for each value."""
        for one in self.lines:
            same = None if self.before is None else one.same
            yield {"arm": one.arm, "value": one.value, "recorded": one.recorded, "now": one.now, "same": same}

    def said(self) -> str:
        """Say in a line how it compares."""
        if self.before is None:
            return f"cell {self.now.cell} has no result in the run to compare with"
        differing = [f"{one.value} of {one.arm}" for one in self.lines if not one.same]
        if not differing:
            return f"cell {self.now.cell}: equal to what was recorded on {self.before.node or 'its node'}"
        return f"cell {self.now.cell}: not as recorded on {self.before.node or 'its node'}: {', '.join(differing)}"

    def meta(self) -> Mapping[str, object]:
        """Return both whole, for JSON."""
        before = None if self.before is None else _plain(self.before)
        equal = None if self.before is None else all(one.same for one in self.lines)
        return {"run": self.run, "cell": self.now.cell, "equal": equal, "recorded": before, "found": _plain(self.now)}


def _plain(found: CellFound) -> Mapping[str, object]:
    return found.model_dump(mode="json", exclude_none=True)


def replayed(here: Session, run: LiveRun, text: str, keep: Path | None) -> Replayed:
    """Replay the cell that ``text`` names; what its commands said goes to stderr, or into a file of ``keep``.

    Raises:
        UsageError: no such cell, or ``keep`` is there already.
        IntegrityFault: something is not what was frozen.
        ConfigError, TryLater: it cannot be carried out, or not here and now.
        Interrupted: a person ended it.
    """
    step = step_of(run.state, text)
    before = recorded(step)
    if keep is not None:
        _new(keep)
    now = _replay(here, run, step, keep)
    if keep is not None:
        fsio.replace(keep / _FOUND, now.model_dump_json(exclude_none=True).encode() + b"\n")
    return Replayed(run.run_id, before, now)


def _new(folder: Path) -> None:
    try:
        folder.mkdir(parents=True)
    except FileExistsError as error:
        raise UsageError(f"{folder}: is there already; --keep makes a new folder, name another") from error
    except OSError as error:
        raise UsageError(f"{folder}: cannot be made: {error.strerror}; name another") from error


def _replay(here: Session, run: LiveRun, step: Step, keep: Path | None) -> CellFound:
    stop, at = Stop(), SystemClock().now()
    with ExitStack() as held:
        try:
            root = scratch_root(here.settings.container.scratch, here.environ)
            scratch = held.enter_context(made(root, fsio.nonce(), at))
        except OSError as error:
            raise TryLater(f"no scratch space here: {error}; free space, or set [container] scratch") from error
        log = scratch / _LOG if keep is None else keep.absolute() / _LOG
        if keep is None:
            held.callback(_tell, log)
        held.enter_context(_stopping(stop))
        try:
            return replay(run.spec, step, layout=here.layout, scratch=scratch, log=log, stop=stop, environ=here.environ)
        except TryLater as later:
            if stop():
                raise Interrupted(f"{stop.reason} ended the replay; nothing of the run was changed") from later
            raise


def _tell(log: Path) -> None:
    with suppress(OSError):
        talk(log.read_text(encoding="utf-8", errors="replace").rstrip("\n"))


@contextmanager
def _stopping(stop: Stop) -> Iterator[None]:
    """Let Ctrl-C and TERM end the command that runs, so that none is left behind."""

    def ask(number: int, _frame: FrameType | None) -> None:
        stop.ask(signal.Signals(number).name)

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
