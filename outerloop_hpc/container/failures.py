"""Well-known complaints of container runtimes, as reasons a person can act on (pure).

They all mean that the command never started: the machine is to blame, not the code that was to run.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

#: Apptainer and Singularity end with 255 when they fail themselves, their C starter with 1; bubblewrap with 1.
_OWN_STATUS = {
    "apptainer": frozenset({1, 255}),
    "singularity": frozenset({1, 255}),
    "bubblewrap": frozenset({1}),
}
#: Exactly as they are printed: a program in the container may well say "ERROR: …" and end with 1 too.
_LEVEL = re.compile(r"^(?:\x1b\[[0-9;]*m)?(?:FATAL: {3}|ERROR {2}: ).*$", re.MULTILINE)
_VOICE = {"apptainer": _LEVEL, "singularity": _LEVEL, "bubblewrap": re.compile(r"^bwrap: .*$", re.MULTILINE)}
#: The container started, but the program in it does not exist: that is the command's own fault.
_COMMAND_MISSING = re.compile(
    r"executable file not found in \$PATH|bwrap: execvp |:\s+stat /.*: (no such file or directory|permission denied)$"
)
#: The runtime speaks before the command does, or instead of it: its complaint is in the last lines.
_TAIL_LINES = 20


@dataclass(frozen=True, slots=True)
class StartFailure:
    """Why a container did not start.

    Attributes:
        code: short stable word for reports (``userns``, ``squashfuse``, …); ``start`` for an unknown complaint.
        reason: what it means.
        advice: what to do.
        text: the runtime's own last line.
    """

    code: str
    reason: str
    advice: str
    text: str

    def message(self) -> str:
        """Return one line: what happened, what to do, and the runtime's own words."""
        return f"container start failed: {self.reason}; {self.advice} [{self.text}]"


@dataclass(frozen=True, slots=True)
class _Known:
    code: str
    pattern: re.Pattern[str]
    reason: str
    advice: str


def _known(code: str, pattern: str, reason: str, advice: str) -> _Known:
    return _Known(code, re.compile(pattern, re.IGNORECASE), reason, advice)


#: First match wins, so narrow ones stand first.
_TABLE = (
    _known(
        "glibc-nv",
        r"/\.singularity\.d/libs/.*GLIBC|GLIBC_[\d.]+'? not found \(required by /\.singularity\.d",
        "the host's GPU libraries (--nv) need a newer GLIBC than the image has",
        "use an image at least as new as the node's system",
    ),
    _known(
        "network",
        r"RTM_NEWADDR|network requires root|network .*not (permitted|allowed)|failed to set ?up network|"
        r"CNI|(create|creating) network namespace|--net(work)? .*(root|privilege)",
        "the runtime may not make a network namespace here",
        "the network will be the host's; measurements say so",
    ),
    _known(
        "userns",
        r"failed to create container process: no space left on device|user\.max_user_namespaces",
        "user namespaces are switched off or used up on this node",
        "try another node; admins: raise user.max_user_namespaces",
    ),
    _known(
        "fakeroot",
        r"fakeroot|subuid|subgid|newuidmap|newgidmap|could not (use|find) .*mapping",
        "the runtime wants fakeroot, and this user has no subordinate ids here",
        "fakeroot is for building only; run images as they are, or ask the admins for /etc/subuid entries",
    ),
    _known(
        "userns",
        r"user namespace|CLONE_NEWUSER|setting up uid map|uid_map|unprivileged_userns|max_user_namespaces|"
        r"creating new namespace failed|no permissions to create( a)? new namespace|newuser",
        "user namespaces are switched off or used up on this node",
        "try another node; admins: kernel.unprivileged_userns_clone, user.max_user_namespaces, AppArmor",
    ),
    _known(
        "loop",
        r"loop device|/dev/loop",
        "no loop device is free for the image",
        "try another node; admins: raise `max loop devices` in apptainer.conf",
    ),
    _known(
        "squashfuse",
        r"squashfuse|fuse2fs|/dev/fuse|fusermount|gocryptfs|failed to mount squashfs|squashfs.*(mount|image driver)|"
        r"image driver mount failure|mount squashfs",
        "the image cannot be mounted: squashfuse or /dev/fuse is missing here",
        "try another node; admins: install squashfuse, make /dev/fuse usable, or allow the setuid starter",
    ),
    _known(
        "image",
        r"could not open image|image format not recognized|invalid (sif|image)|no such image|SIF .*(corrupt|magic)|"
        r"not a valid SIF|unable to open squashfs",
        "the image file cannot be opened",
        "check that this node sees the path and that the digest is right: `outerloop-hpc image check`",
    ),
    _known(
        "session",
        r"session dir|sessiondir|localstatedir|/var/(lib/)?(apptainer|singularity)|overlay.*(mount|workdir)",
        "the runtime's session folder cannot be made or mounted here",
        "try another node; admins: see `sessiondir` in apptainer.conf",
    ),
    _known(
        "full",
        r"no space left on device|disk quota exceeded|read-only file system",
        "a filesystem that the runtime writes to is full or read-only",
        "free the node-local scratch, or choose another with `[container] scratch`",
    ),
    _known("memory", r"cannot allocate memory", "the node has no memory left", "try another node"),
    _known(
        "bind",
        r"mount .*(source|destination).*|can't (find|mkdir|bind|create|mount|open|stat)|bind path|"
        r"unable to add .* to mount",
        "a folder that the sandbox needs does not exist or cannot be bound on this node",
        "check that this node sees it; scratch must be node-local, images and checkouts shared",
    ),
)
_ANY = _Known("start", re.compile(""), "the runtime could not start the command", "see the log of this try")


def classify(runtime: str, status: int | None, stderr: str) -> StartFailure | None:
    """Tell a container that did not start from a command that failed.

    Args:
        runtime: ``apptainer``, ``singularity``, ``bubblewrap`` or ``none``.
        status: exit status; negative for a signal; None when the runtime itself could not be started.
        stderr: what was said, perhaps only its end.

    Returns:
        The reason, or None when the command itself ran (or nothing says otherwise).
    """
    if status is None:
        return StartFailure(
            "missing", "the program could not be started", "check that it is installed here", _last(stderr)
        )
    if runtime not in _VOICE or status not in _OWN_STATUS[runtime]:
        return None
    tail = "\n".join(stderr.splitlines()[-_TAIL_LINES:])
    glibc = _TABLE[0]
    if glibc.pattern.search(tail):
        return StartFailure(glibc.code, glibc.reason, glibc.advice, _last(tail))
    own = [found.group() for found in _VOICE[runtime].finditer(tail)]
    if not own or _COMMAND_MISSING.search(own[-1]):
        return None
    # The last complaint is the reason; what stands before it is often only the noise of tidying up.
    for text in (own[-1], "\n".join(own)):
        for known in _TABLE:
            if known.pattern.search(text):
                return StartFailure(known.code, known.reason, known.advice, _last(own[-1]))
    return StartFailure(_ANY.code, _ANY.reason, _ANY.advice, _last(own[-1]))


def _last(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][-300:] if lines else "no message"
