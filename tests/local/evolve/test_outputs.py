"""Ends of logs as evidence: bounded, through no link, from nowhere else than the run."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from outerloop_hpc.engine.layout import RunFolder
from outerloop_hpc.evolve.proposers.outputs import MOST, outputs_of

pytestmark = pytest.mark.local


def row(submission: object = "s0", index: object = 0) -> dict[str, Any]:
    return {"task": "t", "log": {"submission": submission, "index": index}}


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    (tmp_path / "run" / "tries" / "s0").mkdir(parents=True)
    return RunFolder(tmp_path / "run")


def log(run: RunFolder, name: str = "e0000.log") -> Path:
    return run.submission("s0") / name


def test_a_short_log_is_whole_and_each_row_has_its_own(run: RunFolder) -> None:
    log(run).write_text("first\n", encoding="utf-8")
    log(run, "e0012.log").write_text("second\n", encoding="utf-8")
    assert outputs_of([row(index=12), row(), row(index=5)], run) == (b"second\n", b"first\n", None)


def test_of_a_long_log_whole_lines_of_the_end_are_taken(run: RunFolder) -> None:
    lines = [f"line {number:06}" for number in range(10_000)]
    log(run).write_text("\n".join(lines), encoding="utf-8")
    (found,) = outputs_of([row()], run)
    assert found is not None
    first, *rest = found.decode().split("\n")
    assert "bytes and the rest of their line are left out" in first
    assert rest == lines[-len(rest) :]
    assert MOST - 100 < len("\n".join(rest)) <= MOST


def test_a_link_in_the_place_of_a_log_or_a_folder_is_not_followed(run: RunFolder, tmp_path: Path) -> None:
    secret = tmp_path / "elsewhere"
    secret.mkdir()
    (secret / "e0000.log").write_text("secret", encoding="utf-8")
    log(run).symlink_to(secret / "e0000.log")
    (run.path / "tries" / "s1").symlink_to(secret)
    assert outputs_of([row(), row("s1")], run) == (None, None)


def test_what_is_no_regular_file_is_not_waited_for(run: RunFolder) -> None:
    os.mkfifo(log(run))
    log(run, "e0001.log").mkdir()
    assert outputs_of([row(), row(index=1)], run) == (None, None)


@pytest.mark.parametrize(
    "strange",
    [
        row("../../elsewhere"),
        row(".."),
        row("a/b"),
        row(""),
        row(7),
        row(index=-1),
        row(index="0"),
        {"task": "t"},
        {"log": 3},
    ],
)
def test_a_row_that_names_no_log_of_the_run_has_none(run: RunFolder, strange: dict[str, Any]) -> None:
    assert outputs_of([strange], run) == (None,)


def test_bytes_that_are_no_text_and_keys_do_no_harm(run: RunFolder) -> None:
    log(run).write_bytes(b"\xff\xfe ok\npassword=hunter2hunter2\n")
    (found,) = outputs_of([row()], run)
    assert found is not None
    assert b"hunter2" not in found
    assert found.decode("utf-8").endswith("password=[redacted]\n")
