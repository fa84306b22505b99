"""A session is bought once for each step, whatever becomes of its job: what was begun is not begun again."""

from __future__ import annotations

from pathlib import Path

import pytest

from outerloop_hpc import fsio
from outerloop_hpc.agents.outcome import Session
from outerloop_hpc.engine.body import Context, Stop
from outerloop_hpc.engine.layout import Layout
from outerloop_hpc.engine.records import ManifestElement
from outerloop_hpc.errors import Fault
from outerloop_hpc.steward import held
from outerloop_hpc.steward.findings import SessionFound
from outerloop_hpc.steward.session import session
from outerloop_hpc.steward.steps import session_step
from outerloop_hpc.steward.work import work_of
from tests.unit.engine.made import T0, after
from tests.unit.steward.made import found, spec

pytestmark = pytest.mark.unit


def context(root: Path, number: int = 1, *, step: str = "") -> Context:
    made, layout = spec(), Layout(root)
    folder = layout.run(made.run).submission(f"ol.iris.session.{number:04d}")
    fsio.make_folder(folder)
    wanted = session_step(made, work_of(made))
    element = ManifestElement(step=wanted.model_copy(update={"key": step or wanted.key}), try_number=number)
    return Context(made, element, layout, root / "scratch", folder / "e0000.log", Stop(), 600.0, {})


def test_nothing_is_known_of_a_session_that_nobody_began(tmp_path: Path) -> None:
    assert held.before(context(tmp_path), "node8") is None


def test_one_that_was_begun_and_left_no_end_has_failed_for_every_later_try(tmp_path: Path) -> None:
    held.begin(context(tmp_path), "node7", T0, tmp_path)
    for number in (1, 2, 3):
        earlier = held.before(context(tmp_path, number), "node8")
        assert isinstance(earlier, SessionFound)
        assert earlier.word == "failed"
        assert "node7" in earlier.reason


@pytest.mark.parametrize("word", ["changed", "no-change", "outage", "budget"])
def test_what_it_came_to_is_found_by_every_later_try(tmp_path: Path, word: str) -> None:
    one = context(tmp_path)
    held.begin(one, "node7", T0, tmp_path)
    held.keep(one, found(word))
    held.begin(context(tmp_path, 2), "node8", after(60), tmp_path)
    assert held.before(context(tmp_path, 3), "node8") == found(word)


def test_one_that_ended_is_gone_on_with_where_its_workspace_still_is(tmp_path: Path) -> None:
    one, place = context(tmp_path), tmp_path / "scratch-of-node7" / "session"
    place.mkdir(parents=True)
    held.begin(one, "node7", T0, place)
    assert isinstance(held.before(context(tmp_path, 2), "node7"), SessionFound), "nobody noted how it ended"
    said = held.end(one, T0, place, Session(word="done", report="mended"))
    later = context(tmp_path, 2)
    assert held.before(later, "node7") == said
    elsewhere = held.before(later, "node8")
    assert isinstance(elsewhere, SessionFound)
    assert elsewhere.word == "failed"
    (place / "said.json").unlink()
    gone = held.before(later, "node7")
    assert isinstance(gone, SessionFound)
    held.keep(one, found("changed"))
    assert held.before(later, "node8") == found("changed")


def test_one_whose_container_did_not_start_was_never_begun(tmp_path: Path) -> None:
    one = context(tmp_path)
    held.begin(one, "node7", T0, tmp_path)
    held.never_began(one)
    assert held.before(context(tmp_path, 2), "node8") is None


def test_sessions_of_other_steps_are_no_concern(tmp_path: Path) -> None:
    held.begin(context(tmp_path, step="session-of-another-cause"), "node7", T0, tmp_path)
    assert held.before(context(tmp_path, 2), "node8") is None


@pytest.mark.parametrize("what", ["begun", "session"])
@pytest.mark.parametrize("data", [b"", b"\xff", b'{"schema": "session-begun/9"}'])
def test_what_cannot_be_read_is_never_taken_for_nothing(tmp_path: Path, what: str, data: bytes) -> None:
    one = context(tmp_path)
    one.log.with_name(f"e0000.{what}.json").write_bytes(data)
    with pytest.raises(Fault, match=what):
        held.before(context(tmp_path, 2), "node8")


def test_a_session_that_may_have_been_paid_for_costs_an_attempt_when_no_node_can_read_it(tmp_path: Path) -> None:
    """Three tries that began nothing were a refusal: it cost nothing, and the session was bought again without end."""
    context(tmp_path).log.with_name("e0000.begun.json").touch()
    for number in (1, 2):
        with pytest.raises(Fault):
            session(context(tmp_path, number))
    last = session(context(tmp_path, 3))
    assert (last.outcome, last.payload["word"]) == ("completed", "failed")
    assert "e0000.begun.json" in last.reason


@pytest.mark.parametrize("number", [1, 2])
def test_two_executions_that_looked_at_the_same_moment_do_not_both_begin(tmp_path: Path, number: int) -> None:
    """Both had looked before the other one had begun, and each bought a session: of a job that came back, or of a
    next try while the last one's node was away."""
    one, other = context(tmp_path), context(tmp_path, number)
    assert held.before(one, "node7") is held.before(other, "node8") is None
    assert held.begin(one, "node7", T0, tmp_path) is None
    faster = held.begin(other, "node8", after(1), tmp_path)
    assert faster is not None
    assert faster.word == "failed"
