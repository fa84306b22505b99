"""The example of a sweep: published instances, a ruler that is the same everywhere, and verdicts by real evidence."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.local.site import CHECKOUT, environment

pytestmark = pytest.mark.local

TSP = CHECKOUT / "examples" / "tsp"
#: Shortest tours, as TSPLIB publishes them.
OPTIMA = {"berlin52": 7542, "eil51": 426, "st70": 675}


def run(folder: Path, *argv: str, expect: int = 0, **variables: str) -> subprocess.CompletedProcess[str]:
    env = {**environment(), **variables}
    done = subprocess.run([sys.executable, *argv], cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == expect, done.stdout + done.stderr
    return done


def measured(folder: Path, instance: str, seed: int) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run(folder, "evaluate.py", instance, TSP_SEED=str(seed)).stdout)
    return found


@pytest.fixture
def solver(tmp_path: Path) -> Path:
    folder = tmp_path / "tsp"
    shutil.copytree(TSP, folder, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def propose(solver: Path, generation: int, expect: int = 0) -> None:
    """Let the program propose right into the solver's folder."""
    evidence = solver / "evidence"
    evidence.mkdir(exist_ok=True)
    (evidence / "selected-rows.json").write_text("[]", encoding="utf-8")
    told = {"OL_EVIDENCE": str(evidence), "OL_OVERLAY": str(solver), "OL_PROPOSAL": str(solver / "proposal.md")}
    run(solver, "proposers/or-opt.py", expect=expect, OL_GENERATION=str(generation), **told)


@pytest.mark.parametrize("instance", OPTIMA)
def test_a_seed_gives_the_same_tour_and_none_beats_the_published_optimum(solver: Path, instance: str) -> None:
    one, again, other = (measured(solver, instance, seed) for seed in (1, 1, 2))
    assert one["success"] is True
    assert (one["length"], one["gap"]) == (again["length"], again["gap"])
    assert min(one["length"], other["length"]) >= OPTIMA[instance]
    assert one["gap"] == pytest.approx(one["length"] / OPTIMA[instance] - 1, abs=1e-6)


def test_its_own_tests_pass(solver: Path) -> None:
    assert "OK" in run(solver, "-m", "unittest", "discover", "-s", "tests").stderr


def test_the_proposer_writes_one_better_function_and_has_no_second_idea(solver: Path) -> None:
    before = [measured(solver, "berlin52", seed)["length"] for seed in range(4)]
    propose(solver, 0)
    assert "Or-opt" in (solver / "proposal.md").read_text(encoding="utf-8")
    after = [measured(solver, "berlin52", seed)["length"] for seed in range(4)]
    assert sum(after) < sum(before)
    propose(solver, 1, expect=10)


@pytest.mark.parametrize(
    ("sweep", "status", "said"),
    [("noise", 3, "kept: "), ("function", 0, "promoted: "), ("parameters", 0, "promoted: ")],
)
@pytest.mark.timeout(1800)
def test_real_evidence_promotes_what_is_better_and_not_what_is_noise(
    tmp_path: Path, sweep: str, status: int, said: str
) -> None:
    root = tmp_path / "site"
    done = run(TSP, "run.py", sweep, "--root", str(root), expect=status)
    assert done.stderr.splitlines()[-1].startswith(said)
    assert done.stdout.startswith("evolve-tsp-")
    report = next(root.glob("state/runs/*/*/report.md")).read_text(encoding="utf-8")
    assert f"tsp-{sweep}" in report
    assert list((root / "state" / "live").iterdir()) == []
