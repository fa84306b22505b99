"""The demo is the first thing that anybody runs: it must work from a checkout, and say so truthfully."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.local, pytest.mark.timeout(1800)]

CHECKOUT = Path(__file__).resolve().parents[2]
LIMIT_S = 1700


def demo(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(CHECKOUT / "examples" / "demo"), *arguments],
        env={**os.environ, "PYTHONPATH": str(CHECKOUT), "OUTERLOOP_STATE__ROOT": "/nowhere/at/all"},
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
    )


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    root = tmp_path_factory.mktemp("demo")
    done = demo("--root", str(root))
    assert done.returncode == 0, done.stdout + done.stderr
    return root, done.stdout


def test_the_demo_ends_in_a_verdict_and_checks_what_it_shows(told: tuple[Path, str]) -> None:
    _, output = told
    assert output.count("accuracy: better") == 2
    assert "NOT OK" not in output
    assert output.count("\n  ok      ") == 19
    assert "# containment: " in output


def test_the_demo_shows_every_command_of_the_main_job(told: tuple[Path, str]) -> None:
    _, output = told
    typed = [line for line in output.splitlines() if line.startswith("$ outerloop-hpc ")]
    assert sum(line == "$ outerloop-hpc tick" for line in typed) == 7
    for words in (
        "init",
        "doctor",
        "advance",
        "orders new",
        "orders show",
        "changes list",
        "changes show",
        "changes merge",
        "bench compare",
        "bench ledger",
        "report runs",
        "report jobs",
        "explain",
    ):
        assert any(f" {words} " in f"{line} " for line in typed), words


def test_the_demo_leaves_its_state_for_looking_around(told: tuple[Path, str]) -> None:
    root, _ = told
    runs = [path.name for path in root.glob("state/runs/*/*")]
    assert sorted(run.partition("-")[0] for run in runs) == ["benchmark"] * 4 + ["steward"] * 2
    assert len(list(root.glob("state/runs/*/*/report.md"))) == len(runs)
    archives = sorted(root.glob("state/runs/*/benchmark-*/accounting/*.json"))
    assert len(archives) == 4
    assert all(len(json.loads(path.read_text(encoding="utf-8"))["rows"]) >= 5 for path in archives)
    assert list(root.glob("state/live/*")) == []


def test_the_demo_leaves_the_target_with_a_new_ruler_and_its_ledger(told: tuple[Path, str]) -> None:
    target = told[0] / "iris"
    assert not (target / "data" / "split.csv").exists()
    assert (target / "tests" / "test_resampling.py").exists()
    (row,) = json.loads((target / "results" / "leader.json").read_bytes())["rows"]
    assert 0.93 < row["baseline"] == row["best"] < 0.98
    solver = (target / "solver.py").read_text(encoding="utf-8")
    assert solver == (CHECKOUT / "examples" / "improvements" / "iris-solver.py").read_text(encoding="utf-8")


def test_no_part_of_the_demo_is_long() -> None:
    parts = [CHECKOUT / "examples" / folder for folder in ("demo", "agents")]
    lengths = {path: path.read_text(encoding="utf-8").count("\n") for part in parts for path in part.glob("*.py")}
    assert len(lengths) >= 7
    assert max(lengths.values()) <= 300, lengths


def test_the_demo_wipes_an_earlier_demo_but_nothing_else(tmp_path: Path) -> None:
    precious = tmp_path / "thesis.tex"
    precious.write_text("years of work", encoding="utf-8")
    done = demo("--root", str(tmp_path))
    assert done.returncode == 1
    assert "not of an earlier demo" in done.stderr
    assert precious.read_text(encoding="utf-8") == "years of work"


def test_a_failed_expectation_fails_the_demo(tmp_path: Path) -> None:
    script = (
        "import pathlib, sys; sys.path.insert(0, sys.argv[1]); import stage; "
        "it = stage.Demo(pathlib.Path(sys.argv[2]), 'local', '', True); "
        "it.check(True, 'fine'); good = stage.finish(it, 1.0); "
        "it.check(False, 'pigs fly'); sys.exit(10 * good + stage.finish(it, 1.0))"
    )
    argv = [sys.executable, "-c", script, str(CHECKOUT / "examples" / "demo"), str(tmp_path)]
    environ = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    done = subprocess.run(argv, env=environ, capture_output=True, text=True, check=False, timeout=LIMIT_S)
    assert done.returncode == 1, done.stderr
    assert "NOT OK  pigs fly" in done.stdout
