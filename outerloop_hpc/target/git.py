"""Run git on repositories that nobody vouches for: hardened environment, no shell. The one user of GitPython.

Every call is a short-lived process. Hooks, filters, monitors, pagers, prompts, replacement objects, lazy fetches and
everybody's configuration are off; a repository is trusted by path, for one call, through the environment.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from outerloop_hpc import effects
from outerloop_hpc.errors import ConfigError, NodeUnfit, TryLater, UsageError

_CONFIG = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.attributesFile": "/dev/null",
    "core.autocrlf": "false",
    "core.commitGraph": "false",  # a file beside the objects that could tell another history
    "core.filesRefLockTimeout": "2000",
    "core.packedRefsTimeout": "2000",
    "credential.helper": "",
    "fetch.recurseSubmodules": "false",
    "gc.auto": "0",
    "log.showSignature": "false",
    "maintenance.auto": "false",
    "protocol.ext.allow": "never",
    "transfer.unpackLimit": "1",  # one pack per fetch, not one inode per object
}
_ENVIRONMENT = {
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_ALLOW_PROTOCOL": "file:https:ssh",
    "GIT_GRAFT_FILE": "/dev/null",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "SSH_ASKPASS": "/bin/false",
    "GIT_ASKPASS": "/bin/false",
}
#: Variables of the caller's git that are passed on: how to reach a server, not what to do there.
_KEPT = frozenset({"GIT_SSL_CAINFO", "GIT_SSL_CAPATH", "GIT_SSH_COMMAND", "GIT_EXEC_PATH"})
#: Older ones ignore GIT_CONFIG_COUNT, and with it everything in _CONFIG.
_OLDEST = (2, 31)
_USAGE = re.compile(
    r"not appear to be a git repository|not a git repository|couldn't find remote ref|dubious ownership"
    r"|transport '.*' not allowed|Not a valid object name|bad object|unknown revision|cannot create '"
    r"|Host key verification failed|Permission denied|Authentication failed|could not read Username"
)
_CONTENDED = re.compile(r"cannot lock ref|Unable to create '.*\.lock'|unable to update local ref")
_LATER = re.compile(
    r"File exists|No space left|quota exceeded|Stale file handle|Input/output error|Read-only file system"
    r"|Could not resolve host|[Cc]onnection|timed out|early EOF|hung up|unable to access|Could not read from remote"
    r"|temporarily unavailable|Cannot allocate memory|died of signal"
)


class GitRefused(UsageError):  # noqa: N818 - states what happened
    """Git said no, and not for a passing reason."""


class NoGit(ConfigError, NodeUnfit):  # noqa: N818 - states what happened
    """This machine has no git that can be run."""


class Contended(TryLater):
    """Somebody else holds a lock of the repository, or just moved the same reference."""


@cache
def require_modern() -> None:
    """Refuse a git that would ignore the settings that keep it harmless; asked once per process.

    Raises:
        ConfigError: there is no git, or only one before 2.31.
    """
    said = answer(Path("/"), ("version",), environment(), 30.0, b"").decode(errors="replace").strip()
    found = re.search(r"(\d+)\.(\d+)", said)
    if found is None or (int(found[1]), int(found[2])) < _OLDEST:
        raise ConfigError(
            f"{said!a} cannot be used: {'.'.join(map(str, _OLDEST))} or newer is needed, older ones ignore the "
            "settings that keep hostile repositories harmless; load a newer git module"
        )


def environment(*trusted: Path) -> dict[str, str]:
    """Return the variables that harden a git command and let it use just the ``trusted`` repositories."""
    pairs = [*_CONFIG.items(), ("safe.directory", ""), *(("safe.directory", str(path)) for path in trusted)]
    settings = {**_ENVIRONMENT, "GIT_CONFIG_COUNT": str(len(pairs))}
    for number, (key, value) in enumerate(pairs):
        settings[f"GIT_CONFIG_KEY_{number}"] = key
        settings[f"GIT_CONFIG_VALUE_{number}"] = value
    settings.setdefault("GIT_SSH_COMMAND", os.environ.get("GIT_SSH_COMMAND", "ssh -o BatchMode=yes"))
    return settings


@contextmanager
def trusting(source: str) -> Iterator[Path]:
    """Yield a private configuration that trusts a local source.

    Git drops the command's own settings before it serves a local repository; the global file is what gets through.
    """
    if not Path(source).is_absolute():
        yield Path("/dev/null")
        return
    paths = {source, f"{source}/.git", os.path.realpath(source), os.path.realpath(f"{source}/.git")}
    lines = ["[safe]", *(f'\tdirectory = "{_escaped(path)}"' for path in sorted(paths)), ""]
    folder = Path(source)
    try:
        folder = Path(tempfile.mkdtemp(prefix="outerloop-git-"))
        (folder / "config").write_bytes(os.fsencode("\n".join(lines)))
    except OSError as error:
        raise TryLater(f"{folder}: a temporary file cannot be written: {error.strerror}; free space there") from error
    try:
        yield folder / "config"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _escaped(path: str) -> str:
    return path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")


def answer(
    cwd: Path,
    arguments: tuple[str, ...],
    settings: dict[str, str],
    timeout_s: float,
    stdin: bytes,
    *,
    fine: Sequence[int] = (0,),
) -> bytes:
    """Run ``git arguments…`` in ``cwd`` and return its output.

    Args:
        cwd: where it runs; the repository itself comes in ``settings`` as ``GIT_DIR``.
        arguments: the subcommand and its arguments.
        settings: ``environment(…)`` and what the call adds to it.
        timeout_s: seconds until the whole process group is ended.
        stdin: what it may read.
        fine: exit statuses that are answers.

    Raises:
        GitRefused: git said no; the text has the tail of its complaint.
        TryLater: time-out, locks held by others, network or disk trouble.
        ConfigError: there is no git.
    """
    return effects.perform("command", "git", lambda: _run(cwd, arguments, settings, timeout_s, stdin, fine))


def _run(
    cwd: Path,
    arguments: tuple[str, ...],
    settings: dict[str, str],
    timeout_s: float,
    stdin: bytes,
    fine: Sequence[int],
) -> bytes:
    with started(cwd, arguments, settings) as process:
        try:
            out, err = process.communicate(stdin, timeout=timeout_s)
        except subprocess.TimeoutExpired as slow:
            raise TryLater(f"{cwd}: git {arguments[0]} did not answer in {timeout_s:g} s; run again") from slow
    if process.returncode not in fine:
        raise _failure(cwd, arguments[0], process.returncode, err)
    return out


@contextmanager
def started(cwd: Path, arguments: tuple[str, ...], settings: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """Start ``git arguments…`` with pipes, in a process group of its own; leaving the context ends it."""
    try:
        from git import Git  # noqa: PLC0415 - slow to import, and it looks for git at once
    except ImportError as error:
        raise NoGit(f"git cannot be run here: {error}; install git or load its module, and run again") from error
    # GitPython adds to the caller's environment and cannot take away: `env -u` drops a GIT_DIR or GIT_TRACE of theirs.
    dropped = [name for name in os.environ if name.startswith("GIT_") and name not in settings and name not in _KEPT]
    argv = ["env", *(part for name in dropped for part in ("-u", name)), "git", *arguments]
    handle = Git(str(cwd)).execute(
        argv, as_process=True, istream=subprocess.PIPE, env=settings, shell=False, start_new_session=True
    )
    process = handle.proc
    if process is None:
        raise TryLater(f"{cwd}: git {arguments[0]} could not be started; run again")
    try:
        yield process
    finally:
        _end(process)


def _failure(folder: Path, command: str, status: int, err: bytes) -> Exception:
    tail = " ".join(err.decode("utf-8", errors="replace").split())[-800:]
    text = f"{folder}: git {command} ended with status {status}: {tail or 'no message'}"
    if _USAGE.search(tail):
        return GitRefused(text)
    if _CONTENDED.search(tail):
        return Contended(f"{text}; nothing was changed, run again (locks of others are left alone)")
    if status < 0 or _LATER.search(tail):
        return TryLater(f"{text}; nothing was changed, run again")
    return GitRefused(text)


def stop(process: subprocess.Popen[bytes]) -> None:
    """End the command's whole process group, if it still runs."""
    if process.poll() is not None:
        return
    for sig in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, sig)
        with suppress(subprocess.TimeoutExpired):
            process.wait(2.0)
            return


def _end(process: subprocess.Popen[bytes]) -> None:
    stop(process)
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()
