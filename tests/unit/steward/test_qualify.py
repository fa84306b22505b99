"""Who may order, which benchmark an order names, and what earlier claims mean for it."""

from __future__ import annotations

import string
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outerloop_hpc.forge.markers import Marker, Standing
from outerloop_hpc.steward.qualify import Decline, Pass, Rules, Take, named, qualify
from tests.unit.engine.made import T0
from tests.unit.steward.made import RUN, minutes, order

pytestmark = pytest.mark.unit

RULES = Rules("outerloop")
FREE = Standing()
BENCHMARKS = ("score", "other")
HELD = Marker(claim="a" * 16, run=RUN, attempt=1)


def judged(standing: Standing = FREE, *, rules: Rules = RULES, after: timedelta = timedelta(), **more: Any) -> object:
    return qualify(order(**more), standing, BENCHMARKS, rules, T0 + after)


@pytest.mark.parametrize(
    ("rules", "more", "verdict"),
    [
        (RULES, {}, Take("score")),
        (RULES, {"trusted": False}, "author"),
        (Rules("outerloop", ("ada",)), {"trusted": False}, Take("score")),
        (Rules("outerloop", ("bob",)), {"trusted": True}, "author"),
        (Rules("outerloop", ("Ada",)), {}, "author"),
        (RULES, {"author": "outerloop"}, Pass("it is the tool's own")),
        (Rules("outerloop", ("outerloop",)), {"author": "outerloop"}, Pass("it is the tool's own")),
    ],
)
def test_who_may_order(rules: Rules, more: dict[str, Any], verdict: object) -> None:
    found = judged(rules=rules, **more)
    assert (found.key if isinstance(found, Decline) else found) == verdict


def test_a_held_order_is_nobody_else_s() -> None:
    found = judged(Standing(held=HELD, attempts=1, spoken=True), trusted=False)
    assert isinstance(found, Pass)
    assert HELD.claim in found.reason


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("tsp is saturated", ["tsp"]),
        ("tsp-large is saturated", ["tsp-large"]),
        ("tsp, and tsp-large too", ["tsp", "tsp-large"]),
        ("`tsp`.", ["tsp"]),
        ("(tsp)", ["tsp"]),
        ("tsp: it is easy", ["tsp"]),
        ("tsp.py is the file", []),
        ("the.tsp", []),
        ("tspx and xtsp", []),
        ("_tsp and tsp_", []),
        ("tsp-huge", []),
        ("TSP", []),
        ("tsp2", []),
        ("Well:tsp", ["tsp"]),
        ("v1.5 ends.", ["v1.5"]),
        ("v1.5", ["v1.5"]),
        ("v1.50 and v1x5", []),
        ("reach a better score", ["reach"]),
        ("we reach far on tsp", ["tsp", "reach"]),
        ("outreach and reached", []),
        ("été-tsp tspé", []),
    ],
)
def test_names_stand_as_whole_words(text: str, names: list[str]) -> None:
    found = named(order("", title=text), ("tsp", "tsp-large", "reach", "v1.5"))
    if len(names) == 1:
        assert found == Take(names[0])
    else:
        assert isinstance(found, Decline)
        assert found.key == f"benchmark-{len(names)}-{len(names)}"


@pytest.mark.parametrize(
    ("body", "verdict"),
    [
        ("benchmark: other", Take("other")),
        ("score and other\nBenchmark:other\n", Take("other")),
        ("score\n  benchmark :  `other`  \nmore", Take("other")),
        ("score\r\nbenchmark: other\r\n", Take("other")),
        ("benchmark: other\nbenchmark: other\n", Take("other")),
        ("benchmark: other\nbenchmark: score", "benchmark-2-2"),
        ("benchmark: other\nbenchmark: none-such", "benchmark-2-1"),
        ("benchmark: Score", "benchmark-1-0"),
        ("the benchmark: other one, and score", "benchmark-2-2"),
        ("Benchmark:\n\nscore\n", Take("score")),
        ("Benchmark:\n\nhello\nit is about score\n", Take("score")),
        ("benchmark: a b\nscore", Take("score")),
        ("nothing", "benchmark-0-0"),
        ("", "benchmark-0-0"),
    ],
)
def test_a_line_wins_over_prose(body: str, verdict: object) -> None:
    found = named(order(body, title="An order"), BENCHMARKS)
    assert (found.key if isinstance(found, Decline) else found) == verdict


def test_what_cannot_be_taken_is_answered_with_the_candidates() -> None:
    found = named(order("score or other?"), BENCHMARKS)
    assert isinstance(found, Decline)
    assert "`score`" in found.text
    assert "`other`" in found.text
    assert "benchmark: NAME" in found.text


NAMES = st.text(alphabet=string.ascii_letters + string.digits + "_.-", min_size=1, max_size=12)


@given(st.lists(NAMES, min_size=1, max_size=4, unique=True), st.data())
def test_each_benchmark_can_be_ordered_alone_by_its_line(names: list[str], data: st.DataObject) -> None:
    chosen = data.draw(st.sampled_from(names))
    prose = data.draw(st.text(max_size=60).filter(lambda text: "benchmark" not in text.lower()))
    assert named(order(f"{prose}\nbenchmark: {chosen}\n{prose}", title=prose or "x"), names) == Take(chosen)


@given(st.lists(NAMES, min_size=1, max_size=4, unique=True), st.data())
def test_a_name_between_spaces_is_seen_and_no_other_is_taken(names: list[str], data: st.DataObject) -> None:
    chosen = data.draw(st.sampled_from(names))
    found = named(order(f"about {chosen} only", title="?"), [n for n in names if n not in {"about", "only"}] or ["x"])
    if chosen not in {"about", "only"}:
        assert found == Take(chosen)


@given(st.text(max_size=400), st.text(max_size=400))
def test_any_text_is_judged(title: str, body: str) -> None:
    found = named(order(body, title=title), BENCHMARKS)
    assert isinstance(found, Take | Decline)
    if isinstance(found, Take):
        assert found.benchmark in title + body


@given(st.text(alphabet="benchmark: `\r\n\tother", max_size=60))
def test_a_line_never_reaches_into_the_next_one(body: str) -> None:
    found = named(order(body, title="x"), ("no-such",))
    assert isinstance(found, Decline)


def ended(reason: str, **more: Any) -> Standing:
    return Standing.model_validate({"attempts": 1, "last": reason, "since": T0, **more})


@pytest.mark.parametrize("reason", ["published", "answered"])
def test_what_is_settled_waits_for_a_person(reason: str) -> None:
    assert isinstance(judged(ended(reason)), Pass)
    assert judged(ended(reason, spoken=True)) == Take("score")
    assert judged(ended(reason), relabelled_at=T0 + minutes(1)) == Take("score")
    assert isinstance(judged(ended(reason), relabelled_at=T0 - minutes(1)), Pass)


@pytest.mark.parametrize(
    ("standing", "key"),
    [
        (ended("failed", failed=2), None),
        (ended("failed", failed=3), "stuck-failed-3"),
        (ended("failed", failed=4), "stuck-failed-4"),
        (ended("failed", failed=3, spoken=True), None),
        (ended("outage", outages=4), None),
        (ended("outage", outages=5), "stuck-outage-5"),
        (ended("outage", outages=5, spoken=True), None),
        (ended("refused", failed=3), "stuck-failed-3"),
        (ended("outage", failed=2, outages=4), None),
    ],
)
def test_an_order_that_was_tried_enough_is_stuck_until_a_person_asks(standing: Standing, key: str | None) -> None:
    found = judged(standing)
    assert (found.key if isinstance(found, Decline) else None) == key
    if key is None:
        assert found == Take("score")


@pytest.mark.parametrize(("count", "pause"), [(1, 10), (2, 20), (5, 160), (9, 1440), (200, 1440)])
def test_refusals_back_off_and_never_use_an_order_up(count: int, pause: int) -> None:
    standing = ended("refused", refusals=count, attempts=count)
    assert isinstance(judged(standing, after=minutes(pause - 1)), Pass)
    assert judged(standing, after=minutes(pause)) == Take("score")


def test_a_person_s_word_does_not_hurry_a_refusal() -> None:
    assert isinstance(judged(ended("refused", refusals=1, spoken=True)), Pass)


@pytest.mark.parametrize(
    ("given_back", "more"),
    [("refused", {}), ("outage", {"bought_at": T0}), ("refused", {"outages": 5, "bought_at": T0 - minutes(60)})],
)
def test_a_claim_that_was_given_back_does_not_use_up_what_a_person_asked_for(
    given_back: str, more: dict[str, Any]
) -> None:
    """A stuck order that somebody had tried once more was stuck again, in silence, when no session could be held."""
    asked = T0 - minutes(30)
    stuck = ended(given_back, failed=3, settled_at=T0 - minutes(60), **more)
    assert isinstance(judged(stuck), Decline)
    assert judged(stuck.model_copy(update={"spoken_at": asked})) == Take("score")
    assert judged(stuck, relabelled_at=asked) == Take("score")
    settled = stuck.model_copy(update={"spoken_at": asked, "settled_at": T0, "last": "failed"})
    assert isinstance(judged(settled), Decline), "a session that failed has answered it"
