from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from outerloop_hpc.engine import runs
from outerloop_hpc.engine.evidence import ref_of
from outerloop_hpc.engine.layout import Layout
from outerloop_hpc.engine.tick import Pass
from outerloop_hpc.engine.watch import load
from outerloop_hpc.process import run_command
from outerloop_hpc.slurm.query import SlurmQuery
from tests.bench import peer, reconcile_pass, reconcile_vs_reference, scheduler_calls
from tests.bench.job_overhead import overhead
from tests.bench.machine import cpu_model, memory_gib
from tests.bench.queue import ELEMENTS, MemoryCompute
from tests.bench.samples import Samples
from tests.bench.statefolder import StateFolder, engine
from tests.bench.stubs import make_stubs


def test_a_made_state_folder_is_what_the_engine_leaves(tmp_path: Path) -> None:
    folder = StateFolder(tmp_path / "state")
    folder.add_live(2)
    folder.add_ended(3)

    result = Pass(engine(folder.root, MemoryCompute()), launch=False).run()

    assert (result.live, result.submitted, result.closed, result.faults) == (2, 0, 0, [])
    assert [line.verdict for _, line in result.lines] == ["alive"] * 2 * ELEMENTS
    ended = [load(folder.layout, one.run_id).state for one in runs.every(folder.layout)]
    assert sorted(state.phase for state in ended) == ["closed"] * 3 + ["running"] * 2


def test_ended_runs_are_put_aside_and_back(tmp_path: Path) -> None:
    folder = StateFolder(tmp_path / "state")
    folder.add_live(1)
    folder.add_ended(2)
    folder.show_ended(0)
    assert len(list(runs.every(Layout(folder.root)))) == 1
    folder.show_ended(1)
    assert len(list(runs.every(Layout(folder.root)))) == 3


def test_the_reconcile_figures_leave_interpreter_start_out() -> None:
    taken = {"start": Samples((0.1,)), "0": Samples((0.4,)), "10000": Samples((0.5,)), "50000": Samples((0.7,))}
    taken |= {"command": Samples((0.9,)), "imports": Samples((0.3,))}
    peaks, cpu = {0: Samples((70.0,)), 50_000: Samples((80.0,))}, {0: Samples((0.3,)), 50_000: Samples((0.4,))}
    headline, *_, memory, _ = reconcile_pass.figures(taken, peaks, cpu)
    assert headline.peer is not None
    assert (headline.value, headline.peer.value, headline.peer.ratio) == pytest.approx((0.6, 0.3, 2.0))
    assert (memory.value, memory.unit) == (80.0, "MB")


@pytest.mark.parametrize(("count", "expected"), [(0, 0), (1, 2), (500, 2), (501, 3)])
def test_calls_are_counted_where_every_command_goes_through(tmp_path: Path, count: int, expected: int) -> None:
    scheduler_calls.calls(1, tmp_path / "columns")
    assert scheduler_calls.calls(count, tmp_path / "columns") == expected


def test_the_stubs_answer_what_the_product_asks(tmp_path: Path) -> None:
    run = scheduler_calls.live_run(3)
    refs = [replace(ref_of(one), elements=ELEMENTS) for one in run.state.submissions.values()]
    make_stubs(tmp_path / "bin", refs)
    environ = {"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin"}
    query = SlurmQuery(lambda argv, **more: run_command([str(tmp_path / "bin" / argv[0]), *argv[1:]], **more), environ)

    seen = query.queue(refs)
    told = query.accounting(refs)

    assert (len(seen.rows), {row.state for row in seen.rows}, seen.problems) == (3 * ELEMENTS, {"RUNNING"}, ())
    assert (len(told.rows), {row.step for row in told.rows}) == (3 * 3 * ELEMENTS, {"", "batch", "extern"})
    assert told.problems == ()


def test_overhead_leaves_out_the_commands_own_seconds() -> None:
    found = overhead(10.0, 'noise\n{"begun": 11.0}\n{"score": 1.0, "ended": 14.0}\n', 16.0)
    assert (found.to_first_line, found.beyond) == (1.0, 3.0)


def test_a_command_that_did_not_say_when_it_ended_has_no_overhead() -> None:
    with pytest.raises(KeyError):
        overhead(10.0, '{"begun": 11.0}\n', 16.0)


def test_the_machine_is_described_from_proc() -> None:
    assert cpu_model("processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\n") == "Some CPU @ 2 GHz"
    assert memory_gib("MemTotal:       2097152 kB\nMemFree: 1 kB\n") == 2.0
    assert memory_gib("") == 0.0


def test_a_sweep_asks_real_programs_about_a_prepared_folder(tmp_path: Path) -> None:
    folder = reconcile_vs_reference.prepare(tmp_path / "ours", live=3, ended=2, elements=1)
    here = peer.Here(tmp_path)
    said = reconcile_vs_reference.sweep(here, folder, 2, 3)
    assert (len(said["seconds"]), said["alive"], said["calls"]) == (2, 3, 1)
    (folder / "bin" / "squeue").write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    with pytest.raises(RuntimeError, match="other things"):
        reconcile_vs_reference.sweep(here, folder, 1, 3)


def test_the_comparison_is_of_pairs_and_its_growth_against_no_history() -> None:
    taken = {
        2500: (Samples((0.5, 0.5)), Samples((10.0, 5.0))),
        50_000: (Samples((0.6, 0.6)), Samples((24.0, 12.0))),
    }
    whole, live, growth = reconcile_vs_reference.figures("the reference", taken)
    assert whole.peer is not None
    assert live.peer is not None
    assert growth.peer is not None
    assert whole.name == "reconcile_vs_reference"
    assert whole.peer.ratio == pytest.approx((0.025 + 0.05) / 2)
    assert live.peer.ratio == pytest.approx((0.05 + 0.1) / 2)
    assert growth.peer.ratio == pytest.approx(1.2)
