"""What the figures of a cell are made of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.bench.cell_overhead import Took, arms_seconds, figures

pytestmark = pytest.mark.unit


def record(folder: Path, outcome: str, *arms: dict[str, Any]) -> Path:
    file = folder / "record.json"
    file.write_text(json.dumps({"outcome": outcome, "payload": {"arms": arms}}), encoding="utf-8")
    return file


def test_both_arms_of_a_pair_count_as_the_commands_own_time(tmp_path: Path) -> None:
    arms = [{"word": "measured", "seconds": 0.5}, {"word": "measured", "seconds": 0.25}]
    assert arms_seconds(record(tmp_path, "completed", *arms)) == 0.75


@pytest.mark.parametrize(("outcome", "word"), [("infrastructure", "measured"), ("completed", "failed")])
def test_a_cell_that_was_not_measured_gives_no_figure(tmp_path: Path, outcome: str, word: str) -> None:
    with pytest.raises(ValueError, match="it was to be measured"):
        arms_seconds(record(tmp_path, outcome, {"word": word, "seconds": 0.5}))


def test_a_cell_stands_beside_each_peer_as_a_ratio() -> None:
    peers = ("submitit map_array, local executor", "one job script per evaluation, without its queue and its polling")
    taken = {
        name: [Took(beside, 0.1)] for name, beside in zip(("cell", "pair", *peers), (0.2, 0.3, 0.4, 0.1), strict=True)
    }
    ratios = {one.name: one.peer.ratio for one in figures(taken) if one.peer}
    assert ratios == {"cell_overhead_vs_map_array": 0.5, "cell_overhead_vs_script": 2.0}
