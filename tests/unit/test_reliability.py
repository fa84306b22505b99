"""docs/reliability.md: each fault, what happens, and the test that shows it; none is made up, none is left out."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest

pytestmark = pytest.mark.unit

CHECKOUT = Path(__file__).parents[2]
SCENARIOS = CHECKOUT / "tests" / "fakeslurm" / "scenarios"
ROW = re.compile(r"^\| (?P<fault>.+?) \| (?P<happens>.+?) \| `(?P<shown>[^`|]+)` \|$", re.MULTILINE)

#: Every test of these shows a fault.
WHOLE = (
    "tests/local/scripted/test_*.py",
    "tests/local/slurm/test_hanging.py",
    "tests/slurm/test_full_state.py",
    "tests/slurm/test_lost_nodes.py",
    "tests/slurm/test_misbehaving.py",
    "tests/slurm/test_once.py",
    "tests/slurm/test_outages.py",
    "tests/slurm/test_people.py",
    "tests/slurm/test_preemption.py",
    "tests/slurm/test_requeues.py",
    "tests/slurm/test_reused_ids.py",
    "tests/slurm/test_silent_controller.py",
    "tests/slurm/test_trouble.py",
    "tests/slurm/test_unaccounted.py",
    "tests/slurm/test_walltime.py",
)


def rows() -> list[tuple[str, str, str]]:
    text = (CHECKOUT / "docs" / "reliability.md").read_text(encoding="utf-8")
    return [(row["fault"], row["happens"], row["shown"]) for row in ROW.finditer(text)]


def names_in(path: Path) -> list[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]


def test_every_test_that_is_named_exists() -> None:
    named = [shown for _, _, shown in rows() if "::" in shown]
    assert len(named) > 50
    missing = []
    for shown in named:
        path, _, name = shown.partition("::")
        if not (CHECKOUT / path).is_file() or name not in names_in(CHECKOUT / path):
            missing.append(shown)
    assert missing == []


def test_every_test_of_a_fault_is_named() -> None:
    named = {shown for _, _, shown in rows()}
    modules = [path for pattern in WHOLE for path in sorted(CHECKOUT.glob(pattern))]
    assert len(modules) >= len(WHOLE), "a pattern fits no file"
    unnamed = [
        f"{path.relative_to(CHECKOUT)}::{name}"
        for path in modules
        for name in names_in(path)
        if f"{path.relative_to(CHECKOUT)}::{name}" not in named
    ]
    assert unnamed == []


def test_every_scenario_is_a_row_and_every_such_row_a_scenario() -> None:
    told = {(f"{fault}: {happens}", shown) for fault, happens, shown in rows() if shown.endswith(".toml")}
    there = {
        (scenario["name"], path.name)
        for path in SCENARIOS.glob("*.toml")
        for scenario in tomllib.loads(path.read_text(encoding="utf-8"))["scenario"]
    }
    assert len(there) >= 60
    assert told == there
