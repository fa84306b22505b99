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


@pytest.fixture
def iris(tmp_path: Path) -> Path:
    folder = tmp_path / "iris"
    shutil.copytree(EXAMPLES / "iris", folder, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def run(folder: Path, *argv: str, seed: int = 0) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "IRIS_SEED": str(seed), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run([sys.executable, *argv], cwd=folder, env=env, capture_output=True, text=True, check=True)


def accuracy(folder: Path, seed: int) -> float:
    contract = load((folder / ".outerloop.yaml").read_bytes()).contract
    benchmark = contract.benchmark("accuracy")
    assert (benchmark.argv[0], benchmark.seed_env) == ("python3", "IRIS_SEED")
    (line,) = run(folder, *benchmark.argv[1:], seed=seed).stdout.splitlines()
    return float(json.loads(line)[benchmark.metric])


def test_the_improvement_is_one_on_each_of_five_paired_seeds(iris: Path) -> None:
    seeds = range(1, 6)
    before = [accuracy(iris, seed) for seed in seeds]
    shutil.copy(EXAMPLES / "improvements" / "iris-solver.py", iris / "solver.py")
    after = [accuracy(iris, seed) for seed in seeds]
    gains = [new - old for old, new in zip(before, after, strict=True)]
    assert min(gains) > 0.04
    assert max(after) < 1
    assert len(set(before)) > 1, "the seed must matter"


def test_its_own_tests_pass(iris: Path) -> None:
    assert "OK" in run(iris, "-m", "unittest", "discover", "-s", "tests").stderr


def test_the_data_are_the_published_ones() -> None:
    with (EXAMPLES / "iris/data/iris.csv").open(newline="", encoding="ascii") as file:
        rows = list(csv.reader(file))[1:]
    columns = [[float(row[number]) for row in rows] for number in range(4)]
    assert [round(statistics.stdev(column), 7) for column in columns] == [0.8280661, 0.4358663, 1.7652982, 0.7622377]
    assert [round(statistics.fmean(column), 6) for column in columns] == [5.843333, 3.057333, 3.758, 1.199333]
