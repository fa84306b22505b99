"""Run one command under the warden: time limit, early stop, capped output, and what it used."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from outerloop_hpc import effects
from outerloop_hpc.clock import Clock
from outerloop_hpc.supervision import warden
from outerloop_hpc.supervision.capture import CappedLog, Redacted, Sink, Tail

_READ = 1 << 16
_LOOK_EVERY_S = 0.2
#: After the grace the warden kills and sweeps; this long after that it is killed itself.
_WARDEN_SLACK_S = 10.0
#: What is left in the pipes is read for so long; only a process that cannot be killed could still fill them.
_DRAIN_S = 5.0
_STDERR_KEPT = 64 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one execution.

    Attributes:
        wall_s: seconds until the command is asked to end.
        grace_s: seconds between TERM and KILL.
        output_bytes: how much of stdout is kept, and how large the log may grow.
    """

    wall_s: float
    grace_s: float = 10.0
    output_bytes: int = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Ended:
    """How an execution ended.

    Attributes:
        status: exit status, negative for a signal; None when it did not start or nobody could tell.
        ended_by: ``itself``, ``limit`` (wall time) or ``stop`` (asked to).
        problem: why it did not start, or what could not be found out.
        errno: error number behind ``problem``, if any.
        stdout: its end. stderr: its last 64 KiB, as text.
        output_bytes: length of stdout and stderr together.
        cut: whether the beginning of stdout is missing.
        seconds: wall time. user_s, system_s, max_rss_kib: of the command and all that it started.
        left_over: processes that were still there when the command had ended, and were killed.
        notes: what went wrong beside it.
    """

    status: int | None
    ended_by: str
    problem: str | None
    errno: int | None
    stdout: bytes
    stderr: str
    output_bytes: int
    cut: bool
    seconds: float
    user_s: float = 0.0
    system_s: float = 0.0
    max_rss_kib: int = 0
    left_over: int = 0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Feed:
    """What goes into a command and comes out of it beside the usual.

    Attributes:
        stdin: a file that it reads on stdin; None for nothing.
        taps: each gets stdout as it comes.
        secrets: texts that are masked in all that comes out, before anything is kept, logged or tapped.
        ended: told how it ended before anything else is done, as a part of the command's own effect.
    """

    stdin: Path | None = None
    taps: tuple[Sink, ...] = ()
    secrets: tuple[bytes, ...] = field(default=(), repr=False)
    ended: Callable[[Ended], None] = lambda _ended: None


def run_child(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: Path,
    limits: Limits,
    log: Path | None,
    clock: Clock,
    stop: Callable[[], bool] = lambda: False,
    feed: Feed = Feed(),
) -> Ended:
    """Run ``argv`` to its end, its limit or ``stop``; nothing that it started is left afterwards.

    Args:
        argv: the command; found on the PATH of ``env``.
        env: its complete environment.
        cwd: the folder it starts in.
        limits: wall time, grace and output.
        log: gets a capped copy of stdout and stderr as they come.
        clock: for the limits and the wall time.
        stop: asked about five times a second; True ends the command early.
        feed: what it reads, who listens, and what nobody may hear.
    """
    execution = _Execution(limits, log, clock, stop, feed)

    def run() -> Ended:
        ended = execution.run(tuple(argv), dict(env), cwd)
        feed.ended(ended)
        return ended

    return effects.perform("command", str(argv[0]), run)


class _Execution:
    def __init__(self, limits: Limits, log: Path | None, clock: Clock, stop: Callable[[], bool], feed: Feed) -> None:
        self._feed = feed
        self._masks: list[Redacted] = []
        self._limits = limits
        self._clock = clock
        self._stop = stop
        self._log = CappedLog(log, limits.output_bytes)
        self._out = Tail(limits.output_bytes)
        self._err = Tail(_STDERR_KEPT)
        self._said = Tail(_READ)
        self._ended_by = "itself"

    def run(self, argv: tuple[str, ...], env: dict[str, str], cwd: Path) -> Ended:
        begun = self._clock.steady()
        report, into = os.pipe()
        call = (sys.executable, "-I", "-S", str(Path(warden.__file__)), str(into))
        try:
            process = subprocess.Popen(
                call,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=(into,),
                start_new_session=True,
            )
        except OSError as error:
            os.close(report)
            self._log.close(f"could not be started: {error.strerror}\n".encode())
            return self._ended({"errno": error.errno, "error": error.strerror}, 0.0)
        finally:
            os.close(into)
        with process, os.fdopen(report, "rb", buffering=0) as reported:
            try:
                self._order(process, argv, env, cwd)
                self._follow(process, reported.fileno(), begun)
            except BaseException:
                process.terminate()
                raise
        for mask in self._masks:
            mask.flush()
        self._log.close()
        return self._ended(self._answer(), self._clock.steady() - begun)

    def _order(self, process: subprocess.Popen[bytes], argv: tuple[str, ...], env: dict[str, str], cwd: Path) -> None:
        order = {
            "argv": argv,
            "env": env,
            "cwd": str(cwd),
            "stdin": None if self._feed.stdin is None else str(self._feed.stdin),
            "grace_s": self._limits.grace_s,
            "parent": os.getpid(),
        }
        if process.stdin is not None:
            with suppress(BrokenPipeError), process.stdin as pipe:
                pipe.write(json.dumps(order).encode())

    def _follow(self, process: subprocess.Popen[bytes], reported: int, begun: float) -> None:
        """Read all three pipes until the warden is gone and they are empty."""
        kill_at: float | None = None
        with selectors.DefaultSelector() as selector:
            for source, sinks in self._sources(process, reported):
                os.set_blocking(source, False)
                selector.register(source, selectors.EVENT_READ, sinks)
            while process.poll() is None:
                self._await(process, selector)
                now = self._clock.steady()
                if kill_at is None and self._due(now - begun):
                    process.terminate()
                    kill_at = now + self._limits.grace_s + _WARDEN_SLACK_S
                elif kill_at is not None and now > kill_at:
                    process.kill()
            until = self._clock.steady() + _DRAIN_S
            while self._read(selector, 0) and self._clock.steady() < until:
                pass

    def _sources(self, process: subprocess.Popen[bytes], reported: int) -> list[tuple[int, tuple[Sink, ...]]]:
        sources: list[tuple[int, tuple[Sink, ...]]] = [(reported, (self._said,))]
        heard: tuple[Sink, ...] = (self._out, self._log, *self._feed.taps)
        for stream, sinks in ((process.stdout, heard), (process.stderr, (self._err, self._log))):
            if stream is not None:
                sources.append((stream.fileno(), self._masked(sinks)))
        return sources

    def _masked(self, sinks: tuple[Sink, ...]) -> tuple[Sink, ...]:
        if not self._feed.secrets:
            return sinks
        mask = Redacted(sinks, self._feed.secrets)
        self._masks.append(mask)
        return (mask,)

    def _await(self, process: subprocess.Popen[bytes], selector: selectors.BaseSelector) -> None:
        """Read what comes, or wait for the end where nothing more can come; a fifth of a second at most."""
        if selector.get_map():
            self._read(selector, _LOOK_EVERY_S)
            return
        with suppress(subprocess.TimeoutExpired):
            process.wait(_LOOK_EVERY_S)

    def _read(self, selector: selectors.BaseSelector, wait: float) -> bool:
        """Take what is there, and return whether anything was."""
        got = False
        for key, _ in selector.select(wait):
            try:
                chunk = os.read(key.fd, _READ)
            except BlockingIOError:
                continue
            if not chunk:
                selector.unregister(key.fileobj)
                continue
            got = True
            for sink in key.data:
                sink.add(chunk)
        return got

    def _due(self, elapsed: float) -> bool:
        if self._stop():
            self._ended_by = "stop"
        elif elapsed >= self._limits.wall_s:
            self._ended_by = "limit"
        return self._ended_by != "itself"

    def _answer(self) -> dict[str, Any]:
        with suppress(ValueError):
            answer = json.loads(self._said.value())
            if isinstance(answer, dict):
                return answer
        return {"error": "its warden was killed, so how it ended is not known"}

    def _ended(self, answer: dict[str, Any], seconds: float) -> Ended:
        notes = [self._log.problem] if self._log.problem else []
        if answer.get("survivors"):
            notes.append(f"{answer['survivors']} processes of it could not be killed")
        return Ended(
            status=answer.get("status"),
            ended_by=self._ended_by,
            problem=answer.get("error"),
            errno=answer.get("errno"),
            stdout=self._out.value(),
            stderr=self._err.value().decode("utf-8", errors="replace"),
            output_bytes=self._out.total + self._err.total,
            cut=self._out.cut,
            seconds=seconds,
            user_s=answer.get("user_s", 0.0),
            system_s=answer.get("system_s", 0.0),
            max_rss_kib=answer.get("max_rss_kib", 0),
            left_over=answer.get("left_over", 0),
            notes=tuple(notes),
        )


def signal_name(status: int) -> str:
    """Return the name of the signal behind a negative exit status."""
    with suppress(ValueError):
        return signal.Signals(-status).name
    return f"signal {-status}"
