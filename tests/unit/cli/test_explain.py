"""What ``explain`` says of each decision: its rule, the rows with their times, and what would change it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from outerloop_hpc import fsio
from outerloop_hpc.cli.seen import seen_lines
from outerloop_hpc.engine import events as ev
from outerloop_hpc.engine.basis import LookupBasis, TryBasis
from outerloop_hpc.engine.evidence import Evidence
from outerloop_hpc.engine.journal import Journal
from outerloop_hpc.engine.layout import Layout
from outerloop_hpc.engine.runs import ensure
from outerloop_hpc.engine.state import RunState
from tests.unit.cli.shell import Cli
from tests.unit.engine.made import (
    ABSENT,
    DOWN,
    ME,
    POLICY,
    RUN,
    SPEC,
    Table,
    Told,
    after,
    claim,
    evidence,
    interrupted,
    look,
    one_try,
    record,
    step,
    submission,
)

pytestmark = pytest.mark.unit

TIMES = "submit 2026-11-29T12:00:00Z, start 2026-11-29T12:00:01Z, end 2026-11-29T12:01:00Z"
NAMED = "job 7 named ol.iris.measure.0011, submission intended at 2026-11-29T12:00:00Z, seen at 2026-11-29T12:16:40Z"


def told(seen: Evidence, *, silent: bool = False, **more: Any) -> dict[str, Any]:
    last = after(900) if silent else None
    return TryBasis(seen, one_try(**more), submission(), after(1000), last).told()


def shown(found: dict[str, Any]) -> list[str]:
    """As it comes back from a journal."""
    return list(seen_lines(json.loads(json.dumps(found))))


def test_rows_are_shown_with_their_times_and_how_long_the_queue_has_lacked_the_job() -> None:
    seen = evidence(
        look(ABSENT, "CANCELLED", uid=0, steps=("CANCELLED",), foreign=("queue: named 'x'",)),
        claim=claim(),
        interrupted=interrupted(),
        begun=True,
    )
    assert shown(told(seen, silent=True, absent_since=after(800), absent_host="tick1", absent_word="CANCELLED")) == [
        NAMED,
        "claim: job 7 on node7 at 2026-11-29T12:00:00Z",
        "interrupted: SIGTERM at 2026-11-29T12:00:00Z",
        "begun: it began what no repetition gives back",
        "queue: no row; seen to lack it since 2026-11-29T12:13:20Z, for 200 s (clock of tick1), last word CANCELLED",
        f"accounting: CANCELLED, {TIMES}, exit code 0:0, cancelled by uid 0, steps CANCELLED",
        "accounting was last silent at 2026-11-29T12:15:00Z",
        "not ours: queue: named 'x'",
    ]


def test_what_could_not_be_seen_is_said_and_not_left_out() -> None:
    assert shown(told(evidence(look(DOWN, DOWN), fault="e0000.record.json: garbage"))) == [
        NAMED,
        "unreadable: e0000.record.json: garbage",
        "queue: unavailable",
        "accounting: unavailable",
    ]
    pending = shown(told(evidence(look("PENDING", "RUNNING", end=False))))
    assert pending[1:3] == ["files: no record, no claim", "queue: PENDING, submitted unknown"]
    assert "end unknown" in pending[3]
    assert "files: no record; what else it left is not read while it runs" in shown(told(evidence(look("RUNNING"))))


def test_a_record_and_a_claim_that_was_taken_are_told_apart() -> None:
    final = shown(told(evidence(look(), record=record("failed"))))
    assert "record: failed, from 2026-11-29T12:00:00Z to 2026-11-29T12:01:00Z" in final
    taken = shown(told(evidence(look(), claim=claim(abandoned=True))))
    assert "claim: taken by a reconciler on node7 at 2026-11-29T12:00:00Z" in taken


def test_a_submission_whose_answer_was_lost_is_shown_with_what_was_asked() -> None:
    found = LookupBasis(submission(job_id="", status="intended"), after(60), None, answered=False).told()
    assert shown(found)[1:] == ["queue and accounting, asked for that name: unavailable, 60 s after the intent"]


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ({}, []),
        ({"queue": "no row"}, ["queue: no row"]),
        (
            {
                "queue": "no row",
                "accounting": "FAILED",
                "accounting_times": {"submit": 1, "start": None, "end": None},
                "exit_code": [1, 0],
                "cancelled_by": None,
                "record": {"outcome": "completed", "nonce": "n"},
                "claim": {"host": "n1", "job_id": ""},
                "interrupted": "SIGTERM",
            },
            [
                "record: completed",
                "claim: job - on n1",
                "interrupted: SIGTERM",
                "queue: no row",
                "accounting: FAILED, submit 1970-01-01T00:00:01Z, start unknown, end unknown, exit code 1:0",
            ],
        ),
        ({"queue": "no row", "weather": "rain"}, ["queue: no row", 'also: {"weather": "rain"}']),
    ],
    ids=["none", "little", "0.1", "later version"],
)
def test_evidence_in_journals_of_other_versions_is_shown(found: dict[str, Any], expected: list[str]) -> None:
    assert list(seen_lines(found)) == expected


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    layout = Layout(tmp_path / "state")
    fsio.make_folder(layout.root)
    return layout


def write(layout: Layout, *story: tuple[ev.Event, ...]) -> None:
    journal, state = Journal(ensure(layout, SPEC)), RunState(run=RUN)
    for number, events in enumerate(story):
        state = journal.commit(state, events, by=ME, at=after(number), nonce=fsio.nonce())


def parked() -> list[tuple[ev.Event, ...]]:
    """What an engine commits about a job that nobody knows."""
    one, story = Table(Told((step("measure-1"),))), []
    story.append(one.plan().events)
    (name,) = one.bind()
    story.append((ev.SubmissionBound(name=name, job_id="7"),))
    story.append(one.plan(evidence(look())).events)
    story.append(one.wait(POLICY.grace_s).plan(evidence(look(), claim=claim())).events)
    return story


def test_a_question_has_its_rule_its_evidence_and_what_would_answer_it(cli: Cli, layout: Layout) -> None:
    write(layout, *parked())
    (asked,) = [row for row in cli("explain", RUN, "--json").rows if row["event"] == "run.parked"]
    assert asked["rule"] == "nothing.anywhere"
    assert asked["needs"] == "a person's decision, or a row or record that ends these tries"
    assert asked["evidence"]["queue_lacked"]["for_s"] == POLICY.grace_s
    text = cli("explain", RUN).out
    assert "by nothing.anywhere" in text
    assert "for 3600 s (clock of tick1)" in text
    assert "claim: job 7 on node7" in text


def test_a_question_of_an_earlier_version_is_still_read(cli: Cli, layout: Layout) -> None:
    *before, (asked,) = parked()
    write(layout, *before, (ev.RunParked(question="?", reason="!", tries=asked.tries),))  # type: ignore[union-attr]
    path = layout.run(RUN).journal / "00000004.json"
    old = json.loads(path.read_bytes())
    for name in ("rule", "evidence"):
        del old["events"][0][name]
    path.write_text(json.dumps(old), encoding="utf-8")
    (row,) = [row for row in cli("explain", RUN, "--json").rows if row["event"] == "run.parked"]
    assert (row["rule"], row["evidence"]) == (None, {})
    assert "? (!)" in cli("explain", RUN).out


def test_text_of_strangers_in_evidence_cannot_drive_the_terminal(cli: Cli, layout: Layout) -> None:
    write(layout, *parked()[:2], (_lost("queue: named '\x1b[2J'"),))
    text = cli("explain", RUN).out
    assert "\x1b" not in text
    assert "\\x1b[2J" in text


def _lost(foreign: str) -> ev.TryEnded:
    found = {"queue": "no row", "not_ours": [foreign]}
    return ev.TryEnded(
        step="measure-1", try_number=1, outcome="lost", rule="accounting.ended", reason="r", evidence=found
    )


def test_every_decision_of_a_journal_says_what_would_have_changed_it(cli: Cli, layout: Layout) -> None:
    write(
        layout,
        *parked(),
        (
            ev.PersonDecided(file="f", action="end", who="bob", reason="enough", force=True),
            ev.RunEnded(ending="operator", reason="bob: enough"),
        ),
    )
    rows = [row for row in cli("explain", RUN, "--json").rows if row["rule"]]
    assert [row["rule"] for row in rows] == ["kind.submit", "submit", "nothing.anywhere", "person.end", "person.end"]
    assert all(row["needs"] for row in rows)
    assert "end, by force, by bob: enough" in cli("explain", RUN).out
