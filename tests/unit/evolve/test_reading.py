"""Whatever a task's command says: numbers that were asked for, all of them, or a reason."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outerloop_hpc.evolve.bodies.reading import MAX_RESULT, Numbers, Wanted, read_numbers
from outerloop_hpc.measure.output import Unusable

pytestmark = pytest.mark.unit

WANTED = Wanted(("seconds", "loss"), "success")


def read(text: str, wanted: Wanted = WANTED, *, result: str | None = None, cut: bool = False) -> Numbers | Unusable:
    return read_numbers(wanted, text.encode(), cut=cut, result=None if result is None else result.encode())


def test_every_wanted_number_and_the_flag_are_read_beside_other_finite_ones() -> None:
    found = read('talk\n{"success": true, "seconds": 2, "loss": 0.5, "calls": 7, "name": "x", "bad": NaN}\nmore talk\n')
    assert found == Numbers(2.0, {"seconds": 2.0, "loss": 0.5, "calls": 7.0}, success=True)


def test_a_wanted_number_is_never_crowded_out_by_others() -> None:
    many = {f"a{n:03}": n for n in range(200)}
    found = read(json.dumps({**many, "success": False, "seconds": 1, "loss": 2}))
    assert isinstance(found, Numbers)
    assert found.metrics["seconds"] == 1.0
    assert found.success is False


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no line of the output is a JSON object"),
        ('{"success": true, "seconds": 1}', "has no 'loss'"),
        ('{"seconds": 1, "loss": 1}', "has no 'success'"),
        ('{"success": 1, "seconds": 1, "loss": 1}', "neither true nor false"),
        ('{"success": true, "seconds": true, "loss": 1}', "true or false, not a number"),
        ('{"success": true, "seconds": "1", "loss": 1}', "a string, not a number"),
        ('{"success": true, "seconds": 1, "loss": NaN}', "not finite"),
        ('{"success": true, "seconds": 1, "loss": 1e999}', "not finite"),
        ('{"success": true, "seconds": 1, "loss": nan}', "is not JSON"),
        ('{"success": true, "seconds": 1, "loss": 1, "loss": 2}', "more than once"),
    ],
)
def test_what_is_not_all_there_is_refused_with_a_reason(text: str, reason: str) -> None:
    found = read(text)
    assert isinstance(found, Unusable)
    assert reason in found.reason


def test_an_earlier_result_never_takes_the_place_of_the_last_one() -> None:
    good = '{"success": true, "seconds": 1, "loss": 1}'
    assert isinstance(read(f'{good}\n{{"diverged": 1}}\n'), Unusable)
    assert isinstance(read(f"{good}\n{{nan}}\n"), Unusable)


def test_the_file_counts_where_there_is_one_however_it_is_laid_out() -> None:
    wanted = Wanted(("seconds",))
    assert read('{"seconds": 1}', wanted, result='{\n  "seconds": 2\n}\n') == Numbers(2.0, {"seconds": 2.0}, None)
    for broken in ("", "[1]", '{"seconds": 3', '{"seconds": "' + "x" * MAX_RESULT + '"}'):
        found = read('{"seconds": 1}', wanted, result=broken)
        assert isinstance(found, Unusable)
        assert "OL_RESULT" in found.reason


def test_the_first_line_of_a_cut_output_is_not_trusted() -> None:
    assert isinstance(read('{"seconds": 1}', Wanted(("seconds",)), cut=True), Unusable)


@given(st.binary(max_size=200), st.none() | st.binary(max_size=200), st.booleans())
def test_any_bytes_give_an_answer(stdout: bytes, result: bytes | None, cut: bool) -> None:
    found = read_numbers(WANTED, stdout, cut=cut, result=result)
    assert isinstance(found, Unusable) or all(map(math.isfinite, found.metrics.values()))
