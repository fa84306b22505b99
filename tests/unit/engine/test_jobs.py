"""A job definition holds no key that nothing acts on."""

from __future__ import annotations

from pathlib import Path

import pytest

from outerloop_hpc.engine.jobs import load_job
from outerloop_hpc.engine.layout import Layout
from outerloop_hpc.errors import ConfigError

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("job", "line", "why"),
    [
        ("session", "network = false", r"session\.toml: network: has no effect here: \[steward\] network says it"),
        ("measure", "min_free_gb = 2", r"measure\.toml: min_free_gb: has no effect here"),
        ("validate", "min_free_gb = 2", r"validate\.toml: min_free_gb: has no effect here"),
    ],
)
def test_a_key_without_effect_is_refused_and_not_passed_over(tmp_path: Path, job: str, line: str, why: str) -> None:
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / f"{job}.toml").write_text(line)
    with pytest.raises(ConfigError, match=why):
        load_job(Layout(tmp_path), job)


@pytest.mark.parametrize("job", ["measure", "session", "validate"])
def test_the_shipped_definitions_have_no_such_key(tmp_path: Path, job: str) -> None:
    assert load_job(Layout(tmp_path), job).cpus >= 1
