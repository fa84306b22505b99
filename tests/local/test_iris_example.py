"""The example target: a ruler that can be learnt by heart, until a steward mends it."""

from __future__ import annotations

import csv
import json
import os
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

from outerloop_hpc.target.contract import load

pytestmark = pytest.mark.local

EXAMPLES = Path(__file__).parents[2] / "examples"
SEEDS = range(1, 6)
ORDER = "Please resample: draw the halves from IRIS_SEED."


@pytest.fixture
def iris(tmp_path: Path) -> Path:
    folder = tmp_path / "iris"
    shutil.copytree(EXAMPLES / "iris", folder, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def run(folder: Path, *argv: str, seed: int = 0, said: str = "", expect: int = 0) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "IRIS_SEED": str(seed), "PYTHONDONTWRITEBYTECODE": "1"}
    argv = (sys.executable, *argv)
    done = subprocess.run(argv, cwd=folder, env=env, input=said, capture_output=True, text=True, check=False)
    assert done.returncode == expect, done.stdout + done.stderr
    return done


def accuracy(folder: Path, seed: int) -> float:
    contract = load((folder / ".outerloop.yaml").read_bytes()).contract
    benchmark = contract.benchmark("accuracy")
    assert (benchmark.argv[0], benchmark.seed_env) == ("python3", "IRIS_SEED")
    (line,) = run(folder, *benchmark.argv[1:], seed=seed).stdout.splitlines()
    return float(json.loads(line)[benchmark.metric])


def accuracies(folder: Path, solver: str = "") -> list[float]:
    if solver:
        shutil.copy(EXAMPLES / "improvements" / solver, folder / "solver.py")
    return [accuracy(folder, seed) for seed in SEEDS]


def steward(folder: Path, name: str, order: str = ORDER, expect: int = 0) -> str:
    done = run(folder, str(EXAMPLES / "agents" / name), said=order, expect=expect)
    return str(json.loads(done.stdout.splitlines()[-1])["outcome"])


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_frozen_ruler_gives_the_same_number_for_every_seed(iris: Path) -> None:
    assert set(accuracies(iris)) == {0.92}


def test_the_frozen_ruler_prefers_the_solver_that_knows_the_test_flowers(iris: Path) -> None:
    assert min(accuracies(iris, "iris-by-heart.py")) == 1
    assert 0.96 < max(accuracies(iris, "iris-solver.py")) < 1


def test_the_mended_ruler_prefers_the_solver_that_has_learnt(iris: Path) -> None:
    assert steward(iris, "resample-steward.py") == "done"
    plain, by_heart, honest = (accuracies(iris, name) for name in ("", "iris-by-heart.py", "iris-solver.py"))
    assert len(set(by_heart)) > 1, "the seed must matter"
    assert all(0.9 < one < other - 0.005 < 1 for one, other in zip(plain, by_heart, strict=True))
    assert all(one < other - 0.005 < 1 for one, other in zip(by_heart, honest, strict=True))


def test_its_own_tests_pass_before_and_after_it_is_mended(iris: Path) -> None:
    tests = ("-m", "unittest", "discover", "-s", "tests")
    before = run(iris, *tests).stderr
    steward(iris, "resample-steward.py")
    after = run(iris, *tests).stderr
    assert ("Ran 5 tests" in before, "Ran 6 tests" in after) == (True, True)


def test_the_test_that_the_steward_leaves_behind_fails_on_the_frozen_ruler(iris: Path) -> None:
    frozen = contents(iris)
    steward(iris, "resample-steward.py")
    for name in ("evaluate.py", "data/split.csv"):
        (iris / name).write_bytes(frozen[name])
    assert "FAILED" in run(iris, "-m", "unittest", "discover", "-s", "tests", expect=1).stderr


def test_the_steward_stays_in_its_territory(iris: Path) -> None:
    before = contents(iris)
    steward(iris, "resample-steward.py")
    after = contents(iris)
    touched = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    assert touched == {"evaluate.py", "data/split.csv", "tests/test_resampling.py"}


def test_the_cheating_steward_leaves_it(iris: Path) -> None:
    before = contents(iris)
    assert steward(iris, "cheating-steward.py") == "done"
    after = contents(iris)
    assert all(before[name] != after[name] for name in ("evaluate.py", "solver.py", ".outerloop.yaml"))
    assert min(accuracies(iris)) == 1


@pytest.mark.parametrize("order", ["Please make it faster.", ORDER])
def test_a_steward_that_has_nothing_to_mend_says_so_and_changes_nothing(iris: Path, order: str) -> None:
    steward(iris, "resample-steward.py")
    before = contents(iris)
    assert steward(iris, "resample-steward.py", order, expect=10) == "no-change"
    assert contents(iris) == before


def test_the_data_are_the_published_ones() -> None:
    with (EXAMPLES / "iris/data/iris.csv").open(newline="", encoding="ascii") as file:
        rows = list(csv.reader(file))[1:]
    columns = [[float(row[number]) for row in rows] for number in range(4)]
    assert [round(statistics.stdev(column), 7) for column in columns] == [0.8280661, 0.4358663, 1.7652982, 0.7622377]
    assert [round(statistics.fmean(column), 6) for column in columns] == [5.843333, 3.057333, 3.758, 1.199333]
