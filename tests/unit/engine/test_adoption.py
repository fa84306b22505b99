"""Submissions whose answer was lost: adopted by what the scheduler or their own jobs say of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from outerloop_hpc import fsio
from outerloop_hpc.engine import events as ev
from outerloop_hpc.engine import watch
from outerloop_hpc.engine.evidence import Index
from outerloop_hpc.engine.journal import Journal
from outerloop_hpc.engine.layout import Layout
from outerloop_hpc.engine.plan import Unbound
from outerloop_hpc.engine.state import RunState
from outerloop_hpc.slurm.port import Answer, Availability, Observation
from tests.unit.engine.made import POLICY, RUN, T0, Table, Told, fold, intended, record, step, submission

pytestmark = pytest.mark.unit

DOWN = Observation(Answer(Availability.UNAVAILABLE), Answer(Availability.UNAVAILABLE))
NAME = submission().name


def test_a_finished_job_is_adopted_by_its_record_when_the_scheduler_has_forgotten_it(tmp_path: Path) -> None:
    """Its tries end by their record in that very pass; unadopted, its accounting would never have been asked for."""
    layout = Layout(tmp_path)
    wanted = ev.StepsWanted(steps=(step(),), reason="as told")
    state = fold(RunState(run=RUN), wanted, intended(NAME, ("measure-1", 1)))
    folder = layout.run(RUN).submission(NAME)
    fsio.make_folder(folder)
    fsio.publish(folder / "e0000.record.json", record().encoded())
    run = watch.LiveRun(Journal(layout.run(RUN)), state, asked=frozenset({NAME}))
    found = watch.gather(run, {"slurm": Index.of(DOWN)}, T0, {"slurm": POLICY})
    assert found.unbound[NAME].found == "7"


def test_an_adopted_submission_stays_on_the_cluster_that_it_was_sent_to() -> None:
    table = Table(Told((step(),)), cluster="far")
    table.plan()
    (name,) = table.state.submissions
    table.plan(unbound={name: Unbound("7", answered=True)})
    adopted = table.state.submissions[name]
    assert (adopted.status, adopted.job_id, adopted.cluster) == ("bound", "7", "far")
