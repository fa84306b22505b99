"""A benchmark or validation command as an argument list (pure): split like a shell would, but never run by one."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from outerloop_hpc.errors import ConfigError

_SHELL_ONLY = frozenset({"|", "||", "&&", "&", ";", ">", ">>", "<", "<<", "2>", "2>&1", "&>", "1>&2", ">&2"})


def split_command(command: str | Sequence[str]) -> tuple[str, ...]:
    """Return the argument list of ``command``.

    Args:
        command: a list is taken as it is; a text is split by shell quoting rules, with nothing expanded.

    Raises:
        ConfigError: empty, quotes that do not close, or words that only a shell understands (a pipe written into a
            list would silently become an argument).
    """
    if not isinstance(command, str):
        argv = tuple(command)
        if not argv or not argv[0]:
            raise ConfigError("the command is empty; name a program")
        return argv
    try:
        argv = tuple(shlex.split(command))
    except ValueError as error:
        raise ConfigError(f"the command {command!r} cannot be split: {error}; check its quotes") from error
    if not argv or not argv[0]:
        raise ConfigError("the command is empty; name a program")
    strange = next((word for word in (*argv, *_operators(command)) if word in _SHELL_ONLY), None)
    if strange is not None:
        raise ConfigError(
            f"the command {command!r} has {strange!r}, which only a shell understands; "
            "write it as: bash -c '…', or put it into a script"
        )
    name, equals, _ = argv[0].partition("=")
    if equals and name.isidentifier():
        raise ConfigError(
            f"the command {command!r} starts with a variable, which only a shell sets; write: env {argv[0]} …"
        )
    return argv


def _operators(command: str) -> list[str]:
    """Return what a shell would end a command at, also where no space stands before it; nothing from inside quotes."""
    words = shlex.shlex(command, posix=True, punctuation_chars=";&|")
    words.whitespace_split = True
    words.commenters = ""
    return [word for word in words if word in {";", "&&", "||"}]
