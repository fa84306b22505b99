"""How long rows are waited for: from the end of the job, and from when accounting was last silent."""

from __future__ import annotations

from pathlib import Path

import pytest

from outerloop_hpc import fsio
from outerloop_hpc.engine import silence, watch
from outerloop_hpc.engine.events import TryEnded
from outerloop_hpc.engine.evidence import Index
from outerloop_hpc.engine.layout import Layout
from outerloop_hpc.engine.watch import LiveRun
from outerloop_hpc.slurm.port import Answer, Availability, Observation
from tests.unit.engine.made import POLICY, T0, Table, Told, after, step
from tests.unit.engine.test_journal import journal

pytestmark = pytest.mark.unit

LONG = POLICY.archive_wait_s + 1


def index(accounting: Availability) -> Index:
    return Index.of(Observation(Answer(Availability.ANSWERED), Answer(accounting)))


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    fsio.make_folder(tmp_path / "tick")
    return Layout(tmp_path)


def ended(root: Path) -> LiveRun:
    table = Table(Told((step(),)))
    (name,) = table.start()
    table.say(TryEnded(step="measure-1", try_number=1, outcome="done", rule="record.final", reason="measured"))
    return LiveRun(journal(root), table.state, asked=frozenset({name}))


def test_an_outage_longer_than_the_wait_costs_no_rows_when_accounting_is_just_back(tmp_path: Path) -> None:
    """It answers, for some seconds without the jobs that ended meanwhile: they were archived as never measured."""
    run, back = ended(tmp_path), {"slurm": index(Availability.ANSWERED)}
    policies = {"slurm": POLICY}
    silent = {"slurm": after(LONG - 5)}
    assert watch.gather(run, back, after(LONG), policies, silent).archivable == {}
    given_up = watch.gather(run, back, after(2 * LONG), policies, silent).archivable
    assert [note for note in given_up.values() if "no complete rows" in note]
    assert watch.gather(run, back, after(LONG), policies).archivable == given_up


@pytest.mark.parametrize("first", ["a", "b"])
def test_rows_of_an_array_are_waited_for_from_the_end_of_its_last_element(tmp_path: Path, first: str) -> None:
    """It counted from any of them: rows that were seconds late were archived as never measured, for good."""
    table = Table(Told((step("a"), step("b"))))
    (name,) = table.start()
    back, policies = {"slurm": index(Availability.ANSWERED)}, {"slurm": POLICY}
    for key in sorted("ab", key=lambda one: one != first):
        run = LiveRun(journal(tmp_path / key), table.state, asked=frozenset({name}))
        assert watch.gather(run, back, table.now, policies).archivable == {}
        table.say(TryEnded(step=key, try_number=1, outcome="done", rule="record.final", reason="measured"))
        table.wait(LONG)
    run = LiveRun(journal(tmp_path / "later"), table.state, asked=frozenset({name}))
    assert watch.gather(run, back, after(LONG + 5), policies).archivable == {}
    assert list(watch.gather(run, back, after(2 * LONG), policies).archivable) == [name]


def test_a_cluster_that_never_answers_keeps_no_run_open_for_ever(tmp_path: Path) -> None:
    run, policies, day = ended(tmp_path), {"slurm": POLICY}, 86400.0
    away = {"slurm": Index.of(Observation(Answer(Availability.UNAVAILABLE), Answer(Availability.ANSWERED)))}
    for now, notes in ((day, 0), (day + LONG, 1)):
        assert len(watch.gather(run, away, after(now), policies, {"slurm": after(now)}).archivable) == notes


def test_a_silence_is_remembered_by_later_passes(layout: Layout) -> None:
    down, up = index(Availability.UNAVAILABLE), index(Availability.ANSWERED)
    assert silence.noted(layout, {"slurm": up}, T0, write=True) == {}
    assert silence.noted(layout, {"slurm": down}, after(1), write=True) == {"slurm": after(1)}
    assert silence.noted(layout, {"slurm": down}, after(2), write=True) == {"slurm": after(2)}
    assert silence.noted(layout, {"slurm": up, "local": up}, after(9), write=True) == {"slurm": after(2)}


def test_a_dry_run_writes_no_silence(layout: Layout) -> None:
    assert silence.noted(layout, {"slurm": index(Availability.UNAVAILABLE)}, T0, write=False) == {"slurm": T0}
    assert list(layout.tick.iterdir()) == []


def test_accounting_that_is_switched_off_is_not_silent(layout: Layout) -> None:
    assert silence.noted(layout, {"slurm": index(Availability.DISABLED)}, T0, write=True) == {}


def test_an_unreadable_silence_stops_no_pass(layout: Layout) -> None:
    (layout.tick / "silent-slurm.json").write_text("{")
    assert silence.noted(layout, {"slurm": index(Availability.ANSWERED)}, T0, write=True) == {}


def test_a_silent_controller_is_a_silence_of_what_accounting_hears(layout: Layout) -> None:
    """Its rows of jobs that end meanwhile stay as they were, and were archived as if nothing more would come."""
    away = Index.of(Observation(Answer(Availability.UNAVAILABLE), Answer(Availability.ANSWERED)))
    assert silence.noted(layout, {"slurm": away}, after(3), write=True) == {"slurm": after(3)}
    assert silence.noted(layout, {"slurm": index(Availability.ANSWERED)}, after(9), write=True) == {"slurm": after(3)}
