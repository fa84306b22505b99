"""The page of a sweep: well formed, self-contained, drawn as it was decided, and no stranger's text acts in it."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest

from outerloop_hpc.engine.state import RunState
from outerloop_hpc.evolve.findings import ArmFound, ProposalFound
from outerloop_hpc.evolve.gate.decide import decide
from outerloop_hpc.evolve.gate.decision import GateDecision
from outerloop_hpc.evolve.gate.differences import gain
from outerloop_hpc.evolve.gate.policy import GatePolicy, Metric, Repeats
from outerloop_hpc.evolve.given import CellGiven
from outerloop_hpc.evolve.reporting.page import page
from outerloop_hpc.evolve.reporting.plot import plot
from tests.unit.evolve.gate.made import pairs
from tests.unit.evolve.past import RUN, A, B, Past, arm, candidate, costs, work
from tests.unit.evolve.test_report import HOSTILE

pytestmark = pytest.mark.unit

BETTER = costs(base=10.0, a=8.0, b=9.9)


def promoted() -> tuple[Past, GateDecision]:
    past = Past()
    past.candidates(0, A, B)
    past.screen(0, [A, B], BETTER)
    said = past.confirm(0, A, BETTER)
    past.end("promoted", overlay=A, generation=0, gain=said.gain, conclusion="confirm-g0-look1")
    return past, said


def parsed(text: str) -> ET.Element:
    """Read the page as XML: what is not closed, or not escaped, is an error."""
    body = re.sub(r"<meta ([^>]*)>", r"<meta \1/>", text.removeprefix("<!DOCTYPE html>\n"))
    return ET.fromstring(body)  # noqa: S314 - our own text


def drawn(found: GateDecision) -> ET.Element:
    return ET.fromstring(plot(found, "p"))  # noqa: S314 - our own text


def of(root: ET.Element, tag: str) -> list[ET.Element]:
    return list(root.iter(f"{{http://www.w3.org/2000/svg}}{tag}"))


def test_the_page_tells_the_verdict_the_pairs_and_the_commands() -> None:
    past, said = promoted()
    root = parsed(page(past.spec, past.state))
    text = " ".join("".join(root.itertext()).split())
    for part in (
        "promoted",
        f"evolve apply {RUN}",
        f"evolve gate {RUN} --recompute",
        past.work.document,
        "not measured",
    ):
        assert part in text
    cells = {cell.text for cell in root.iter("td")}
    assert {row.pair.candidate.cell for row in said.rows} <= cells


def test_the_page_loads_nothing_and_runs_nothing() -> None:
    past, _ = promoted()
    root = parsed(page(past.spec, past.state))
    tags = {one.tag for one in root.iter()}
    assert not tags & {"script", "link", "img", "iframe", "a", "form"}
    assert not [name for one in root.iter() for name in one.attrib if name in {"src", "href"} or name.startswith("on")]
    policy = next(one for one in root.iter("meta") if one.get("http-equiv"))
    assert (policy.get("content") or "").startswith("default-src 'none'")


def test_a_sweep_that_has_not_begun_has_a_page() -> None:
    past = Past()
    assert "nothing below is a verdict yet" in page(past.spec, RunState(run=RUN))


def test_text_of_strangers_is_text_on_the_page_and_in_the_plot() -> None:
    def found(cell: CellGiven, name: str) -> ArmFound:
        return arm(name, 10.0 + cell.repeat, overlay=cell.overlay, reason=HOSTILE)

    policy = GatePolicy(primary=Metric(name="cost", direction="min"), repeats=Repeats(screen=2, confirm=6, most=6))
    past = Past(work(name=HOSTILE, gate=policy))
    hostile = candidate(A, origin=HOSTILE, files=(HOSTILE,), values={"v": HOSTILE})
    past.proposal(0, ProposalFound(candidates=(hostile,)))
    past.screen(0, [A], found)
    said = past.confirm(0, A, found)
    past.end("kept", HOSTILE)
    text = page(past.spec, past.state)
    assert "script" not in {one.tag for one in parsed(text).iter()}
    assert "\u202e" not in text
    evil = said.model_copy(
        update={"found": tuple(one.model_copy(update={"task": "</svg><script>"}) for one in said.found)}
    )
    rows = tuple(
        row.model_copy(update={"pair": row.pair.model_copy(update={"task": "</svg><script>"})}) for row in said.rows
    )
    root = drawn(evil.model_copy(update={"rows": rows}))
    assert {one.tag.rpartition("}")[2] for one in root.iter()} <= {
        "svg",
        "title",
        "desc",
        "line",
        "text",
        "circle",
        "path",
    }


def test_the_plot_has_a_ring_for_each_compared_pair_a_bar_for_each_task_and_named_lines() -> None:
    _, said = promoted()
    root = drawn(said)
    assert len(of(root, "circle")) == sum(row.use == "compared" for row in said.rows) == 12
    # Interval and mean of two tasks and of all.
    assert len(of(root, "path")) == 2 * 3
    words = [one.text for one in of(root, "text")]
    assert {"one", "two", "all tasks", "no difference", "asked for"} <= set(words)
    assert [one.tag.rpartition("}")[2] for one in root][:2] == ["title", "desc"]
    assert root.get("role") == "img"
    (told,) = of(root, "desc")
    assert "all tasks: mean gain 19.77 %, interval 19.66 % to 19.87 %." in (told.text or "")


def test_a_better_candidates_rings_are_right_of_zero_and_its_mean_is_where_it_must_be() -> None:
    _, said = promoted()
    root = drawn(said)
    zero = next(float(one.get("x", "nan")) for one in of(root, "text") if one.text == "no difference")
    asked = next(float(one.get("x", "nan")) for one in of(root, "text") if one.text == "asked for")
    assert all(float(one.get("cx", "nan")) > asked > zero for one in of(root, "circle"))
    mean = float(re.match(r"M([\d.]+)", of(root, "path")[-1].get("d", ""))[1])  # type: ignore[index]
    assert said.mean is not None
    # The line of what is asked for (5 %) fixes the scale.
    per = (asked - zero) / 0.05129329438755058
    assert mean == pytest.approx(zero + said.mean * per, abs=0.5)
    assert gain("ratio", said.mean) == pytest.approx(0.1977, abs=1e-3)


def test_what_is_not_drawn_is_said_in_the_drawing_and_in_its_words() -> None:
    """A harmed task that came late in the alphabet was nowhere to be seen, and nothing told so."""
    tasks = [f"t{number:02d}" for number in range(43)]
    policy = GatePolicy(primary=Metric(name="seconds", direction="min"), repeats=Repeats(confirm=2, most=2))
    found = decide(policy, pairs(dict.fromkeys(tasks, (80.0, 81.0))), tasks=tasks, generation=0, look=1, salt="s")
    root = drawn(found)
    note = "3 more tasks are not drawn."
    (told,) = of(root, "desc")
    assert note in (told.text or "")
    (shown,) = [one for one in of(root, "text") if one.text == note]
    assert float(shown.get("y", "nan")) < float(root.get("viewBox", "").split()[3])
    assert "not drawn" not in plot(promoted()[1], "p")


def test_nothing_is_drawn_where_no_pair_was_compared() -> None:
    _, said = promoted()
    bare = said.model_copy(update={"rows": tuple(row.model_copy(update={"d": None}) for row in said.rows)})
    assert plot(bare, "p") == ""


def test_equal_differences_are_drawn_too() -> None:
    _, said = promoted()
    same = said.model_copy(update={"rows": tuple(row.model_copy(update={"d": 0.0}) for row in said.rows)})
    assert len(of(drawn(same), "circle")) == 12


@pytest.mark.parametrize("end", [-1e9, 0.999999999999])
def test_an_interval_without_sense_stays_within_the_drawing(end: float) -> None:
    _, said = promoted()
    tasks = tuple(one.model_copy(update={"gain_low": -1e9, "gain_high": end}) for one in said.found)
    root = drawn(said.model_copy(update={"found": tasks}))
    assert all(0 <= float(one.get("cx", "nan")) <= 720 for one in of(root, "circle"))
