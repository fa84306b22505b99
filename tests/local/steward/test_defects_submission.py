"""What was submitted twice or lost elsewhere: unclear answers, words of Slurm, shared temp names, passes that slept."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from outerloop_hpc import fsio
from outerloop_hpc.engine import runs
from outerloop_hpc.engine.events import RunEnded, RunStarted
from outerloop_hpc.engine.journal import Overtaken
from outerloop_hpc.engine.layout import Layout, new_run_id
from outerloop_hpc.errors import Fault
from outerloop_hpc.slurm.answers import parse_submission
from outerloop_hpc.slurm.states import Life, classify
from tests.local.driver import Driver
from tests.local.site import document, environment, wait_for
from tests.local.steward.lane import MEND, NO_CHANGE, Lane
from tests.unit.engine.made import ABSENT, ME, OFF, SPEC, T0, Table, Told, decided, evidence, look, step
from tests.unit.engine.test_journal import journal

pytestmark = [pytest.mark.local, pytest.mark.timeout(600)]

_START = "command submitit.local"


@pytest.fixture
def rival(tmp_path: Path) -> Iterator[Driver]:
    """Another process for passes, beside the one of the lane."""
    with Driver(tmp_path, environment()) as running:
        yield running


def intents(lane: Lane) -> list[str]:
    return [e["name"] for e in lane.site.events(lane.stewards()[0]) if e["type"] == "submission.intended"]


def test_a_job_that_was_taken_though_nobody_heard_of_it_is_not_submitted_again(swift: Lane, rival: Driver) -> None:
    """Row 12: sbatch timed out after the controller took the job: held for not submitted, and submitted again."""
    swift.script(swift.gated(MEND))
    swift.measured()
    swift.order()
    died = rival.order("--config", str(swift.site.config), "tick", at=_START, when="after")
    assert died.status == -signal.SIGKILL
    swift.until_bought()
    for _ in range(3):
        swift.tick()
    assert len(intents(swift)) == 1
    bound = [e for e in swift.site.events(swift.stewards()[0]) if e["type"] == "submission.bound"]
    assert [e["adopted"] for e in bound] == [True]
    swift.gate().touch()
    swift.until_open()
    assert len(swift.sessions()) == 1


@pytest.mark.parametrize("asleep_at", ["its decision", "its submission"])
def test_a_pass_that_slept_since_its_decision_buys_nothing_when_it_wakes(
    swift: Lane, rival: Driver, asleep_at: str
) -> None:
    """Row 18: a suspended tick resumed after others had gone on, and still submitted."""
    swift.measured()
    order = swift.order()
    at = _START
    if asleep_at == "its decision":
        swift.site.save()
        effects = rival.order("--config", str(swift.site.config), "tick", at=_START, when="before").effects
        at = next(f"{what} {name}" for what, name in reversed(effects) if what == "publish" and "/journal/" in name)
        at = f"/journal/{at.rpartition('/')[2]}"
        swift.site.restore()
    when = "after" if asleep_at == "its decision" else "before"
    rival.send("--config", str(swift.site.config), "tick", at=at, when=when, signal="SIGSTOP", polite=False)
    wait_for(lambda: _stopped(rival.process.pid), "the pass is asleep")
    swift.site.how["polite"] = False
    swift.until_open()
    (asleep,) = _children(rival.process.pid)
    os.kill(asleep, signal.SIGCONT)
    woken = rival.answer()
    assert woken.status in {0, 75}
    if asleep_at == "its decision":
        assert ("command", "submitit.local") not in woken.effects, "it looks whether somebody went on before it submits"
    wait_for(swift.site.jobs_gone, "what the sleeper started, if anything, has left")
    swift.tick()
    assert len(swift.sessions()) == len(swift.changes()) == 1
    assert swift.markers(order) == ["claimed"]


def _children(pid: int) -> list[int]:
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _stopped(pid: int) -> bool:
    return any(Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0] == "T" for child in _children(pid))


ROW_16 = [
    ("PENDING", Life.ALIVE),
    ("SUSPENDED", Life.ALIVE),
    ("REVOKED", Life.ENDED),
    ("CANCELLED by 1000", Life.ENDED),
    ("SOMETHING_NEW", Life.UNKNOWN),
]


@pytest.mark.parametrize(("word", "life"), ROW_16)
def test_every_word_is_alive_ended_or_unknown(word: str, life: Life) -> None:
    """Row 16: REVOKED never ended."""
    assert classify(word).life is life


def test_the_cluster_of_a_submission_is_kept() -> None:
    """Row 16: ``id;cluster`` lost its cluster, and another cluster was asked about the job."""
    taken = parse_submission("4711;alpha\n")
    assert taken is not None
    assert (taken.job_id, taken.cluster) == ("4711", "alpha")


def test_each_element_of_an_array_has_its_own_end() -> None:
    """Row 16: arrays were read by their first row."""
    table = Table(Told((step("a"), step("b"))))
    (name,) = table.start()
    dead, alive = evidence(look(ABSENT, "FAILED")), evidence(look("RUNNING", "RUNNING", end=False))
    table.plan({(name, 0): dead, (name, 1): alive})
    table.wait(3_600).plan({(name, 0): dead, (name, 1): alive})
    assert (table.outcomes("a")[0], table.outcomes("b")) == ("lost", [None])


def test_without_accounting_a_run_still_ends() -> None:
    """Row 16: no accounting meant deferred for ever."""
    table = Table(Told((step("s"),)))
    table.start()
    table.plan(evidence(look(ABSENT, OFF)))
    table.wait(3_600).plan(evidence(look(ABSENT, OFF)))
    assert table.outcomes("s")[0] == "lost"


def test_rows_are_kept_when_accounting_is_purged(swift: Lane) -> None:
    """Row 16: a purge lost the verdict; the rows are archived with the run when they are first seen whole."""
    swift.script(NO_CHANGE)
    order = swift.order()
    swift.until_told(order, "claimed", "ended:answered")
    swift.settle()
    assert swift.site.local_files() == [], "what the accounting rests on is gone"
    (archived,) = (json.loads(document(path)) for path in swift.stewards()[0].glob("accounting/*.json"))
    assert "COMPLETED" in {row["State"] for row in archived["rows"]}


def test_two_hosts_with_the_same_process_id_never_share_a_temp_name(tmp_path: Path) -> None:
    """Row 17: temp names carried only the pid; of 3,000 saves 45 to 182 were lost. Threads here are such hosts."""
    path, wrong = tmp_path / "state.json", []

    def save(host: int) -> None:
        for number in range(300):
            data = f"{host}-{number};".encode() * 50
            try:
                fsio.replace(path, data)
                fsio.publish(tmp_path / f"{host}-{number}.json", data)
            except Exception as error:  # noqa: BLE001 - any is one too many
                wrong.append(repr(error))

    hosts = [threading.Thread(target=save, args=(host,)) for host in range(4)]
    for host in hosts:
        host.start()
    for host in hosts:
        host.join()
    assert wrong == []
    kept = {one.name: Counter(one.read_bytes().split(b";")).most_common(1)[0][1] for one in tmp_path.glob("*-*.json")}
    assert len(kept) == 1200
    assert set(kept.values()) == {50}


def test_what_was_read_before_an_ending_cannot_revive_the_run(tmp_path: Path) -> None:
    """Row 17: read-modify-write without a revision brought ended runs back to life."""
    one = journal(tmp_path)
    stale = one.commit(one.state(), (RunStarted(spec_digest="d"),), by=ME, at=T0, nonce="1")
    one.commit(stale, (RunEnded(ending="operator", reason="enough"),), by=ME, at=T0, nonce="2")
    with pytest.raises(Overtaken):
        one.commit(stale, (decided("resume"),), by=ME, at=T0, nonce="3")
    assert one.state().ended is not None


def test_two_runs_of_one_second_never_share_a_folder(swift: Lane) -> None:
    """Row 19: run ids had a resolution of a second, and two runs wrote into one folder."""
    at = T0 + timedelta(seconds=1)
    assert new_run_id("steward", "tiny", at, fsio.nonce()[:8]) != new_run_id("steward", "tiny", at, fsio.nonce()[:8])
    layout = Layout(swift.site.state)
    runs.ensure(layout, SPEC)
    with pytest.raises(Fault, match="another run has this id"):
        runs.ensure(layout, SPEC.model_copy(update={"cause": "another"}))
    swift.site.empty()
    swift.configure({"live": 3})
    swift.script(swift.gated(NO_CHANGE))
    orders = [swift.order(f"Order {number}") for number in range(3)]
    swift.tick()
    found = [
        json.loads((folder / "spec.json").read_bytes())["work"]["order"]["order_id"] for folder in swift.stewards()
    ]
    assert sorted(found) == orders
    swift.until_bought(3)
    swift.gate().touch()
    swift.until_told(orders[-1], "claimed", "ended:answered")
