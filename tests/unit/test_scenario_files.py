"""The reader of scenario files is total: what it does not know is an error that names the place."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakeslurm.model import Fate, Fault
from tests.fakeslurm.scenario import Act, Calls, Check, Foreign, Mistake, Past, Ran, load, read

SCENARIOS = Path(__file__).parents[1] / "fakeslurm" / "scenarios"
EXPECT = {"runs": [{"phase": "closed"}], "sbatch": 1, "jobs": 1}


def one(**changes: Any) -> dict[str, Any]:
    return {"scenario": [{"name": "a", "steps": ["tick"], "expect": EXPECT, **changes}]}


def test_every_kind_of_step_is_read() -> None:
    steps = [
        "run 1 22",
        "reconcile -> 75",
        "scancel all as root of 1",
        "settle every 60 -> 20",
        {"rule": "record.final", "of": 1},
        {"calls": "sbatch", "are": 2},
        {"fault": {"command": "sacct", "kind": "hang"}},
        {"fate": {"state": "NODE_FAIL", "exit": [1, 0]}},
        {"past": {"id": 1, "name": "x", "user": "bob", "state": "FAILED", "ago_s": 5}},
        {"foreign": {"id": 1, "name": "x", "user": "me", "tasks": "0-9:3"}},
    ]
    (found,) = read(one(steps=steps), "file")
    assert found.steps == (
        Act("run", ("1", "22")),
        Act("reconcile", (), status=75),
        Act("scancel", ("all", "as", "root"), of=1),
        Act("settle", ("every", "60"), status=20),
        Check("record.final", 1),
        Calls("sbatch", 2),
        Fault("sacct", "hang"),
        Fate(state="NODE_FAIL", exit=(1, 0)),
        Past(1, "x", "bob", "FAILED", 5),
        Foreign(1, "x", "me", tasks="0-9:3"),
    )


def test_faults_and_fates_of_the_beginning_are_steps_and_tables_become_settings() -> None:
    given_ = one(
        faults=[{"command": "sbatch", "kind": "late"}],
        cluster={"lag_s": 5},
        tool={"slurm": {"wake": True}},
        expect={**EXPECT, "runs": [{"phase": "closed", "ending": "measured", "outcomes": ["lost done"], "values": 1}]},
    )
    (found,) = read(given_, "file")
    assert found.steps == (Fault("sbatch", "late"), Act("tick"))
    assert found.settings("22.05.8").lag_s == 5
    assert found.settings("22.05.8").version == "22.05.8"
    assert found.tool == {"slurm.wake": True}
    assert found.versions == ("22.05.8", "26.05.5")
    assert found.expect.runs == (Ran("closed", "measured", ("lost done",), 1),)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"stepz": []}, "'stepz' is not known"),
        ({"name": 7}, "name: 7 is not str"),
        ({"steps": ["dance"]}, "not a step"),
        ({"steps": ["advance soon"]}, "not a step"),
        ({"steps": ["tick twice"]}, "not a step"),
        ({"steps": ["advance 5 -> 75"]}, "have an exit status"),
        ({"steps": ["tick of 1"]}, "is not about one run"),
        ({"steps": [{"rule": "x", "off": 0}]}, "'off' is not known"),
        ({"steps": [{"rule": "x", "of": True}]}, "of: True is not int"),
        ({"steps": [{"fault": {"command": "sacct", "kind": "explode"}}]}, "a fault is one of"),
        ({"steps": [{"fault": {"command": "sacct"}}]}, "'kind' is needed"),
        ({"steps": [{"fate": {"body": "sings"}}]}, "a body is one of"),
        ({"steps": [5]}, "5 is no table"),
        ({"cluster": {"lag": 5}}, "'lag' is not known"),
        ({"tool": {"slurm": 5}}, "5 is no table"),
        ({"versions": ["21.08"]}, "'21.08' is not one of"),
        ({"versions": [7]}, "7 is not one of"),
        ({"expect": {"runs": []}}, "is needed"),
        ({"expect": {**EXPECT, "runs": [{"phase": "fine"}]}}, "phase 'fine' is not one of"),
        ({"expect": {**EXPECT, "word": []}}, "'word' is not known"),
        ({"expect": {**EXPECT, "words": [1]}}, "are not texts"),
    ],
)
def test_what_is_not_known_is_a_mistake_that_names_its_scenario(changes: Mapping[str, Any], says: str) -> None:
    with pytest.raises(Mistake, match=r"file: scenario 1") as mistake:
        read(one(**changes), "file")
    assert says in str(mistake.value)


def test_two_scenarios_of_one_name_are_a_mistake() -> None:
    with pytest.raises(Mistake, match="more than one scenario is called 'a'"):
        read({"scenario": one()["scenario"] * 2}, "file")


def test_a_file_that_is_no_toml_is_a_mistake_that_names_it(tmp_path: Path) -> None:
    path = tmp_path / "odd.toml"
    path.write_text("[[scenario", encoding="utf-8")
    with pytest.raises(Mistake, match=r"odd\.toml"):
        load(path)


_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.just("tick"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
_KEYS = st.sampled_from(["name", "steps", "expect", "versions", "cluster", "tool", "faults", "fates", "memory_mb"])


@given(st.dictionaries(_KEYS, _VALUES, max_size=9))
def test_the_reader_never_fails_otherwise(changes: dict[str, Any]) -> None:
    try:
        read(one(**changes), "file")
    except Mistake:
        return


def test_names_are_unique_and_there_are_sixty_different_scenarios() -> None:
    names = [scenario.name for path in SCENARIOS.glob("*.toml") for scenario in load(path)]
    assert len(names) == len(set(names))
    assert len(names) >= 60


def test_rules_that_scenarios_name_are_rules() -> None:
    """A misspelt one among those that must never be seen would never be seen."""
    page = (Path(__file__).parents[2] / "docs" / "decisions.md").read_text(encoding="utf-8")
    known = set(re.findall(r"^\| `([a-z.-]+)` \|", page, re.MULTILINE))
    every = [scenario for path in SCENARIOS.glob("*.toml") for scenario in load(path)]
    named = {rule for scenario in every for rule in (*scenario.expect.rules, *scenario.expect.never)}
    named |= {step.rule for scenario in every for step in scenario.steps if isinstance(step, Check)}
    assert named - known == set()
    assert len(named) > 15
