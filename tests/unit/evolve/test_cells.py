"""The cells of a stage: ids that stay, seeds of their own, and what outcomes say as readings."""

from __future__ import annotations

from typing import Any

import pytest

from outerloop_hpc.engine.kind import Outcome, View
from outerloop_hpc.engine.state import StepWord
from outerloop_hpc.evolve.cells import Measured, Stage, StageName, cells_of, laid_out, measured, seed_of, steps_of
from outerloop_hpc.evolve.gate.pairs import Pair
from outerloop_hpc.evolve.given import CellGiven
from tests.unit.engine.made import T0
from tests.unit.evolve import played
from tests.unit.evolve.played import A, B, spec_of, work

pytestmark = pytest.mark.unit

STAGE = Stage(0, "confirm", (A,), {"t0": 2, "t1": 1})


def outcomes(unit: str, stage: Stage, told: Any = None) -> tuple[View, dict[str, Outcome]]:
    made = work(unit=unit)
    steps = steps_of(spec_of(made), made, stage)
    known = {}
    for step in steps:
        cell = CellGiven.model_validate(step.parameters)
        known[step.key] = (told(cell) if told else None) or record(played.measured(step))
    return View(lambda: spec_of(made), {s.key: s for s in steps}, known, 0, T0), known


def record(told: dict[str, Any]) -> Outcome:
    return Outcome("record", told["record_outcome"], told["payload"], told["reason"])


def found(unit: str = "cell", stage: Stage = STAGE, told: Any = None) -> Measured:
    view, _ = outcomes(unit, stage, told)
    seen = measured(work(unit=unit), stage, laid_out(spec_of(work(unit=unit)), work(unit=unit), stage), view)
    assert seen is not None
    return seen


def words(pairs: tuple[Pair, ...]) -> list[tuple[str, int, str, str]]:
    return [(one.task, one.repeat, one.incumbent.word, one.candidate.word) for one in pairs]


def test_ids_and_keys_of_cells_stay_what_they_are_over_versions() -> None:
    """A sweep that is under way while the tool is updated would measure all its cells again."""
    made = work()
    assert [cell.cell for cell in cells_of(made, STAGE)][:2] == ["077cb0758806efd6", "fc87c4fa53f66681"]
    assert [step.key for step in steps_of(spec_of(made), made, STAGE)][:2] == [
        "cell-c944a13f683799d8",
        "cell-46bc6a14ece3b04b",
    ]


def test_what_is_left_at_its_default_is_no_part_of_a_cell() -> None:
    (step, *_) = steps_of(spec_of(work()), work(), STAGE)
    assert set(step.parameters) == {"cell", "task", "seed", "repeat", "stage", "arms"}


def test_first_pairs_of_all_tasks_come_before_second_ones_and_arms_side_by_side() -> None:
    made = [(cell.task, cell.repeat, cell.arms) for cell in cells_of(work(), STAGE)]
    old, new = ("incumbent",), ("candidate",)
    assert made == [
        ("t0", 0, old),
        ("t0", 0, new),
        ("t1", 0, old),
        ("t1", 0, new),
        ("t0", 1, old),
        ("t0", 1, new),
    ]


def test_more_pairs_leave_the_cells_that_are_there_as_they_are() -> None:
    few, many = (cells_of(work(), Stage(0, "confirm", (A,), {"t0": n, "t1": n})) for n in (4, 8))
    assert set(few) <= set(many)


def test_every_cell_has_an_id_of_its_own() -> None:
    ids = [
        cell.cell
        for unit in ("cell", "pair")
        for generation in (0, 1)
        for name in ("screen", "confirm")
        for cell in cells_of(work(unit=unit), Stage(generation, name, (A, B), {"t0": 3, "t1": 3}))
    ]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize(
    "other", [("confirm", 1, "t0", 0), ("screen", 0, "t0", 0), ("confirm", 0, "t1", 0), ("confirm", 0, "t0", 1)]
)
def test_another_pair_has_another_seed(other: tuple[StageName, int, str, int]) -> None:
    name, generation, task, repeat = other
    mine = seed_of(work(), STAGE, "t0", 0)
    assert mine != seed_of(work(), Stage(generation, name, (A,), {}), task, repeat)
    assert mine != seed_of(work(document="e"), STAGE, "t0", 0)
    assert 0 <= mine < 2**31


@pytest.mark.parametrize("unit", ["cell", "pair"])
def test_whole_records_make_whole_pairs(unit: str) -> None:
    seen = found(unit)
    assert words(seen.pairs[A]) == [(task, n, "measured", "measured") for task, n in (("t0", 0), ("t1", 0), ("t0", 1))]
    assert (seen.missing(), seen.broken) == ({}, ())


def test_a_reading_that_is_missing_for_one_candidate_is_missing_for_no_other() -> None:
    def lose(cell: CellGiven) -> Outcome | None:
        return Outcome("tries exhausted") if cell.overlay == B and cell.repeat == 1 else None

    seen = found(stage=Stage(0, "screen", (A, B), {"t0": 2}), told=lose)
    assert [word for *_, word in words(seen.pairs[A])] == ["measured", "measured"]
    assert [word for *_, word in words(seen.pairs[B])] == ["measured", "missing"]
    assert seen.missing() == {"t0": 1}


@pytest.mark.parametrize("word", ["timed out", "withdrawn", "tries exhausted", "cancelled by a person"])
def test_what_left_no_record_is_missing_and_says_why(word: StepWord) -> None:
    seen = found("pair", told=lambda _: Outcome(word, reason="gone"))
    assert {one.candidate.word for one in seen.pairs[A]} == {"missing"}
    assert seen.pairs[A][0].incumbent.reason == f"{word}: gone"
    assert seen.missing() == {"t0": 2, "t1": 1}


def test_a_pair_that_was_lost_with_one_arm_is_not_held_against_the_other() -> None:
    seen = found("pair", told=lambda _: Outcome("tries exhausted", part="candidate"))
    assert {one[2:] for one in words(seen.pairs[A])} == {("missing", "missing")}
    assert {(one.incumbent.beside, one.candidate.beside) for one in seen.pairs[A]} == {(True, False)}


def test_memory_that_only_the_candidate_lacks_is_its_own_failure() -> None:
    seen = found(told=lambda cell: Outcome("out of memory") if cell.overlay else None)
    assert {one[2:] for one in words(seen.pairs[A])} == {("measured", "failed")}


def test_memory_that_a_cell_of_both_arms_lacks_is_no_number_of_either() -> None:
    seen = found("pair", told=lambda _: Outcome("out of memory"))
    assert {one[2:] for one in words(seen.pairs[A])} == {("missing", "missing")}
    assert not any(one.candidate.beside for one in seen.pairs[A])


def test_an_arm_that_failed_is_no_number_and_is_not_missing() -> None:
    made = work(unit="pair")
    steps = steps_of(spec_of(made), made, STAGE)
    told = {s.key: record(played.measured(s, failed=frozenset({"candidate"}))) for s in steps}
    seen = measured(made, STAGE, laid_out(spec_of(made), made, STAGE), View(lambda: spec_of(made), {}, told, 0, T0))
    assert seen is not None
    assert {one[2:] for one in words(seen.pairs[A])} == {("measured", "failed")}
    assert all(not one.candidate.metrics for one in seen.pairs[A])


@pytest.mark.parametrize(
    ("payload", "said"),
    [
        ({"arms": "none"}, "cannot be read"),
        ({"seed": 3, "arms": [{"arm": "candidate", "word": "failed"}]}, "is of cell"),
        ({"arms": [{"arm": "candidate", "overlay": B, "word": "failed"}]}, "is of overlay bbbb"),
        ({"arms": [{"arm": "incumbent", "word": "failed"}]}, "has the arms incumbent"),
    ],
)
def test_a_record_that_is_not_of_its_cell_is_broken_evidence(payload: dict[str, Any], said: str) -> None:
    def foreign(cell: CellGiven) -> Outcome | None:
        whole = {"cell": cell.cell, "task": cell.task, "seed": cell.seed, **payload}
        return Outcome("record", "completed", whole) if cell.overlay and cell.task == "t1" else None

    seen = found(told=foreign)
    assert len(seen.broken) == 1
    assert said in seen.broken[0]


def test_while_one_cell_is_under_way_nothing_is_known() -> None:
    view, known = outcomes("cell", STAGE)
    for key in known:
        less = {other: one for other, one in known.items() if other != key}
        some = View(view.read_spec, view.steps, less, 0, T0)
        assert measured(work(), STAGE, laid_out(spec_of(work()), work(), STAGE), some) is None
