"""Levels, one line each, JSON in the file, and a log file that fails."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from outerloop_hpc.cli.logs import ROOT, set_up
from outerloop_hpc.errors import UsageError

pytestmark = pytest.mark.unit

LOG = logging.getLogger(f"{ROOT}.test")


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    root = logging.getLogger(ROOT)
    before = root.level, root.propagate
    yield
    for handler in tuple(root.handlers):
        root.removeHandler(handler)
        handler.close()
    root.setLevel(before[0])
    root.propagate = before[1]


def say_all() -> None:
    LOG.debug("d")
    LOG.info("i")
    LOG.warning("w %s", "x\x1b[2J\ny")
    LOG.error("e")


@pytest.mark.parametrize(
    ("verbosity", "levels"),
    [(-3, "e"), (-1, "e"), (0, "we"), (1, "iwe"), (2, "diwe"), (9, "diwe")],
)
def test_verbosity(verbosity: int, levels: str) -> None:
    stream = io.StringIO()
    set_up(verbosity, stream)
    say_all()
    assert "".join(line[0] for line in stream.getvalue().splitlines()) == levels


def test_text_is_one_line_and_harmless() -> None:
    stream = io.StringIO()
    set_up(0, stream)
    say_all()
    assert stream.getvalue().splitlines()[0] == "warning: w x\\x1b[2J\\ny"


def test_the_file_gets_json_lines_from_info_on_whatever_the_terminal_shows(tmp_path: Path) -> None:
    stream, path = io.StringIO(), tmp_path / "a log.jsonl"
    set_up(-1, stream, path)
    say_all()
    LOG.info("bound", extra={"run": "r-1", "path": path})
    try:
        int("é")
    except ValueError:
        LOG.exception("failed")
    documents = [json.loads(line) for line in path.read_text(encoding="ascii").splitlines()]
    assert [document["level"] for document in documents] == ["info", "warning", "error", "info", "error"]
    assert documents[3]["run"] == "r-1"
    assert documents[3]["path"] == str(path)
    assert documents[4]["traceback"].endswith("base 10: 'é'")
    assert set(documents[0]) == {"time", "level", "logger", "message"}
    assert "error: failed\nTraceback" in stream.getvalue()


def test_setting_up_again_does_not_double_the_log() -> None:
    first, second = io.StringIO(), io.StringIO()
    set_up(0, first)
    set_up(0, second)
    LOG.error("once")
    assert (first.getvalue(), second.getvalue()) == ("", "error: once\n")


def test_a_log_file_that_cannot_be_opened_is_the_callers_mistake(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no folder/x: the log file cannot be opened: No such file"):
        set_up(0, io.StringIO(), tmp_path / "no folder" / "x")


def test_a_full_disk_is_told_once_and_ends_nothing() -> None:
    stream = io.StringIO()
    set_up(0, stream, Path("/dev/full"))
    for _ in range(3):
        LOG.error("e")
    lines = stream.getvalue().splitlines()
    assert lines.count("error: e") == 3
    assert len([line for line in lines if "the log file cannot be written" in line]) == 1
    assert len(lines) == 4
