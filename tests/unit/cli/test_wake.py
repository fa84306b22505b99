"""The wake job: with which settings it comes back for its run."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from outerloop_hpc.cli import wake, wiring
from outerloop_hpc.cli.session import Session
from outerloop_hpc.engine import runs, waking, watch
from outerloop_hpc.engine.tick import Pass
from outerloop_hpc.errors import Exit
from outerloop_hpc.slurm.port import Bound, SubmissionWithheld, Work
from tests.bench.queue import MemoryCompute
from tests.bench.statefolder import engine, spec_of

pytestmark = pytest.mark.unit

Followed = list[tuple[Session, Sequence[str]]]


class Keeping(MemoryCompute):
    """Remembers what was submitted."""

    def __init__(self) -> None:
        super().__init__()
        self.works: list[Work] = []

    def submit(self, work: Work) -> Bound:
        self.works.append(work)
        return super().submit(work)


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As under ``--export=NONE``: nothing of the pass's environment; logging as it was afterwards."""
    for name in [name for name in os.environ if name.startswith(("OUTERLOOP_", "XDG_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    logger = logging.getLogger("outerloop_hpc")
    before = (logger.level, logger.propagate, tuple(logger.handlers))
    yield
    logger.setLevel(before[0])
    logger.propagate = before[1]
    logger.handlers[:] = before[2]


@pytest.fixture
def followed(monkeypatch: pytest.MonkeyPatch) -> Followed:
    """Which runs were followed, and with which session."""
    found: Followed = []

    def follow(here: Session, run_ids: Sequence[str], *, wait_s: float) -> Exit:
        assert wait_s > 0
        found.append((here, run_ids))
        return Exit.DONE

    monkeypatch.setattr(wake, "follow", follow)
    return found


def settings(folder: Path) -> Path:
    """Write a project file outside of everything that is searched."""
    folder.mkdir()
    path = folder / "mine.toml"
    path.write_text('[slurm]\naccount = "lab"\nwake = true\n[slurm.options]\nexport = "NONE"\n', encoding="utf-8")
    return path


def submitted(root: Path, config: str) -> tuple[str, Work]:
    """Let a pass submit a run; return its id and its wake job."""
    compute = Keeping()
    spec = spec_of(0, datetime.now(UTC))
    wired = engine(root, compute)
    runs.ensure(wired.layout, spec)
    Pass(replace(wired, hands=replace(wired.hands, wake=wiring.WAKE, config=config)), launch=False).run()
    _, woken = compute.works
    return spec.run, woken


def test_a_wake_job_without_an_environment_reads_the_settings_of_the_pass(tmp_path: Path, followed: Followed) -> None:
    run, work = submitted(tmp_path / "state", str(settings(tmp_path / "project")))
    (told,) = work.arguments
    with pytest.raises(SystemExit) as left:
        wake.advance(told)
    ((here, wanted),) = followed
    assert (left.value.code, wanted) == (Exit.DONE, [run])
    assert here.settings.slurm.account == "lab"
    assert here.layout.root == tmp_path / "state"


@pytest.mark.parametrize("asked", [True, False])
def test_a_run_that_asks_for_wake_jobs_gets_them_whatever_the_settings_say(tmp_path: Path, asked: bool) -> None:
    compute, spec = Keeping(), spec_of(0, datetime.now(UTC)).model_copy(update={"wake": asked})
    wired = engine(tmp_path / "state", compute)
    runs.ensure(wired.layout, spec)
    Pass(replace(wired, hands=replace(wired.hands, wake=wiring.WAKE, wakes=False)), launch=False).run()
    assert len(compute.works) == (2 if asked else 1)


def test_what_a_wake_job_is_told_is_private_and_goes_with_its_folder(tmp_path: Path) -> None:
    _, work = submitted(tmp_path / "state", "/p/outerloop.toml")
    (told,) = map(Path, work.arguments)
    assert told.parent == work.folder
    assert told.stat().st_mode & 0o077 == 0
    assert work.folder.stat().st_mode & 0o077 == 0


def test_a_pass_hands_its_project_file_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    (tmp_path / "state").mkdir()
    path = settings(tmp_path / "project")
    monkeypatch.chdir(path.parent)
    here = Session(config=Path(path.name), state=tmp_path / "state")
    assert (here.engine.hands.config, here.engine.hands.wake) == (str(path), wiring.WAKE)
    (tmp_path / "bare").mkdir()
    monkeypatch.chdir(tmp_path / "bare")
    assert not Session(state=tmp_path / "state").engine.hands.config


def test_a_wake_job_of_before_an_upgrade_still_moves_its_run_on(tmp_path: Path, followed: Followed) -> None:
    run, work = submitted(tmp_path / "state", "")
    with pytest.raises(SystemExit):
        wake.advance(str(work.folder.parents[2]))
    ((here, wanted),) = followed
    assert (here.state, wanted) == (tmp_path / "state", [run])


def test_a_wake_job_of_a_run_that_was_closed_meanwhile_ends_well(tmp_path: Path, followed: Followed) -> None:
    with pytest.raises(SystemExit) as left:
        wake.advance(str(tmp_path / "gone" / "wake.json"))
    assert (left.value.code, followed) == (Exit.DONE, [])


# --- further ones ---------------------------------------------------------------------------------------------------


def woken(
    root: Path, monkeypatch: pytest.MonkeyPatch, status: Exit, *, asked: bool = True, elsewhere: bool = False
) -> tuple[Keeping, Path]:
    """Submit a run and let its wake job end with this status; returns the compute and what the job was given."""
    compute, spec = Keeping(), spec_of(0, datetime.now(UTC)).model_copy(update={"wake": asked})
    wired = engine(root, compute)
    runs.ensure(wired.layout, spec)
    wired = replace(wired, hands=replace(wired.hands, wake=wiring.WAKE, wakes=True))
    Pass(wired, launch=False).run()
    (told,) = compute.works[1].arguments
    compute.works.clear()
    monkeypatch.setattr(Session, "engine", wired)
    monkeypatch.setattr(wake, "follow", lambda *_, **__: status)
    monkeypatch.setattr(wake, "_submission", lambda _: "another" if elsewhere else Path(told).parents[1].name)
    with pytest.raises(SystemExit):
        wake.advance(told)
    return compute, Path(told)


def test_a_run_that_only_waits_is_woken_again_although_no_job_of_it_will_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fourth try comes eight minutes after the third was lost, and its wake job stays for five."""
    compute, told = woken(tmp_path / "state", monkeypatch, Exit.IN_PROGRESS)
    (again,) = compute.works
    assert (again.begin_in_s, again.after, again.function) == (300, None, wiring.WAKE)
    assert Path(again.arguments[0]).read_bytes() == told.read_bytes()
    with pytest.raises(SystemExit):
        wake.advance(again.arguments[0])
    third = compute.works[1]
    assert (third.begin_in_s, third.folder, len(third.name) <= 64) == (600, told.parent / "2", True)


@pytest.mark.parametrize("status", [Exit.DONE, Exit.FINDINGS, Exit.WAITS_FOR_PERSON])
def test_a_run_at_rest_is_not_woken_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: Exit) -> None:
    assert woken(tmp_path / "state", monkeypatch, status)[0].works == []


def test_a_run_is_not_woken_again_where_another_job_of_it_will_do_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert woken(tmp_path / "state", monkeypatch, Exit.IN_PROGRESS, elsewhere=True)[0].works == []


def test_a_job_whose_wake_job_was_not_taken_will_wake_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Busy(Keeping):
        def submit(self, work: Work) -> Bound:
            if self.works:
                raise SubmissionWithheld("busy")
            return super().submit(work)

    spec = spec_of(0, datetime.now(UTC)).model_copy(update={"wake": True})
    wired = engine(tmp_path / "state", Busy())
    folder = runs.ensure(wired.layout, spec)
    Pass(replace(wired, hands=replace(wired.hands, wake=wiring.WAKE)), launch=False).run()
    (name,) = watch.load(wired.layout, spec.run).state.submissions
    assert not waking.another_comes(watch.load(wired.layout, spec.run), "this one")
    (folder.submission(name) / "wake/doubtful").unlink()
    assert waking.another_comes(watch.load(wired.layout, spec.run), "this one")


def test_runs_that_did_not_ask_for_wake_jobs_leave_what_is_slow_to_the_tick(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert woken(tmp_path / "state", monkeypatch, Exit.IN_PROGRESS, asked=False)[0].works == []


def test_a_run_is_not_woken_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compute, told = woken(tmp_path / "state", monkeypatch, Exit.IN_PROGRESS)
    last = told.parent / "28" / "wake.json"
    last.parent.mkdir()
    last.write_bytes(told.read_bytes())
    compute.works.clear()
    with pytest.raises(SystemExit):
        wake.advance(str(last))
    assert compute.works == []


def test_a_run_that_was_let_go_on_and_only_waits_is_woken_without_a_tick(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it waits for may be accounting of cells that ended while it was stopped, and their wake jobs have been."""
    compute, told = woken(tmp_path / "state", monkeypatch, Exit.WAITS_FOR_PERSON)
    here, run = Session(state=tmp_path / "state"), told.parents[3].name
    wake.resumed(here, run)
    assert compute.works == []  # its job is under way, and has a wake job
    monkeypatch.setattr(waking, "another_comes", lambda *_: False)
    wake.resumed(here, run)
    wake.resumed(here, run)
    assert [(one.begin_in_s, one.folder) for one in compute.works] == [
        (300, told.parent / "1"),
        (600, told.parent / "2"),
    ]
