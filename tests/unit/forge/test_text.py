"""Foreign text cannot leave its fence or its code span, whatever it holds and however long it is."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outerloop_hpc.forge.text import capped, fenced, span, visible

pytestmark = pytest.mark.unit

HOSTILE = st.text(
    alphabet=st.one_of(st.sampled_from("`~<>!-@#|\\\n\r\t \u202e\u200b\x00"), st.characters()), max_size=300
)


@given(HOSTILE)
def test_nothing_inside_a_fence_ends_it(text: str) -> None:
    first, *middle, last = fenced(text).split("\n")
    ticks = len(last)
    assert (first, last) == ("`" * ticks + "text", "`" * ticks)
    assert ticks >= 3
    assert all(len(run) < ticks for line in middle for run in re.findall("`+", line))


@given(HOSTILE)
def test_a_code_span_is_one_line_that_its_text_cannot_end(text: str) -> None:
    shown = span(text)
    assert "\n" not in shown
    assert "|" not in shown
    if shown != "(nothing)":
        ticks = re.match("`+", shown)
        assert ticks is not None
        assert shown.endswith(ticks[0])
        inner = shown[len(ticks[0]) : -len(ticks[0])]
        assert all(run != ticks[0] for run in re.findall("`+", inner))


@given(HOSTILE)
def test_what_is_shown_can_be_seen(text: str) -> None:
    unseen = {c for c in visible(text) if unicodedata.category(c) in {"Cc", "Cf", "Cs", "Zl", "Zp"}}
    assert unseen <= {"\n", "\t"}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\r\nb\rc", "a\nb\nc"),
        ("over\u202eridden", "over\ufffdridden"),
        ("bell\x07", "bell\ufffd"),
        ("tab\tstays", "tab\tstays"),
    ],
)
def test_invisible_characters_are_replaced(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_megabytes_are_cut_and_the_rest_is_counted() -> None:
    shown = fenced("x" * 5_000_000, most=100)
    assert len(shown) < 300
    assert "4999900 more characters were left out" in shown
    assert capped("short", 100) == "short"
    assert len(span("y" * 5_000_000, most=50)) < 60


@pytest.mark.parametrize("text", ["", " \n\t ", "\x00"])
def test_an_empty_text_is_still_a_whole_block(text: str) -> None:
    assert fenced(text).startswith("```text\n")
    assert span("") == "(nothing)"
