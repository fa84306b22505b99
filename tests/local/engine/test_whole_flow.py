"""From init to a verdict on the embedded default, through the real command line."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.local.scratch import commit
from tests.local.site import CHECKOUT, EVALUATE, Site, iris_target, new_site, tiny_target, wait_for

pytestmark = pytest.mark.local


@pytest.fixture
def iris(tmp_path: Path) -> Iterator[Site]:
    site = new_site(tmp_path / "site", targets={"iris": iris_target(tmp_path / "iris")}, seeds=5)
    yield site
    site.stop_jobs()


@pytest.fixture
def tiny(tmp_path: Path) -> Iterator[Site]:
    site = new_site(tmp_path / "site", targets={"tiny": tiny_target(tmp_path / "tiny")})
    yield site
    site.stop_jobs()


def test_two_commits_end_in_a_verdict_with_all_evidence(iris: Site) -> None:
    iris.cli("init")
    submitted = iris.rows("tick")
    assert [row["decision"] for row in submitted if row["rule"] == "submit"] == ["submit"]
    first = iris.run_folder()
    manifest = json.loads(next(first.glob("tries/*/manifest.json")).read_bytes())
    assert len(manifest["elements"]) == 5
    iris.until_closed()
    assert json.loads(iris.cli("tick", "--json").out)["submitted"] == 0, "the same head again launches nothing"

    shutil.copy(CHECKOUT / "examples/improvements/iris-solver.py", iris.source("iris") / "solver.py")
    improved = commit(iris.source("iris"))
    iris.cli("tick")
    second = next(folder for folder in iris.runs() if folder != first)
    iris.until_closed()

    history = iris.rows("bench", "history", "iris")
    assert [row["verdict"] for row in history] == [None, "better"]
    assert [row["seeds"] for row in history] == [5, 5]
    (compared,) = iris.rows("bench", "compare", history[0]["commit"], improved)
    assert (compared["verdict"], compared["pairs"]) == ("better", 5)
    (best,) = iris.rows("bench", "ledger", "iris")
    assert (best["best"], best["best_run"]) == (history[1]["median"], second.name)
    assert best["baseline"] == history[0]["median"]
    _check_evidence(iris, first)
    _check_evidence(iris, second)
    assert "Against commit" in (second / "report.md").read_text(encoding="utf-8")


def _check_evidence(site: Site, folder: Path) -> None:
    tries = site.rows("runs", "show", folder.name)
    assert [row["outcome"] for row in tries] == ["done"] * 5
    (archive,) = (folder / "accounting").glob("*.json")
    rows = json.loads(archive.read_bytes())["rows"]
    assert [row["State"] for row in rows if not row["JobID"].endswith(".batch")] == ["COMPLETED"] * 5
    jobs = site.rows("report", "jobs", "--run", folder.name)
    assert len(jobs) == 5
    assert {row["state"] for row in jobs} == {"COMPLETED"}
    (run,) = [row for row in site.rows("report", "runs") if row["run_id"] == folder.name]
    assert (run["attempts"], run["completed"]) == (5, 5)
    chain = site.cli("explain", folder.name).out
    for word in ("run.started", "submission.intended", "submission.bound", "try.ended", "run.ended", "run.closed"):
        assert word in chain
    report = (folder / "report.md").read_text(encoding="utf-8")
    assert "**measured**" in report
    assert report.count("| done |") == 5
    assert not (folder / "tries" / json.loads(archive.read_bytes())["submission"] / "submitit").exists()


def test_a_measurement_can_be_asked_for_and_waited_for(tiny: Site) -> None:
    commit_id = commit(tiny.source())
    tiny.change(EVALUATE.replace("BONUS", "1"))
    done = tiny.cli("bench", "run", "tiny", "--commit", commit_id, "--seeds", "7,8,9", "--wait", "500")
    (run,) = done.out.split()
    (point,) = tiny.rows("bench", "history", "tiny")
    assert (point["run"], point["commit"], point["median"]) == (run, commit_id[:12], 8)
    assert tiny.live() == []
    tiny.cli("advance", run)


def test_a_pass_that_only_looks_changes_nothing(tiny: Site) -> None:
    planned = tiny.rows("tick", "--dry-run")
    assert [row["decision"] for row in planned] == ["run"]
    assert tiny.runs() == []
    assert tiny.local_files() == []
    tiny.cli("tick")
    wait_for(lambda: bool(tiny.local_jobs()) and tiny.jobs_gone(), "both seeds ran")
    before = {path: path.stat().st_mtime_ns for path in tiny.state.rglob("*")}
    settled = {row["rule"] for row in tiny.rows("tick", "--dry-run")}
    assert {"record.final", "kind.end"} <= settled
    assert {path: path.stat().st_mtime_ns for path in tiny.state.rglob("*")} == before
