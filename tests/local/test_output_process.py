"""Listings from a real process: on a terminal, in a pipe, under a poor locale."""

from __future__ import annotations

import fcntl
import os
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

pytestmark = pytest.mark.local

ROOT = Path(__file__).parents[2]
PROGRAM = """
import os, sys
from outerloop_hpc.cli.output import Column, Form, Listing, Manner, emit
from outerloop_hpc.cli.terminal import Progress, terminal
talk = terminal(sys.stderr, os.environ)
with Progress(sys.stderr, talk, "reading", 2) as progress:
    progress.advance()
rows = [{"run_id": "r" * 30, "note": "gr\\u00fcn " * 40}]
columns = (Column("run_id"), Column("note", cut=True))
emit(Listing("x", columns, rows), Manner(), sys.stdout, terminal(sys.stdout, os.environ))
"""


def environment(**env: str) -> dict[str, str]:
    return {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT), **env}


def on_a_terminal(columns: int, **env: str) -> str:
    master, slave = os.openpty()
    try:
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM], stdout=slave, stderr=slave, stdin=slave, env=environment(**env)
        )
        os.close(slave)
        output = b""
        while True:
            try:
                chunk = os.read(master, 4096)
            except OSError:  # the other side is closed
                break
            if not chunk:
                break
            output += chunk
        assert process.wait(timeout=240) == 0
        return output.decode("utf-8")
    finally:
        os.close(master)


def test_a_terminal_gets_its_width_its_colour_and_its_progress() -> None:
    output = on_a_terminal(60, TERM="xterm")
    assert output.startswith("\r\x1b[Kreading 0/2")
    assert "\x1b[1mrun_id" in output
    table = output.rpartition("\x1b[K")[2].replace("\x1b[1m", "").replace("\x1b[0m", "").splitlines()
    assert [len(line) for line in table if line.startswith("r" * 30)] == [60]
    assert table[-1].endswith("…")


@pytest.mark.parametrize("env", [{"TERM": "dumb"}, {"TERM": "dumb", "NO_COLOR": "1"}])
def test_a_dumb_terminal_gets_no_escape_at_all(env: dict[str, str]) -> None:
    assert "\x1b" not in on_a_terminal(60, **env)


def test_a_pipe_gets_whole_plain_lines_and_no_talk() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment(TERM="xterm"), capture_output=True, check=True, timeout=240
    )
    assert done.stderr == b""
    lines = done.stdout.decode("utf-8").splitlines()
    assert len(lines) == 2
    assert lines[1].count("grün") == 40


def test_a_poor_locale_shows_escapes_and_ends_well() -> None:
    env = environment(LC_ALL="C", PYTHONCOERCECLOCALE="0", PYTHONUTF8="0")
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=env, capture_output=True, check=True, timeout=240)
    assert done.stdout.count(b"gr\\xfcn") == 40


def test_a_reader_who_has_enough_is_no_failure(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "outerloop_hpc.cli.main", "--state", str(tmp_path), "config", "show"]
    try:
        done = subprocess.run(
            command,
            stdout=writer,
            stderr=subprocess.PIPE,
            env=environment(HOME=str(tmp_path)),
            cwd=tmp_path,
            check=False,
        )
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")
