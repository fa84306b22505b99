"""The doctor says when a pass was last completed: a cron entry that a site wiped is noticed by nothing else."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from outerloop_hpc.config.settings import Settings, State
from outerloop_hpc.doctor.checks import Doctor
from outerloop_hpc.doctor.finding import Finding, Level
from outerloop_hpc.engine.layout import Layout
from outerloop_hpc.process import run_command

pytestmark = pytest.mark.unit


def finding(root: Path) -> Finding:
    doctor = Doctor(Settings(state=State(root=root)), Layout(root), {}, run_command, "local")
    (found,) = doctor._last_pass()
    return found


def completed(root: Path, text: str) -> None:
    (root / "tick").mkdir()
    (root / "tick" / "completed.json").write_text(text, encoding="utf-8")


def ago(**age: float) -> str:
    at = datetime.now(UTC) - timedelta(**age)
    return json.dumps({"schema": "completed/1", "at": f"{at:%Y-%m-%dT%H:%M:%SZ}", "host": "login1", "pid": 7})


def test_a_recent_pass_is_fine_and_named(tmp_path: Path) -> None:
    completed(tmp_path, ago(minutes=5))
    found = finding(tmp_path)
    assert found.level is Level.OK
    assert "login1" in found.saw


def test_a_tick_that_stopped_coming_is_not_overlooked(tmp_path: Path) -> None:
    completed(tmp_path, ago(hours=3))
    found = finding(tmp_path)
    assert found.level is Level.WARN
    assert "cron" in found.advice


@pytest.mark.parametrize("text", [None, "", "{", "[]", '{"at": 5}', '{"at": "yesterday"}', '{"at": "2026-11-29"}'])
def test_no_heartbeat_or_a_broken_one_is_a_warning_not_a_crash(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        completed(tmp_path, text)
    assert finding(tmp_path).level is Level.WARN
