"""The ``command`` agent: any program, contained, with a brief on stdin and a workspace to change."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from outerloop_hpc.agents.outcome import Session, session_of
from outerloop_hpc.agents.redact import spellings
from outerloop_hpc.clock import Clock
from outerloop_hpc.errors import NodeUnfit, TryLater
from outerloop_hpc.supervision.child import Ended, Feed, Limits, run_child

_GRACE_S = 20.0
#: A line longer than this is no turn; what is held back while a line grows is bounded by it.
_LINE = 1 << 16


class Launch(Protocol):
    """A command line that runs inside; see ``container.runtime.Prepared``."""

    @property
    def argv(self) -> tuple[str, ...]: ...  # noqa: D102 - as there
    @property
    def env(self) -> Mapping[str, str]: ...  # noqa: D102
    @property
    def cwd(self) -> Path: ...  # noqa: D102


class Enclosure(Protocol):
    """Where the session runs; ``container.enclosure.Enclosure`` is the real one."""

    def command(self, argv: Sequence[str], env: Mapping[str, str], folder: Path) -> Launch:
        """Build the command line for ``argv`` in the writable ``folder``."""
        ...

    def start_failure(self, status: int | None, stderr: str) -> str | None:
        """Return why the container did not start; None when the command itself ran."""
        ...


class NotStarted(TryLater, NodeUnfit):
    """The container did not start: no session was bought, and another node may do better."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much a session may use; what goes beyond ends it as ``budget``. 0 turns is no limit."""

    turns: int
    minutes: float
    output_bytes: int = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Assignment:
    """One session.

    Attributes:
        command: the program and its arguments, as it is named inside.
        workspace: folder that it may change.
        brief: file that it reads on stdin.
        env: what it is told beside that; the brief's path inside, its role, its bounds.
        secrets: its keys by variable; given to it alone, and masked in all that it says.
        transcript: gets a capped copy of what it says.
    """

    command: tuple[str, ...]
    workspace: Path
    brief: Path
    bounds: Bounds
    transcript: Path
    env: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)


def run(
    assignment: Assignment,
    enclosure: Enclosure,
    clock: Clock,
    stop: Callable[[], bool] = lambda: False,
    told: Callable[[Session], None] = lambda _session: None,
) -> Session | None:
    """Hold one session to its end; None when ``stop`` ended it.

    What it came to is ``told`` before anything else is done: whoever dies after that can have noted it.

    Raises:
        NotStarted: the container did not start.
        ConfigError: the runtime cannot express this.
    """
    bounds = assignment.bounds
    watch = _Watch(bounds, stop)
    launch = enclosure.command(assignment.command, {**assignment.env, **assignment.secrets}, assignment.workspace)

    def note(ended: Ended) -> None:
        if _not_started(ended, enclosure) is None and (session := _session(ended, bounds, watch)) is not None:
            told(session)

    ended = run_child(
        launch.argv,
        env=launch.env,
        cwd=launch.cwd,
        limits=Limits(wall_s=60.0 * bounds.minutes, grace_s=_GRACE_S),
        log=assignment.transcript,
        clock=clock,
        stop=watch,
        feed=Feed(assignment.brief, (watch,), spellings(assignment.secrets.values()), note),
    )
    if failure := _not_started(ended, enclosure):
        raise NotStarted(failure)
    return _session(ended, bounds, watch)


def _session(ended: Ended, bounds: Bounds, watch: _Watch) -> Session | None:
    if watch.stopped:
        return None
    if ended.ended_by == "limit":
        return session_of(ended, over=f"its {bounds.minutes:g} minutes were over")
    return session_of(ended, over=watch.over)


def _not_started(ended: Ended, enclosure: Enclosure) -> str | None:
    return None if _ran(ended) else enclosure.start_failure(ended.status, ended.stderr)


def _ran(ended: Ended) -> bool:
    """Whether the program itself ran, or may have: then a session was bought, whatever it said on stderr.

    A runtime that does not start says nothing on stdout. Without an exit status only an error number says that there
    was no start; else its warden was killed, by the kernel for memory or by us when it did not end.
    """
    return bool(ended.stdout) or ended.ended_by != "itself" or (ended.status is None and ended.errno is None)


class _Watch:
    """Listens to stdout and says when a session has had its turns, or said too much; also asks the job's own ``stop``.

    A line that is a JSON object of the type ``turn`` or ``assistant`` is a turn.
    """

    def __init__(self, bounds: Bounds, stop: Callable[[], bool]) -> None:
        self._bounds, self._stop = bounds, stop
        self._line = b""
        self._bytes = self._turns = 0
        self.stopped = False
        self.over = ""

    def add(self, chunk: bytes) -> None:
        """Take the next bytes of stdout."""
        self._bytes += len(chunk)
        *lines, rest = (self._line + chunk).split(b"\n")
        self._turns += sum(map(_is_turn, lines))
        self._line = rest[-_LINE:]

    def __call__(self) -> bool:
        """Whether the session must end now."""
        if self._stop():
            self.stopped = not self.over
        elif self._bounds.turns and self._turns > self._bounds.turns:
            self.over = f"its {self._bounds.turns} turns were over"
        elif self._bytes > self._bounds.output_bytes:
            self.over = f"it said more than {self._bounds.output_bytes} bytes"
        return self.stopped or bool(self.over)


def _is_turn(line: bytes) -> bool:
    if not line.startswith(b"{") or len(line) > _LINE:
        return False
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(said, dict) and said.get("type") in {"turn", "assistant"}
