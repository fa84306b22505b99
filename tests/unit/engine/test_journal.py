"""The journal is the truth: any snapshot leads to the same fold, and one number is taken once."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from outerloop_hpc import fsio
from outerloop_hpc.documents import decode
from outerloop_hpc.engine import events as ev
from outerloop_hpc.engine.journal import FOLDED_BY, Journal, Overtaken
from outerloop_hpc.engine.layout import Layout
from outerloop_hpc.engine.spec import ResourceAsk
from outerloop_hpc.engine.state import RunState, Snapshot
from outerloop_hpc.errors import Fault, TryLater
from tests.unit.engine.made import ME, RUN, SPEC, T0, after, decided, fold, intended, step

pytestmark = pytest.mark.unit

A, B = "ol.iris.measure.aaaa", "ol.iris.measure.bbbb"

CHANGE_WANTED = ev.ChangeWanted(
    key="change",
    order="7",
    branch="feat/steward/x",
    onto="main",
    candidate="c" * 40,
    tree="d" * 40,
    files={"BENCHMARKS.md": "| ü |"},
    title="A fairer ruler",
    body="because",
    reason="measured",
)
#: One history in which every type of event happens.
STORY: tuple[tuple[ev.Event, ...], ...] = (
    (ev.RunStarted(spec_digest="d"), ev.StepsWanted(steps=(step("s1", memory_mb=100), step("s2")), reason="two")),
    (intended(A, ("s1", 1), ("s2", 1)), intended(B)),
    (ev.SubmissionBound(name=A, job_id="7", cluster="c"),),
    (ev.SubmissionRefused(name=B, complaint="invalid account"),),
    (ev.Sighted(host="tick1", sightings=(ev.Sighting(submission=A, index=1, absent=True, word="FAILED"),)),),
    (
        ev.TryEnded(
            step="s1",
            try_number=1,
            outcome="done",
            rule="record.final",
            reason="",
            evidence={"queue": "no row", "exit_code": [0, 0], "end": None, "nested": {"x": [1, 2.5, None, "ü"]}},
            record_outcome="completed",
            payload={"value": 0.5, "deep": {"list": [None, True]}},
        ),
        ev.TryEnded(
            step="s2",
            try_number=1,
            outcome="lost",
            rule="accounting.ended",
            reason="NODE_FAIL",
            node="n1",
            node_unfit=True,
        ),
    ),
    (intended("ol.iris.measure.cccc", ("s2", 2)),),
    (ev.SubmissionAbandoned(name="ol.iris.measure.cccc", reason="never surfaced"),),
    (ev.RunParked(question="?", reason="!", tries=(ev.Element(step="s2", try_number=2),)),),
    (decided("resume"),),
    (ev.CancelAsked(submissions=(A,), reason="no longer needed"),),
    (ev.AccountingArchived(submission=A, rows=2, note="", cpu_s=120.0, gpu_s=0.0),),
    (ev.ConclusionReached(key="gate", document={"p": 0.01, "pairs": [1]}, reason="p is 0.01"),),
    (ev.PostWanted(key="claimed", order="7", text="taken", reason="it is ours"), CHANGE_WANTED),
    (ev.PostDone(key="claimed", comment="12"),),
    (ev.ChangeBound(key="change", change="c1", commit="e" * 40, where="there"),),
    (ev.ChangeSeen(key="change", status="merged", commit="f" * 40),),
    (ev.RunEnded(ending="measured", reason="all", result={"values": {"1": 0.25}}),),
    (ev.RunClosed(),),
)


def test_a_journal_of_an_earlier_version_blames_no_node() -> None:
    told = ev.TryEnded(step="s1", try_number=1, outcome="lost", rule="record.final", reason="no scratch", node="n1")
    known = told.model_dump(exclude={"node_unfit"})
    assert TypeAdapter(ev.TryEnded).validate_python(known) == told


def journal(root: Path) -> Journal:
    folder = Layout(root).run(RUN)
    fsio.make_folder(folder.path)
    return Journal(folder)


def snapshot_of(state: RunState) -> bytes:
    return Snapshot(folded_by="x", state=state).encoded()


def tell(one: Journal, story: Sequence[Sequence[ev.Event]] = STORY) -> list[RunState]:
    states = [RunState(run=RUN)]
    for number, events in enumerate(story):
        states.append(one.commit(states[-1], events, by=ME, at=after(number), nonce=f"n{number}"))
    return states


@pytest.fixture
def told(tmp_path: Path) -> tuple[Journal, list[RunState]]:
    one = journal(tmp_path)
    return one, tell(one)


def test_the_story_has_every_type_of_event() -> None:
    union = get_args(get_args(ev.Event)[0])
    assert {type(event) for events in STORY for event in events} == set(union)


def test_what_was_committed_is_what_is_folded(told: tuple[Journal, list[RunState]]) -> None:
    one, states = told
    assert one.state() == states[-1]
    assert one.state().phase == "closed"
    assert [t.seq for t in one.transactions()] == list(range(1, len(STORY) + 1))


@pytest.mark.parametrize("point", range(len(STORY) + 1))
def test_any_snapshot_leads_to_the_same_state(told: tuple[Journal, list[RunState]], point: int) -> None:
    one, states = told
    one.save_snapshot(states[point])
    assert Journal(one.folder).state() == states[-1]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"null",
        b"\xff",
        b'{"schema":"snapshot/99","run":"x"}',
        b'{"schema":"snapshot/1","folded_by":"%s","state":{"run":"other","seq":9}}' % FOLDED_BY.encode(),
        b'{"schema":"snapshot/1","folded_by":"0.0.1","state":{"run":"%s","seq":1}}' % RUN.encode(),
    ],
    ids=["empty", "torn", "null", "not UTF-8", "newer", "of another run", "folded by another version"],
)
def test_a_snapshot_that_is_no_use_costs_time_only(told: tuple[Journal, list[RunState]], data: bytes) -> None:
    one, states = told
    one.folder.snapshot.write_bytes(data)
    assert one.state() == states[-1]


def test_a_snapshot_that_cannot_be_written_is_no_error(
    told: tuple[Journal, list[RunState]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise TryLater("full")

    one, states = told
    monkeypatch.setattr(fsio, "replace", full)
    one.save_snapshot(states[-1])
    assert not one.folder.snapshot.exists()


def test_of_two_reconcilers_the_second_is_overtaken(told: tuple[Journal, list[RunState]]) -> None:
    one, states = told
    fork = states[4]
    with pytest.raises(Overtaken, match=re.escape(RUN)):
        Journal(one.folder).commit(fork, [decided("end")], by=ME, at=T0, nonce="another")
    assert one.state() == states[-1]


def test_our_own_transaction_under_the_number_is_ours_after_a_lost_reply(tmp_path: Path) -> None:
    one = journal(tmp_path)
    first = one.commit(RunState(run=RUN), STORY[0], by=ME, at=T0, nonce="same")
    assert one.commit(RunState(run=RUN), STORY[0], by=ME, at=T0, nonce="same") == first
    with pytest.raises(Overtaken):
        one.commit(RunState(run=RUN), STORY[0], by=ME, at=T0, nonce="another")


def test_a_gap_is_a_fault_and_not_the_end_of_the_history(told: tuple[Journal, list[RunState]]) -> None:
    """A state folder restored in part: going on from the gap would do everything after it twice."""
    one, _ = told
    (one.folder.journal / "00000004.json").unlink()
    one.folder.snapshot.unlink(missing_ok=True)
    with pytest.raises(Fault, match=r"00000004\.json: is missing"):
        one.state()
    with pytest.raises(Fault, match=r"00000004\.json: is missing"):
        list(one.transactions())


def test_a_lost_end_of_the_journal_is_not_gone_on_from_by_its_snapshot(told: tuple[Journal, list[RunState]]) -> None:
    one, states = told
    one.save_snapshot(states[-1])
    lost = one.folder.journal / f"{states[-1].seq:08d}.json"
    lost.unlink()
    with pytest.raises(Fault, match=f"{lost}: is missing, and a snapshot of it is there"):
        Journal(one.folder).state()


def test_an_old_listing_of_the_journal_is_no_fault(
    told: tuple[Journal, list[RunState]], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, states = told
    one.save_snapshot(states[-1])
    listed = fsio.names(one.folder.journal)
    monkeypatch.setattr(fsio, "names", lambda _: listed[:-1])
    assert Journal(one.folder).state() == states[-1]


def test_whoever_was_asleep_learns_that_others_went_on(told: tuple[Journal, list[RunState]]) -> None:
    one, states = told
    one.still_at(states[-1])
    with pytest.raises(Overtaken):
        one.still_at(states[3])


def test_a_commit_that_finds_no_room_changes_nothing(
    told: tuple[Journal, list[RunState]], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, states = told

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(TryLater):
            one.commit(states[-1], [decided("end", "b.json")], by=ME, at=T0, nonce="n")
    assert one.state() == states[-1]


def spoil(change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    def harm(path: Path) -> None:
        path.write_bytes(change(path.read_bytes()))

    return harm


@pytest.mark.parametrize(
    ("harm", "complaint"),
    [
        (spoil(lambda _: b""), "not a readable transaction"),
        (spoil(lambda data: data[: len(data) // 2]), "not a readable transaction"),
        (spoil(lambda data: data.replace(b'"seq":3', b'"seq":4')), "says transaction 4"),
        (spoil(lambda data: data.replace(RUN.encode(), b"another-run")), "another-run"),
        (spoil(lambda data: data.replace(b'"transaction/1"', b'"transaction/2"')), "newer than this version"),
        (spoil(lambda data: data.replace(b"submission.bound", b"submission.blessed")), "not a readable transaction"),
        (spoil(lambda data: data.replace(A.encode(), b"ol.never.intended")), "does not follow"),
    ],
    ids=["empty", "torn", "wrong number", "wrong run", "newer", "unknown event", "of another history"],
)
def test_a_transaction_that_makes_no_sense_is_a_fault_that_names_its_file(
    told: tuple[Journal, list[RunState]], harm: Callable[[Path], None], complaint: str
) -> None:
    one, _ = told
    harm(one.folder.journal / "00000003.json")
    with pytest.raises(Fault, match=r"00000003\.json.*" + complaint):
        one.state()


def test_a_snapshot_behind_a_broken_transaction_does_not_hide_it(told: tuple[Journal, list[RunState]]) -> None:
    one, states = told
    one.save_snapshot(states[2])
    (one.folder.journal / "00000005.json").write_bytes(b"{")
    with pytest.raises(Fault, match="00000005"):
        one.state()


def test_a_transaction_that_cannot_be_read_is_a_fault_and_not_the_end_of_the_journal(
    told: tuple[Journal, list[RunState]], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, _ = told
    real = fsio.read

    def refuse(path: Path) -> bytes:
        if path.name == "00000004.json":
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(fsio, "read", refuse)
    with pytest.raises(Fault, match=r"00000004\.json: cannot be read: Permission denied"):
        one.state()


def test_the_specification_is_of_this_run_or_a_fault(tmp_path: Path) -> None:
    one = journal(tmp_path)
    with pytest.raises(Fault, match=r"spec\.json: is missing"):
        one.spec()
    fsio.publish(one.folder.spec, SPEC.model_copy(update={"run": "other"}).encoded())
    with pytest.raises(Fault, match="is the specification of other"):
        one.spec()
    fsio.replace(one.folder.spec, SPEC.encoded())
    assert one.spec() == SPEC
    assert one.spec().digest() == SPEC.digest()


# --- properties -----------------------------------------------------------------------------------------------------

# Payloads hold finite numbers only: a measurement refuses all others before they are written.
finite = st.floats(allow_nan=False, allow_infinity=False)
scalars = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | finite | st.text(max_size=8)
json_like = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
payloads = st.dictionaries(st.text(max_size=5), json_like, max_size=3)
words = st.text(max_size=12)
elements = st.builds(ev.Element, step=words, try_number=st.integers(1, 9))
asks = st.builds(ResourceAsk, minutes=st.integers(1, 99), memory_mb=st.none() | st.integers(1, 9999))
specs = st.builds(step, st.text(min_size=1, max_size=5), parameters=payloads)
sightings = st.builds(ev.Sighting, submission=words, index=st.integers(0, 9), absent=st.booleans(), word=words)
anything: st.SearchStrategy[ev.Event] = st.one_of(
    st.builds(ev.RunStarted, spec_digest=words),
    st.builds(ev.StepsWanted, steps=st.lists(specs, max_size=2).map(tuple), reason=words),
    st.builds(
        ev.SubmissionIntended,
        name=words,
        compute=words,
        user=words,
        elements=st.lists(elements, max_size=2).map(tuple),
        resources=asks,
        host=words,
        reason=words,
    ),
    st.builds(ev.SubmissionBound, name=words, job_id=words, adopted=st.booleans()),
    st.builds(ev.SubmissionRefused, name=words, complaint=words),
    st.builds(ev.SubmissionAbandoned, name=words, reason=words),
    st.builds(ev.Sighted, host=words, sightings=st.lists(sightings, max_size=2).map(tuple)),
    st.builds(
        ev.TryEnded,
        step=words,
        try_number=st.integers(1, 9),
        outcome=st.sampled_from(get_args(ev.TryOutcome)),
        rule=words,
        reason=words,
        evidence=payloads,
        payload=payloads,
    ),
    st.builds(ev.RunParked, question=words, reason=words, tries=st.lists(elements, max_size=2).map(tuple)),
    st.builds(ev.PersonDecided, file=words, action=st.sampled_from(get_args(ev.PersonAction)), who=words, reason=words),
    st.builds(ev.CancelAsked, submissions=st.lists(words, max_size=2).map(tuple), reason=words),
    st.builds(ev.AccountingArchived, submission=words, rows=st.integers(0, 9), note=words),
    st.builds(ev.ConclusionReached, key=words, document=payloads, reason=words),
    st.builds(ev.RunEnded, ending=words, reason=words, result=payloads),
    st.builds(ev.RunClosed),
)
_EVENT: TypeAdapter[Any] = TypeAdapter(ev.Event)


@given(anything)
def test_every_event_is_read_as_it_was_written(event: ev.Event) -> None:
    assert _EVENT.validate_json(_EVENT.dump_json(event)) == event


@given(st.lists(anything, min_size=1, max_size=3), st.datetimes(timezones=st.just(T0.tzinfo)))
def test_every_transaction_is_read_as_it_was_written(events: list[ev.Event], at: datetime) -> None:
    made = ev.Transaction(run=RUN, seq=1, nonce="n", at=at, by=ME, events=tuple(events))
    assert decode(ev.Transaction, made.encoded(), Path("x")) == made


def _coherent(numbers: list[int]) -> list[ev.Event]:
    """Turn numbers into a history that follows from itself: steps, submissions, sightings, endings, decisions."""
    story: list[ev.Event] = [ev.RunStarted(spec_digest="d"), ev.StepsWanted(steps=(step("s0"), step("s1")), reason="r")]
    outcomes = get_args(ev.TryOutcome)
    tries, open_try = [0, 0], [False, False]
    for position, number in enumerate(numbers):
        which = number % 2
        key, name = f"s{which}", f"sub-{which}-{tries[which]}"
        if not open_try[which]:
            tries[which] += 1
            open_try[which] = True
            story.append(intended(f"sub-{which}-{tries[which]}", (key, tries[which])))
        elif number % 5 == 0:
            seen = ev.Sighting(submission=name, index=0, absent=number % 3 == 0, word="FAILED")
            story.append(ev.Sighted(host=f"h{number % 3}", sightings=(seen,)))
        elif number % 5 == 1:
            story.append(ev.SubmissionBound(name=name, job_id=str(number)))
        elif number % 5 == 2:
            story.append(ev.PersonDecided(file=f"{position}", action="resume", who="w", reason="r"))
        else:
            outcome = outcomes[number % len(outcomes)]
            ended = ev.TryEnded(
                step=key, try_number=tries[which], outcome=outcome, rule="r", reason="r", payload={"v": number}
            )
            story.append(ended)
            open_try[which] = False
    return story


@settings(max_examples=50)
@given(st.lists(st.integers(0, 1000), max_size=25), st.data())
def test_the_fold_is_the_same_through_any_snapshot_and_never_changes_what_it_was_given(
    numbers: list[int], data: st.DataObject
) -> None:
    states = [RunState(run=RUN)]
    frozen = [snapshot_of(states[0])]
    story = _coherent(numbers)
    for position, event in enumerate(story):
        states.append(fold(states[-1], event, at=after(position)))
        frozen.append(snapshot_of(states[-1]))
    point = data.draw(st.integers(0, len(story)))
    resumed: RunState = decode(Snapshot, frozen[point], Path("snapshot.json")).state
    for position, event in enumerate(story[point:], point):
        resumed = fold(resumed, event, at=after(position))
    assert resumed == states[-1]
    assert [snapshot_of(state) for state in states] == frozen
