"""Whatever a benchmark prints, the answer is a finite number or a reason."""

from __future__ import annotations

import json
import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outerloop_hpc.measure.output import MAX_LINE, MAX_METRICS, Reading, Unusable, read_metric

pytestmark = pytest.mark.unit

FINITE = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**15), 10**15)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("output", "value"),
    [
        (b'{"score": 1}', 1.0),
        (b'noise\n{"score": 1.5}\nmore noise\n', 1.5),
        (b'{"score": 1}\n{"score": 2}\n', 2.0),
        (b'{"score": 1}\n{"other": 2}\n', 1.0),
        (b'{"score": 1}\n[2]\n"score"\nnull\n', 1.0),
        (b'{"score": 1}\r\n', 1.0),
        (b'\xff\xfe garbage\n  {"score": -0.25}  \n\x00', -0.25),
        (b'{"a": {"score": 9}, "score": 1}', 1.0),
        (b'{"score": 1}\n{"a": {"score": 9}}', 1.0),
        (b'{"sc\\u006fre": 3}', 3.0),
        (b'{"score": 1e-400}', 0.0),
        (b'{"score": 12345678901234567890123}', 1.2345678901234568e22),
    ],
)
def test_the_last_object_with_the_metric_counts(output: bytes, value: float) -> None:
    found = read_metric(output, "score")
    assert isinstance(found, Reading)
    assert found.value == value


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        (b"", "printed nothing"),
        (b" \n\n", "printed nothing"),
        (b"score: 1", "no line"),
        (b'{"score": 1', "no line"),
        (b'{"score":\n 1}', "no line"),
        (b"{score: 1}", "no line"),
        (b'{"score": true}', "true or false"),
        (b'{"score": "1"}', "a string"),
        (b'{"score": null}', "null"),
        (b'{"score": [1]}', "a list"),
        (b'{"score": {}}', "an object"),
        (b'{"score": NaN}', "not finite"),
        (b'{"score": -Infinity}', "not finite"),
        (b'{"score": 1e999}', "not finite"),
        (b'{"score": ' + b"9" * 400 + b"}", "not finite"),
        (b'{"score": ' + b"9" * 9000 + b"}", "not finite"),
        (b'{"score": 1, "score": 2}', "more than once"),
        (b'{"score": 1, "a": {"b": 1, "b": 1}}', "more than once"),
        (b'{"score": 1, "a": "\xff"}', "not UTF-8"),
        (b'{"score": 1, "a": ' + b"[" * 100 + b"]" * 100 + b"}", "nested deeper"),
        (b'{"score": 1, "a": ' + b"[" * 60_000 + b"]" * 60_000 + b"}", "nested deeper"),
        (b'{"score": 1, "a": "' + b"x" * MAX_LINE + b'"}', "longer than"),
    ],
)
def test_what_cannot_be_used_is_refused_with_a_reason(output: bytes, reason: str) -> None:
    found = read_metric(output, "score")
    assert isinstance(found, Unusable)
    assert reason in found.reason


def test_an_unusable_last_result_does_not_fall_back_to_an_older_one() -> None:
    assert isinstance(read_metric(b'{"score": 1}\n{"score": NaN}', "score"), Unusable)
    assert isinstance(read_metric(b'{"score": 1}\n{"score": 2, "x": "\xff"}', "score"), Unusable)


@pytest.mark.parametrize("last", [b'{"score": nan}', b'{"score": -inf}', b'{"score": 2,}', b'{"score": }'])
def test_a_last_result_that_is_no_json_does_not_fall_back_to_an_older_one(last: bytes) -> None:
    found = read_metric(b'{"score": 1}\n' + last + b"\n", "score")
    assert isinstance(found, Unusable)
    assert "is not JSON" in found.reason


def test_the_first_line_of_a_cut_output_is_not_trusted() -> None:
    assert isinstance(read_metric(b'{"score": 1}', "score", cut=True), Unusable)
    assert read_metric(b'{"score": 1}\n{"score": 2}', "score", cut=True) == Reading(2.0, {})


def test_further_numbers_are_kept_and_bounded() -> None:
    fields = {f"m{n:03}": n for n in range(300)} | {"flag": True, "text": "x", "inf": math.inf, "x" * 200: 1}
    found = read_metric(json.dumps({"score": 1, **fields}).encode(), "score")
    assert isinstance(found, Reading)
    assert len(found.metrics) == MAX_METRICS
    assert found.metrics["m007"] == 7.0
    assert set(found.metrics) < set(fields) - {"flag", "text", "inf"}


@pytest.mark.parametrize(
    "hostile", [b'{"score' + b'\\"' * 120_000 + b"}", b"{" * 250_000 + b"}", b'{"' * 120_000 + b"}"]
)
def test_hostile_lines_take_no_quadratic_time(hostile: bytes) -> None:
    begun = time.process_time()
    read_metric(hostile, "score")
    assert time.process_time() - begun < 2


@given(st.binary(max_size=200), st.text(max_size=5), st.booleans())
def test_any_bytes_give_an_answer(data: bytes, metric: str, cut: bool) -> None:
    found = read_metric(data, metric, cut=cut)
    assert isinstance(found, Unusable) or math.isfinite(found.value)


@given(st.dictionaries(st.text(max_size=8), JSON, max_size=5), FINITE, st.binary(max_size=40))
def test_a_good_result_is_found_among_noise(fields: dict[str, object], value: float, noise: bytes) -> None:
    line = json.dumps({**fields, "the score": value}).encode()
    found = read_metric(b"\n".join((noise, line, noise.replace(b"{", b""))), "the score")
    assert isinstance(found, Reading)
    assert found.value == float(value)
    assert all(math.isfinite(one) for one in found.metrics.values())


def test_the_name_of_a_further_number_can_be_written_to_a_file() -> None:
    found = read_metric(b'{"score": 1, "half \\ud800": 2}', "score")
    assert found == Reading(1.0, {"half ?": 2.0})
