"""Stories for the engine: what may be seen of a run, in which order and after which waits (hypothesis strategies)."""

from __future__ import annotations

from typing import Any, get_args

from hypothesis import strategies as st

from outerloop_hpc.engine import events as ev
from outerloop_hpc.engine.evidence import Evidence
from outerloop_hpc.engine.kind import Decision, End, View
from outerloop_hpc.engine.records import RecordOutcome
from outerloop_hpc.slurm.states import TABLE, Life, classify
from tests.unit.engine.made import (
    ABSENT,
    DOWN,
    OFF,
    POLICY,
    Table,
    Told,
    claim,
    evidence,
    interrupted,
    look,
    record,
    step,
)

ODD = ("ODD_NEW_WORD", "?", "")
ENDED = [word for word, meaning in TABLE.items() if meaning.life is Life.ENDED]
FAULT = "e0000.record.json: not a readable record document"
LONGEST = POLICY.grace_s + POLICY.skew_s + 600

words = st.sampled_from([*TABLE, *ODD]) | st.text(max_size=12)
odd_words = st.sampled_from(ODD) | st.text(max_size=12).filter(lambda text: classify(text).life is Life.UNKNOWN)
queues = st.sampled_from([ABSENT, DOWN]) | words
accounts = st.sampled_from([ABSENT, DOWN, OFF]) | words
steps_of = st.lists(words, max_size=2).map(tuple)
looks = st.builds(look, queues, accounts, end=st.booleans(), steps=steps_of)
final_records = st.sampled_from(get_args(RecordOutcome)).map(lambda outcome: {"record": record(outcome)})
open_files: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [{}, {"claim": claim()}, {"claim": claim(), "begun": True}, {"claim": claim(), "interrupted": interrupted()}]
)
any_files = open_files | final_records | st.just({"claim": claim(abandoned=True)}) | st.just({"fault": FAULT})
waits = st.sampled_from([0.0, 1.0, POLICY.confirm_s, POLICY.soft_window_s, LONGEST]) | st.floats(0, 2 * LONGEST)


def seen_of(seen: Any, files: dict[str, Any]) -> Evidence:
    return evidence(seen, **files)


anything = st.builds(seen_of, looks, any_files)


def when_settled(view: View) -> tuple[Decision, ...]:
    if view.under_way:
        return ()
    return (End("over", "all settled", {"words": sorted(one.word for one in view.outcomes.values())}),)


def table(*steps: Any, then: Any = when_settled) -> Table:
    return Table(Told(steps or (step("measure-1", max_tries=1),), then))


def two_submissions() -> Table:
    """A bound array of two elements, and a submission whose answer was lost."""
    one = table(step("measure-1"), step("measure-2"), step("measure-3", minutes=20))
    one.plan()
    bound = next(s.name for s in one.state.submissions.values() if len(s.elements) == 2)
    one.say(ev.SubmissionBound(name=bound, job_id="7"))
    return one
