from __future__ import annotations

from pathlib import Path

import pytest

from outerloop_hpc.errors import Exit, OuterloopError
from outerloop_hpc.target.git import Contended, _failure, environment

pytestmark = pytest.mark.unit

USAGE = [
    "fatal: '/x' does not appear to be a git repository\nfatal: Could not read from remote repository.",
    "fatal: couldn't find remote ref refs/heads/nope",
    "fatal: detected dubious ownership in repository at '/x'",
    "fatal: transport 'ext' not allowed",
    "fatal: Not a valid object name deadbeef",
    "error: cannot lock ref 'refs/heads/a/b': 'refs/heads/a' exists; cannot create 'refs/heads/a/b'",
    "Host key verification failed.\nfatal: Could not read from remote repository.",
    "git@host: Permission denied (publickey).\nfatal: Could not read from remote repository.",
    "fatal: could not read Username for 'https://host': terminal prompts disabled",
    "fatal: something that nobody has seen before",
    "",
]
LATER = [
    "fatal: unable to access 'https://host/x/': Could not resolve host: host",
    "ssh: connect to host h port 22: Connection refused\nfatal: Could not read from remote repository.",
    "fatal: write error: No space left on device",
    "fatal: cannot store pack file: Disk quota exceeded",
    "fatal: the remote end hung up unexpectedly\nfatal: early EOF",
    "error: unable to open object pack directory: Stale file handle",
]
CONTENDED = [
    "error: cannot lock ref 'refs/heads/main': is at 2 but expected 1",
    "error: cannot lock ref 'refs/heads/main': Unable to create '/m/refs/heads/main.lock': File exists.",
    "fatal: Unable to create '/m/packed-refs.lock': File exists.",
]


@pytest.mark.parametrize(
    ("text", "status"),
    [*((text, Exit.USAGE) for text in USAGE), *((text, Exit.TRY_LATER) for text in LATER + CONTENDED)],
)
def test_a_failure_of_git_says_whether_to_try_again(text: str, status: Exit) -> None:
    failure = _failure(Path("/m"), "fetch", 128, text.encode())
    assert isinstance(failure, OuterloopError)
    assert failure.exit_status is status
    assert isinstance(failure, Contended) == (text in CONTENDED)
    assert str(failure).startswith("/m: git fetch ended with status 128: ")
    assert " ".join(text.split()) in str(failure)


def test_a_git_that_was_killed_may_be_tried_again() -> None:
    failure = _failure(Path("/m"), "fetch", -9, b"")
    assert isinstance(failure, OuterloopError)
    assert failure.exit_status is Exit.TRY_LATER


def test_undecodable_and_endless_complaints_are_cut() -> None:
    assert len(str(_failure(Path("/m"), "fetch", 1, b"\xff" * 100_000))) < 1_000


def test_only_named_repositories_are_trusted() -> None:
    settings = environment(Path("/a b"), Path("/a b/.git"))
    pairs = [
        (settings[f"GIT_CONFIG_KEY_{number}"], settings[f"GIT_CONFIG_VALUE_{number}"])
        for number in range(int(settings["GIT_CONFIG_COUNT"]))
    ]
    assert [value for key, value in pairs if key == "safe.directory"] == ["", "/a b", "/a b/.git"]
    assert ("core.hooksPath", "/dev/null") in pairs
    assert ("protocol.ext.allow", "never") in pairs
    assert settings["GIT_CONFIG_GLOBAL"] == "/dev/null"
    assert "GIT_DIR" not in settings
