"""Whole sweeps through the real command line, their jobs on this machine."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from tests.local.driver import Driver
from tests.local.scratch import commit
from tests.local.site import Site, environment, new_site, tiny_target, wait_for

pytestmark = pytest.mark.local

#: The cost follows from the seed and from the file under improvement alone; each execution leaves a line.
EVALUATE = """\
import json, os, random
rate = float(open("solver/rate.txt").read())
noise = random.Random(os.environ["OL_SEED"]).lognormvariate(0, 0.1)
wobble = {wobble}.lognormvariate(0, 0.02)
with open({log!r}, "a") as log:
    log.write(os.environ["OL_TASK"] + " " + os.environ["OL_SEED"] + " " + str(rate) + "\\n")
print(json.dumps({{"success": True, "cost": 100 * rate * noise * wobble}}))
"""
#: The same for the same file and seed, or never the same.
SETTLED, UNSETTLED = 'random.Random(os.environ["OL_SEED"] + str(rate))', "random.SystemRandom()"
SWEEP = """\
schema: sweep/1
name: rates
target: tiny
overlay: {{allow: [solver]}}
proposer:
  kind: grid
  candidates: {candidates}
  template: {{solver/rate.txt: "{{{{rate}}}}\\n"}}
  values: {{rate: {rates}}}
tasks:
  - {{id: one, command: python3 evaluate.py, timeout_s: 110}}
  - {{id: two, command: python3 evaluate.py, timeout_s: 110}}
metrics: {{primary: {{name: cost, direction: min}}}}
repeats: {{screen: 2, confirm: 6, most: 6}}
unit: {unit}
"""


class Sweeps:
    """A site with one target, and sweeps on it."""

    def __init__(self, root: Path, driver: Driver) -> None:
        self.log = root / "executions"
        source = tiny_target(root / "source", EVALUATE.format(log=str(self.log), wobble=SETTLED))
        (source / "solver").mkdir()
        (source / "solver" / "rate.txt").write_text("1.0\n", encoding="utf-8")
        commit(source)
        self.site: Site = new_site(root / "site", targets={"tiny": source}, driver=driver)

    def file(
        self, *rates: float, candidates: int = 1, unit: str = "cell", changes: Mapping[str, str] = MappingProxyType({})
    ) -> str:
        text = SWEEP.format(rates=list(rates), candidates=candidates, unit=unit)
        for old, new in changes.items():
            text = text.replace(old, new)
        path = self.site.root / "sweep.yaml"
        path.write_text(text, encoding="utf-8")
        return str(path)

    def verdict(self, run: str) -> dict[str, Any]:
        (row,) = self.site.rows("evolve", "status", run)
        return row

    def executions(self) -> Counter[str]:
        return Counter(self.log.read_text(encoding="utf-8").splitlines())


@pytest.fixture
def sweeps(tmp_path: Path, driver: Driver) -> Sweeps:
    return Sweeps(tmp_path, driver)


@pytest.mark.parametrize("unit", ["cell", "pair"])
def test_the_better_of_two_candidates_is_promoted_and_its_decision_follows_from_its_pairs(
    sweeps: Sweeps, unit: str
) -> None:
    site, file = sweeps.site, sweeps.file(1.1, 0.8, candidates=2, unit=unit)
    run = site.cli("evolve", "submit", file, "--wait", "500").out.strip()
    row = sweeps.verdict(run)
    assert (row["ending"], row["lost"], row["failed"]) == ("promoted", 0, 0)
    assert row["gain"] == pytest.approx(0.2, abs=0.02)
    # Screening: 2 pairs of 2 tasks, the incumbent once for both candidates unless a cell is a pair; then 6 pairs.
    assert row["done"] == {"cell": 2 * 2 * 3 + 2 * 6 * 2, "pair": 2 * 2 * 2 + 2 * 6}[unit]
    decisions = site.rows("evolve", "gate", run, "--recompute")
    assert [(one["conclusion"], one["decision"], one["recomputed"]) for one in decisions] == [
        ("screen-g0", "confirm", "same"),
        ("confirm-g0-look1", "promote", "same"),
    ]
    assert [one["run"] for one in site.rows("evolve", "list", "--all")] == [run]
    promotion = json.loads((site.state / f"results/evolve/tiny/{run}/promotion.json").read_bytes())
    assert promotion["decision"]["decision"] == "promote"
    assert promotion["binding"]["overlay"] in {p.name for p in (site.run_folder() / "candidates").iterdir()}
    assert set(sweeps.executions().values()) == {1} if unit == "cell" else True
    page = (site.run_folder() / "report.html").read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert "<svg" in page
    assert "promoted" in page


def test_a_candidate_that_changes_nothing_is_not_promoted(sweeps: Sweeps) -> None:
    file = sweeps.file(1.0, changes={"[1.0]": '["1.00"]'})
    run = sweeps.site.cli("evolve", "submit", file, "--wait", "500", expect=(3,)).out.strip()
    assert sweeps.verdict(run)["ending"] == "kept"
    assert not (sweeps.site.state / f"results/evolve/tiny/{run}/promotion.json").exists()


def test_a_sweep_that_was_stopped_half_way_measures_no_finished_cell_again(sweeps: Sweeps) -> None:
    site, file, hold = sweeps.site, sweeps.file(0.8, candidates=1), sweeps.log.with_name("hold")
    # Of the second task only the screening comes to its end: the sweep is half way until it is stopped.
    waiting = (
        f"while os.environ['OL_TASK'] == 'two' and os.path.exists({str(hold)!r}) and open({str(sweeps.log)!r}).read()"
        ".count('two ') > 4:\n    time.sleep(0.1)\nprint(json"
    )
    evaluate = EVALUATE.format(log=str(sweeps.log), wobble=SETTLED)
    site.change(f"import time\n{evaluate.replace('print(json', waiting)}")
    hold.touch()
    run = site.cli("evolve", "submit", file).out.strip()

    def half() -> bool:
        site.cli("advance", run, expect=(10,))
        return bool(sweeps.verdict(run)["done"] >= 10)

    wait_for(half, "some confirming cells are done")
    site.cli("evolve", "cancel", run, "--reason", "the cluster is needed")
    assert sweeps.verdict(run)["phase"] == "parked"
    site.cli("advance", run, expect=(20,))
    site.cli("evolve", "cancel", run, "--reason", "again", expect=(2,))
    hold.unlink()
    site.cli("evolve", "resume", run, "--reason", "it is free")
    assert site.cli("evolve", "watch", run, "--wait", "500").err.endswith("at most 0.05\n")
    assert sweeps.verdict(run)["ending"] == "promoted"
    finished = [e for e in site.events() if e["type"] == "try.ended" and e["outcome"] == "done"]
    assert max(Counter(e["step"] for e in finished).values()) == 1
    cells = 2 * 2 * 2 + 2 * 6 * 2
    assert sum(1 for e in finished if e["step"].startswith("cell-")) == cells
    # What was cancelled may have printed its number without leaving a record; nothing else ran twice.
    again = sum(count - 1 for count in sweeps.executions().values())
    withdrawn = [e for e in site.events() if e["type"] == "try.ended" and e["outcome"] == "withdrawn"]
    assert again <= len(withdrawn)


def test_a_pilot_says_what_a_plan_can_see_and_submitting_asks_it(sweeps: Sweeps) -> None:
    site, file = sweeps.site, sweeps.file(0.8)
    site.change(EVALUATE.format(log=str(sweeps.log), wobble=UNSETTLED))
    assert "not known, for want of a pilot" in site.cli("evolve", "submit", file, "--dry-run").err
    said = site.cli("evolve", "power", file, "--pairs", "4", "--wait", "500").out
    run, text = said.strip().splitlines()
    assert "with a chance of 80 %" in text
    assert sweeps.verdict(run)["ending"] == "piloted"
    assert f"by pilot {run}: " in site.cli("evolve", "submit", file, "--dry-run").err
    assert site.cli("evolve", "power", file, "--pilot", run).out.strip() == text
    greedy = sweeps.file(0.8, changes={"direction: min": "direction: min, min_effect: 0.0001"})
    assert f"warning: by pilot {run}: " in site.cli("evolve", "submit", greedy, "--dry-run").err
    (site.source() / "solver" / "rate.txt").write_text("1.01\n", encoding="utf-8")
    commit(site.source())
    assert "for want of a pilot" in site.cli("evolve", "submit", file, "--dry-run").err
    assert len(site.runs()) == 1, "a dry run makes none"


def test_a_pilot_of_a_benchmark_that_follows_from_its_seed_claims_no_sight(sweeps: Sweeps) -> None:
    """It said that a plan could see a gain of 0 %."""
    site, file = sweeps.site, sweeps.file(0.8)
    said = site.cli("evolve", "power", file, "--pairs", "2", "--wait", "500").out
    assert "follows from the seed alone" in said
    warned = site.cli("evolve", "submit", file, "--dry-run").err
    assert "warning: by pilot" in warned
    assert "follows from the seed alone" in warned
    other = sweeps.file(0.8, changes={"name: cost": "name: other"})
    assert "says nothing about this plan" in site.cli("evolve", "submit", other, "--dry-run").err


def test_what_is_wrong_with_a_sweep_file_is_said_at_once_and_nothing_is_submitted(sweeps: Sweeps) -> None:
    file = sweeps.file(
        0.8, changes={"repeats:": "repeat:", "allow: [solver]": "allow: [nowhere]", "screen: 2": "screen: 1"}
    )
    said = sweeps.site.cli("evolve", "submit", file, expect=(2, 78)).err
    assert "repeat" in said
    assert "repeats" in said
    assert sweeps.site.runs() == []


def test_submitting_says_the_most_that_it_may_cost_and_what_will_never_be_measured(sweeps: Sweeps) -> None:
    said = sweeps.site.cli("evolve", "submit", sweeps.file(0.8, 0.9, 1.1), "--dry-run").err
    # For each task 2 pairs to screen and 6 to confirm, 1 and 3 in the place of lost ones; two arms.
    assert f"at most {2 * (2 + 1 + 6 + 3) * 2} cells" in said
    assert "only the first 1 of 3 candidates" in said


def test_a_budget_that_can_bring_no_decision_is_said_before_anything_is_proposed(sweeps: Sweeps) -> None:
    """It was said by an ending, after a proposer had worked."""
    few = sweeps.file(0.8, changes={"unit:": "budget: {cells: 31}\nunit:"})
    said = sweeps.site.cli("evolve", "submit", few, "--dry-run").err
    assert "budget.cells (31) cannot last: screening and confirming one candidate takes 32 cells" in said
    enough = sweeps.file(0.8, changes={"unit:": "budget: {cells: 32}\nunit:"})
    assert "cannot last" not in sweeps.site.cli("evolve", "submit", enough, "--dry-run").err
    late = sweeps.file(0.8, changes={"unit:": 'budget: {deadline: "2020-01-01T00:00:00Z"}\nunit:'})
    assert "2020-01-01T00:00:00Z has passed" in sweeps.site.cli("evolve", "submit", late, expect=(2,)).err
    assert sweeps.site.runs() == []


def test_a_budget_of_money_that_nothing_counts_against_is_said_before_anything_is_proposed(sweeps: Sweeps) -> None:
    """A person took it for a limit."""
    file = sweeps.file(0.8, changes={"unit:": "budget: {money: 5}\nunit:"})
    assert "warning: budget.money limits nothing" in sweeps.site.cli("evolve", "submit", file, "--dry-run").err


def test_a_cancellation_without_a_reason_is_refused_under_its_own_name(sweeps: Sweeps) -> None:
    """It was said of "park", which is no command."""
    said = sweeps.site.cli("evolve", "cancel", "any", expect=(2,)).err
    assert "evolve cancel needs --reason" in said


def test_a_search_without_its_library_is_refused_and_no_halted_sweep(sweeps: Sweeps) -> None:
    """Its first proposal was refused by the job, and the sweep halted as if somebody had tampered with it."""
    grid = "kind: grid\n  candidates: 1"
    search = "kind: ask-tell\n  parameters: [{name: rate, kind: int, low: 1, high: 5, log: true}]"
    file = sweeps.file(1, changes={grid: search, "  values: {rate: [1]}\n": ""})
    assert "would submit" in sweeps.site.cli("evolve", "submit", file, "--dry-run").err
    (sweeps.site.root / "broken/optuna").mkdir(parents=True)
    (sweeps.site.root / "broken/optuna/__init__.py").write_text("raise ImportError\n")
    before = environment().get("PYTHONPATH", "")
    without = replace(sweeps.site, driver=None, env={"PYTHONPATH": f"{sweeps.site.root / 'broken'}:{before}"})
    assert "outerloop-hpc[search]" in without.cli("evolve", "submit", file, "--dry-run", expect=(78,)).err


def test_commands_about_sweeps_refuse_other_runs(sweeps: Sweeps) -> None:
    run = sweeps.site.cli("bench", "run", "tiny").out.strip()
    assert "is a benchmark run, no sweep" in sweeps.site.cli("evolve", "status", run, expect=(2,)).err
    sweeps.site.stop_jobs()
