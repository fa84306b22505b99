"""The doctor asks each target's repository for its branch: a target that no tick could read is not called ok."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from outerloop_hpc.config.settings import Settings, State, Target
from outerloop_hpc.doctor.checks import Doctor
from outerloop_hpc.doctor.finding import Level
from outerloop_hpc.engine.layout import Layout
from outerloop_hpc.process import run_command

pytestmark = pytest.mark.local


def test_a_target_without_its_repository_or_branch_is_a_finding(tmp_path: Path) -> None:
    good = tmp_path / "good"
    subprocess.run(["git", "init", "--quiet", "--initial-branch=main", str(good)], check=True)
    author = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", "-C", str(good), *author, "commit", "--quiet", "--allow-empty", "-m", "one"], check=True)
    targets = {
        "absent": Target(repository=str(tmp_path / "absent"), branch="main"),
        "branchless": Target(repository=str(good), branch="trunk"),
        "good": Target(repository=str(good), branch="main"),
    }
    settings = Settings(state=State(root=tmp_path), targets=targets)
    found = list(Doctor(settings, Layout(tmp_path), os.environ, run_command, "local")._targets())
    assert [one.level for one in found] == [Level.FAIL, Level.FAIL, Level.OK]
    assert "absent" in found[0].saw
    assert "no branch 'trunk'" in found[1].saw
