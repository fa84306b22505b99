"""The few exception classes, each with the exit status that the command line ends with.

A message says what happened, to which id, where the log is, and what to do next.
"""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """Exit statuses of the command line (DESIGN §10); of sweeps alone: a proposer that gave up is 4, and 5 to 7."""

    DONE = 0
    INTERNAL = 1
    USAGE = 2
    FINDINGS = 3
    PARTLY_FAILED = 4
    NOT_APPLIED = 5
    HARNESS_BROKEN = 6
    HALTED = 7
    IN_PROGRESS = 10
    WAITS_FOR_PERSON = 20
    PARKED = 30
    TRY_LATER = 75
    BAD_CONFIG = 78
    INTERRUPTED = 130


class OuterloopError(Exception):
    """Anything this tool raises on purpose; its text is meant for the person at the terminal."""

    exit_status: Exit = Exit.INTERNAL


class UsageError(OuterloopError):
    """The caller asked for something that cannot be meant: an unknown run, a bad commit, a bad seed list."""

    exit_status = Exit.USAGE


class ConfigError(OuterloopError):
    """A configuration file, contract or job definition does not say what it must."""

    exit_status = Exit.BAD_CONFIG


class TryLater(OuterloopError):  # noqa: N818 - the name is the advice
    """Slurm, a lock or the filesystem does not answer now; the same call may succeed later."""

    exit_status = Exit.TRY_LATER


class Fault(OuterloopError):  # noqa: N818 - the design's word for a broken document
    """A document of one run cannot be read; that run is shown as faulty and nothing else is touched."""

    exit_status = Exit.FINDINGS


class NodeUnfit(OuterloopError):  # noqa: N818 - states the finding
    """This node lacks what the job needs, and another may have it: the next try had better go elsewhere.

    Mixed into the class that says how the command line ends.
    """


class FilesystemUnfit(OuterloopError):  # noqa: N818 - states the finding
    """The state folder's filesystem has no exclusive publication; running there could buy a job twice."""

    exit_status = Exit.BAD_CONFIG
