"""When a scheduler is asked again: not just after it was, and ever later while it does not answer."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from outerloop_hpc import fsio
from outerloop_hpc.engine.patience import LONGEST_PAUSE_S, Asked, Patience, Silent
from outerloop_hpc.errors import TryLater
from outerloop_hpc.process import Finished
from outerloop_hpc.slurm.breaker import ACCOUNTING, Breaker, controller
from outerloop_hpc.slurm.port import (
    Answer,
    Availability,
    Bound,
    JobRef,
    Observation,
    Resources,
    SubmissionWithheld,
    Work,
)
from tests.unit.engine.made import T0, after

pytestmark = pytest.mark.unit

CONTROLLER = controller("")
REF = JobRef("run-1", "ann", "7", "", T0)
WORK = Work("run-1", "os.path:basename", ("a",), Path("/nowhere"), Resources(minutes=1))


@dataclass
class Clock:
    """A clock that tests set."""

    at: datetime = T0

    def now(self) -> datetime:
        return self.at

    def steady(self) -> float:
        return 0.0

    def sleep(self, seconds: float) -> None:
        raise AssertionError(f"patience does not wait {seconds} s itself")


@dataclass
class Cluster:
    """A scheduler that is asked by one command for each daemon; those in ``away`` hang."""

    breaker: Breaker = field(init=False)
    away: set[str] = field(default_factory=set)
    asked: list[str] = field(default_factory=list)
    name: str = "slurm"
    user: str = "ann"

    def __post_init__(self) -> None:
        self.breaker = Breaker(self._run)

    def _run(self, argv: Sequence[str], **_: object) -> Finished:
        self.asked.append(argv[0])
        hangs = (ACCOUNTING if argv[0] == "sacct" else CONTROLLER) in self.away
        return Finished(tuple(argv), None if hangs else 0, "", "", timed_out=hangs, seconds=0)

    def _answer(self, program: str) -> Availability:
        done = self.breaker([program], timeout=1)
        return Availability.ANSWERED if done.ok else Availability.UNAVAILABLE

    def observe(self, _: Sequence[JobRef]) -> Observation:
        return Observation(Answer(self._answer("squeue")), Answer(self._answer("sacct")), 2)

    def submit(self, _: Work) -> Bound:
        self.breaker(["sbatch"], timeout=1)
        return Bound("7", "", array=False)

    def cancel(self, _: Sequence[JobRef]) -> None:
        self.breaker(["scancel"], timeout=1)


@dataclass
class Site:
    """One state folder, one cluster, and a clock; each pass looks once."""

    path: Path
    cluster: Cluster = field(default_factory=Cluster)
    clock: Clock = field(default_factory=Clock)
    chance: random.Random = field(default_factory=lambda: random.Random(7))

    def patience(self, **more: float) -> Patience:
        return Patience(self.cluster, self.cluster.breaker, self.path, self.clock, self.chance, **more)  # type: ignore[arg-type] # only figures are given

    def look(
        self, *, asks_anyway: bool = False, insists: bool = False, whole: bool = True, **more: float
    ) -> tuple[Observation, list[str]]:
        """Make a pass of its own process; returns what it saw and what it says at its end."""
        patience = self.patience(**more)
        patience.begin(asks_anyway=asks_anyway, insists=insists, whole=whole)
        seen = patience.observe([REF])
        return seen, patience.end()

    def commands(self) -> list[str]:
        """Commands that were started since this was asked last."""
        found, self.cluster.asked = self.cluster.asked, []
        return found

    def document(self) -> Asked:
        return Asked.model_validate_json(self.path.read_bytes())


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path / "tick" / "patience-slurm.json")


# --- the minimum interval -------------------------------------------------------------------------------------------


def test_a_pass_just_after_another_asks_nobody_and_says_when_it_may(site: Site) -> None:
    site.look()
    assert site.commands() == ["squeue", "sacct"]
    site.clock.at = after(4)
    seen, said = site.look()
    assert site.commands() == []
    assert (seen.spared_s, seen.calls, said) == (6, 0, [])
    assert {seen.queue.availability, seen.accounting.availability} == {Availability.UNAVAILABLE}
    site.clock.at = after(10)
    assert site.look()[0].queue.availability is Availability.ANSWERED


def test_a_pass_just_after_another_submits_and_cancels_as_ever(site: Site) -> None:
    site.look()
    site.commands()
    patience = site.patience()
    patience.begin(asks_anyway=False, insists=False)
    assert patience.observe([REF]).spared_s == 10
    assert (patience.held(), patience.submit(WORK).job_id) == ("", "7")
    patience.cancel([REF])
    assert site.commands() == ["sbatch", "scancel"]


def test_a_pass_that_insists_asks_and_counts_for_the_others(site: Site) -> None:
    site.look()
    site.clock.at = after(4)
    assert site.look(insists=True)[0].calls == 2
    site.clock.at = after(12)
    assert site.look()[0].spared_s == 2


def test_whoever_follows_single_runs_keeps_no_whole_pass_from_asking(site: Site) -> None:
    """A follower that asks every few seconds would otherwise be the only one that ever asks."""
    for seconds in range(0, 40, 8):
        site.clock.at = after(seconds)
        site.look(whole=False, insists=True)
        site.clock.at = after(seconds + 1)
        seen, _ = site.look()
        asked = seconds % 16 == 0
        assert (seen.calls == 2, bool(seen.spared_s)) == (asked, not asked), seconds


def test_whoever_follows_single_runs_heeds_everybody(site: Site) -> None:
    site.look()
    site.clock.at = after(4)
    assert site.look(whole=False)[0].spared_s == 6


def test_without_an_interval_every_pass_asks_and_nothing_is_written(site: Site) -> None:
    for _ in range(2):
        assert site.look(interval_s=0)[0].calls == 2
    assert not site.path.exists()


# --- the back-off ---------------------------------------------------------------------------------------------------


def test_pauses_double_up_to_ten_minutes_and_chance_takes_up_to_half_of_each(site: Site) -> None:
    site.cluster.away = {CONTROLLER}
    pauses = []
    for number in range(12):
        _, said = site.look()
        silent = site.document().silent[CONTROLLER]
        assert (silent.failures, silent.at) == (number + 1, site.clock.at)
        pauses.append((silent.again_at - silent.at).total_seconds())
        assert f"nor by others before {silent.again_at:%Y-%m-%dT%H:%M:%SZ}" in said[0]
        site.clock.at = silent.again_at + timedelta(seconds=10)
    longest = [min(10.0 * 2**number, LONGEST_PAUSE_S) for number in range(12)]
    assert all(most / 2 <= pause <= most for pause, most in zip(pauses, longest, strict=True))
    assert len({pause / most for pause, most in zip(pauses, longest, strict=True)}) == 12, "nothing left to chance"


def test_during_a_pause_the_controller_gets_no_command_and_one_answer_ends_it(site: Site) -> None:
    site.cluster.away = {CONTROLLER}
    site.look()
    site.commands()
    patience = site.patience(interval_s=0)
    patience.begin(asks_anyway=False, insists=False)
    again = site.document().silent[CONTROLLER].again_at
    assert patience.backing_off[CONTROLLER].endswith(f"it is asked again after {again:%Y-%m-%dT%H:%M:%SZ}")
    assert patience.observe([REF]).queue.availability is Availability.UNAVAILABLE
    patience.cancel([REF])
    with pytest.raises(SubmissionWithheld, match="sbatch was not started: slurmctld did not answer, 1 times in a row"):
        patience.submit(WORK)
    assert patience.end() == []
    assert site.commands() == ["sacct"], "slurmdbd is another daemon"
    assert site.document().silent[CONTROLLER].failures == 1, "not asked is no failure"

    site.clock.at, site.cluster.away = again, set()
    assert site.look(interval_s=0)[0].queue.availability is Availability.ANSWERED
    assert site.document().silent == {}


def test_a_pause_of_accounting_holds_no_launch(site: Site) -> None:
    site.cluster.away = {ACCOUNTING}
    site.look()
    site.commands()
    site.clock.at = after(4)
    patience = site.patience(interval_s=0)
    patience.begin(asks_anyway=False, insists=False)
    seen = patience.observe([REF])
    assert (seen.queue.availability, seen.accounting.availability) == (Availability.ANSWERED, Availability.UNAVAILABLE)
    assert (patience.held(), patience.submit(WORK).job_id) == ("", "7")
    assert site.commands() == ["squeue", "sbatch"]


def test_who_asks_because_a_person_wants_to_know_heeds_no_pause_and_leaves_no_trace(site: Site) -> None:
    site.cluster.away = {CONTROLLER}
    site.look()
    before = site.path.read_bytes()
    site.commands()
    assert site.look(asks_anyway=True)[1] == [
        "slurmctld: squeue: did not answer in time; not asked again in this pass",
    ]
    assert site.commands() == ["squeue", "sacct"]
    assert site.path.read_bytes() == before
    assert site.look(asks_anyway=True, interval_s=0)[0].calls == 2


def test_without_a_pause_the_next_pass_asks_again(site: Site) -> None:
    site.cluster.away = {CONTROLLER}
    for _ in range(2):
        site.look(pause_s=0, interval_s=0)
    assert site.commands() == ["squeue", "sacct"] * 2
    assert not site.path.exists()


# --- the document ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong",
    [
        b"{",
        b'{"schema": "patience/2"}',
        Asked(asked_at=after(3600)).encoded(),
        Asked(silent={CONTROLLER: Silent(failures=1, at=after(3600), again_at=after(3700))}).encoded(),
        Asked(silent={CONTROLLER: Silent(failures=1, at=T0, again_at=after(86400))}).encoded(),
    ],
)
def test_what_is_unreadable_or_from_the_future_stops_no_question(
    site: Site, wrong: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    fsio.make_folder(site.path.parent)
    site.path.write_bytes(wrong)
    assert site.look()[0].queue.availability is Availability.ANSWERED
    assert "it only says how long to wait" in caplog.text
    assert site.document() == Asked(asked_at=T0, whole_at=T0)


def test_a_document_that_cannot_be_written_stops_no_pass(
    site: Site, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object, **__: object) -> None:
        raise TryLater("disk full")

    monkeypatch.setattr(fsio, "replace", full)
    site.cluster.away = {CONTROLLER}
    seen, said = site.look()
    assert (seen.queue.availability, len(said)) == (Availability.UNAVAILABLE, 1)
    assert "cannot be written: disk full" in caplog.text


def test_two_passes_at_once_lose_nothing_but_an_estimate(site: Site) -> None:
    """Both see the outage; then one sees its end while another, begun before, still reports it."""
    first, second = Site(site.path), Site(site.path)
    passes = [one.patience() for one in (first, second)]
    for one, patience in zip((first, second), passes, strict=True):
        one.cluster.away = {CONTROLLER}
        patience.begin(asks_anyway=False, insists=False)
    for patience in passes:
        assert patience.observe([REF]).queue.availability is Availability.UNAVAILABLE
    assert all(patience.end() for patience in passes)
    assert site.document().silent[CONTROLLER].failures == 2
    assert site.document().asked_at == T0

    late = first.patience()
    first.clock.at = second.clock.at = after(60)
    late.begin(asks_anyway=False, insists=False)
    second.cluster.away = set()
    assert second.look()[0].queue.availability is Availability.ANSWERED
    assert late.observe([REF]).queue.availability is Availability.UNAVAILABLE
    late.end()
    assert site.document().silent[CONTROLLER].failures == 1
    assert [path.name for path in site.path.parent.iterdir()] == [site.path.name]
