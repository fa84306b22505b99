"""Complaints of runtimes, as recorded from real ones or from public reports, become reasons."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outerloop_hpc.container.failures import classify

pytestmark = pytest.mark.unit

LOOP = (
    "FATAL:   container creation failed: mount error: can't mount image /proc/self/fd/8: failed to find loop device: "
    "could not attach image file too loop device: operation not permitted"
)
EXTRACTION = """INFO:    Converting SIF file to temporary sandbox...
WARNING: failed to set O_CLOEXEC flags on image
FATAL:   while extracting lolcow_latest.sif: root filesystem extraction failed: extract command failed: WARNING: x
ERROR  : Failed to create user namespace: user namespace disabled
: exit status 1"""
NO_BIND_SOURCE = """WARNING: skipping mount of /no/such: stat /no/such: no such file or directory
INFO:    Terminating squashfuse_ll after timeout
INFO:    Cleanup error: while stopping driver for /var/lib/apptainer/mnt/session/rootfs: squashfuse_ll exited: Failed \
to call 'fusermount3': No such file or directory
FATAL:   container creation failed: mount hook function failure: mount /no/such->/x error: while mounting /no/such: \
mount source /no/such doesn't exist"""
NO_FUSE = (
    "FATAL:   container creation failed: image driver mount failure: image driver squashfuse_ll instance exited with "
    "error: squashfuse_ll exited: fuse: failed to open /dev/fuse: Permission denied"
)
NO_NETWORK = (
    "FATAL:   container creation failed: network requires root or a suid installation with /etc/subuid --fakeroot; "
    "non-root users can only use --network=none unless permitted by the administrator"
)
NO_IMAGE = (
    "FATAL:   While checking container encryption: could not open image /x.sif: failed to retrieve path for /x.sif: "
    "lstat /x.sif: no such file or directory"
)
BAD_IMAGE = "FATAL:   While checking container encryption: could not open image /x.sif: image format not recognized"
GLIBC = (
    "/bin/sh: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.38' not found "
    "(required by /.singularity.d/libs/libGLX.so.0)"
)
NEWGIDMAP = "ERROR  : 'newgidmap' execution failed. Check that 'newgidmap' is setuid root or has setcap cap_setgid+eip."
UID_CLONE = (
    "ERROR  : Failed to create user namespace: user namespace requires to set "
    "/proc/sys/kernel/unprivileged_userns_clone to 1"
)
BWRAP_USERNS = (
    "bwrap: No permissions to create new namespace, likely because the kernel does not allow non-privileged user "
    "namespaces. On e.g. debian this can be enabled with 'sysctl kernel.unprivileged_userns_clone=1'."
)


@pytest.mark.parametrize(
    ("runtime", "status", "stderr", "code"),
    [
        ("singularity", 255, LOOP, "loop"),
        ("singularity", 255, EXTRACTION, "userns"),
        ("apptainer", 1, UID_CLONE, "userns"),
        ("apptainer", 1, "ERROR  : Failed to create container process: No space left on device", "userns"),
        ("apptainer", 1, NEWGIDMAP, "fakeroot"),
        ("apptainer", 255, NO_BIND_SOURCE, "bind"),
        ("apptainer", 255, NO_FUSE, "squashfuse"),
        ("apptainer", 255, NO_NETWORK, "network"),
        ("apptainer", 255, NO_IMAGE, "image"),
        ("apptainer", 255, BAD_IMAGE, "image"),
        ("apptainer", 1, GLIBC, "glibc-nv"),
        ("apptainer", 255, "\x1b[31mFATAL:   something never seen before\x1b[0m", "start"),
        ("bubblewrap", 1, BWRAP_USERNS, "userns"),
        ("bubblewrap", 1, "bwrap: setting up uid map: Permission denied", "userns"),
        ("bubblewrap", 1, "bwrap: Creating new namespace failed: Operation not permitted", "userns"),
        ("bubblewrap", 1, "bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted", "network"),
        ("bubblewrap", 1, "bwrap: Can't find source path /no/such: No such file or directory", "bind"),
        ("bubblewrap", 1, "bwrap: Can't create file at /x: No space left on device", "full"),
        ("apptainer", None, "No such file or directory", "missing"),
    ],
)
def test_recorded_complaints(runtime: str, status: int | None, stderr: str, code: str) -> None:
    found = classify(runtime, status, f"INFO:    fuse2fs not found\n{stderr}\n")
    assert found is not None
    assert found.code == code
    assert found.message().startswith("container start failed: ")
    assert "\n" not in found.message()


@pytest.mark.parametrize(
    ("runtime", "status", "stderr"),
    [
        ("apptainer", 0, LOOP),
        ("apptainer", 75, ""),
        ("apptainer", 1, "Traceback (most recent call last):\nValueError: loop device"),
        ("apptainer", 1, "ERROR: solver failed: no space left on device"),
        ("apptainer", 1, "FATAL: assertion"),
        ("apptainer", 255, ""),
        ("apptainer", 255, 'FATAL:   "nosuchprogram": executable file not found in $PATH'),
        ("apptainer", 255, "FATAL:   stat /no/such/program: no such file or directory"),
        ("apptainer", 137, NO_FUSE),
        ("bubblewrap", 1, "bwrap: execvp nosuchprogram: No such file or directory"),
        ("bubblewrap", 1, "something else"),
        ("none", 1, BWRAP_USERNS),
    ],
)
def test_a_command_that_ran_and_failed_is_not_the_nodes_fault(runtime: str, status: int, stderr: str) -> None:
    assert classify(runtime, status, stderr) is None


@given(
    st.sampled_from(["apptainer", "singularity", "bubblewrap", "none", "other"]),
    st.none() | st.integers(-64, 255),
    st.text() | st.text().map(lambda text: f"FATAL:   {text}") | st.text().map(lambda text: f"bwrap: {text}"),
)
def test_any_text_is_classified(runtime: str, status: int | None, stderr: str) -> None:
    found = classify(runtime, status, stderr)
    assert found is None or found.message()
