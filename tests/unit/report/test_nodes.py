"""Node lists, only as far as counting nodes needs them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outerloop_hpc.report.nodes import node_names

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("n1", {"n1"}),
        ("n[1-3]", {"n1", "n2", "n3"}),
        ("n[01-03,7],gpu-2", {"n01", "n02", "n03", "n7", "gpu-2"}),
        ("a[9-11]-ib", {"a9-ib", "a10-ib", "a11-ib"}),
        ("n1,n1", {"n1"}),
    ],
)
def test_names(text: str, names: set[str]) -> None:
    assert set(node_names(text) or ()) == names


@pytest.mark.parametrize(
    "text",
    [
        "",
        "None assigned",
        "n[",
        "n[]",
        "n[3-1]",
        "n[1-]",
        "r[1-2]n[1-2]",
        "n1,,n2",
        "n[1-999999999]",
        "n[1-99999,1-99999]",
    ],
)
def test_what_is_not_understood_is_no_list(text: str) -> None:
    assert node_names(text) is None


@given(st.text(alphabet="n[]-,0123456789 ", max_size=20))
def test_reading_is_total(text: str) -> None:
    names = node_names(text)
    assert names is None or names
