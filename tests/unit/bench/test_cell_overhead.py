"""What the figures of a cell are made of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.bench.cell_overhead import figures, overhead, slurm_figures
from tests.bench.cells import Took, arms_seconds

pytestmark = pytest.mark.unit


def record(folder: Path, outcome: str, *arms: dict[str, Any]) -> Path:
    file = folder / "record.json"
    file.write_text(json.dumps({"outcome": outcome, "payload": {"arms": arms}}), encoding="utf-8")
    return file


def arm(own: float, word: str = "measured") -> dict[str, Any]:
    # Longer by our clock than by the command's: its container and its interpreter had to start.
    return {"word": word, "seconds": own + 1.0, "metrics": {"score": own}}


def test_both_arms_of_a_pair_count_as_the_commands_own_time_and_their_containers_do_not(tmp_path: Path) -> None:
    assert arms_seconds(record(tmp_path, "completed", arm(0.5), arm(0.25))) == 0.75


@pytest.mark.parametrize(("outcome", "word"), [("infrastructure", "measured"), ("completed", "failed")])
def test_a_cell_that_was_not_measured_gives_no_figure(tmp_path: Path, outcome: str, word: str) -> None:
    with pytest.raises(ValueError, match="it was to be measured"):
        arms_seconds(record(tmp_path, outcome, arm(0.5, word)))


def test_a_cell_stands_beside_each_peer_as_a_ratio() -> None:
    taken = {"cell": 0.2, "pair": 0.3, "cell_apptainer": 0.5, "map_array": 0.4, "script": 0.1}
    found = figures({name: [Took(beside, 0.1)] for name, beside in taken.items()}, "")
    ratios = {one.name: one.peer.ratio for one in found if one.peer}
    assert ratios == {"cell_overhead_vs_map_array": 0.5, "cell_overhead_vs_script": 2.0}
    goals = {one.name: one.goal for one in found if one.goal}
    assert goals["cell_overhead_cell"] == "< 0.15 s"
    assert goals["cell_overhead_cell_apptainer"] == "< 0.5 s"


def test_a_figure_that_is_missing_is_said_to_be() -> None:
    taken = {name: [Took(0.2, 0.1)] for name in ("cell", "pair", "map_array", "script")}
    assert figures(taken, "no namespaces")[0].goal == "< 0.15 s; left out: Apptainer: no namespaces"


def test_the_overhead_of_an_evaluation_is_what_a_place_was_held_beyond_the_commands() -> None:
    # 24 evaluations of a second each, two at once: 12 seconds would do.
    assert overhead(18.0, [1.0] * 24) == 0.5
    with pytest.raises(ValueError, match="23 of 24"):
        overhead(18.0, [1.0] * 23)


def test_an_evaluation_on_slurm_stands_beside_both_peers() -> None:
    mapped, each = "submitit map_array on Slurm", "one sbatch per evaluation, asked for by squeue every 2 s"
    found = slurm_figures({"cell": [1.0], "cell_apptainer": [1.5], mapped: [2.0], each: [4.0]})
    assert [(one.peer.name, one.peer.ratio) for one in found if one.peer] == [(mapped, 0.5), (each, 0.25)]
