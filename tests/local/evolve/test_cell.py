"""Cells with real processes: what each arm sees and comes to, and what is never believed or kept."""

from __future__ import annotations

import json
import shutil
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from outerloop_hpc.container.enclosure import Enclosure
from outerloop_hpc.engine.body import Result
from outerloop_hpc.engine.enclose import Containment
from outerloop_hpc.engine.spec import Image, ResourceAsk
from outerloop_hpc.evolve.bodies import arm
from outerloop_hpc.evolve.bodies.cell import cell
from outerloop_hpc.evolve.findings import ArmFound, CellFound
from outerloop_hpc.evolve.work import Oracle
from outerloop_hpc.measure.measurement import Measurement, Outcome
from outerloop_hpc.measure.run import Request, measure
from tests.local.evolve.sweep import FILES, UNCONTAINED, Sweep, carry_out, cell_given, new_sweep
from tests.local.scratch import contents

pytestmark = pytest.mark.local

BOTH = ["incumbent", "candidate"]
#: Prints all that a command can see of the arm it is.
LOOK = """\
import json, os, pathlib, solver
seen = {k: v for k, v in os.environ.items() if k.startswith(("OL_", "OMP", "OPENBLAS", "MY_SEED"))}
seen["files"] = sorted(str(p) for p in pathlib.Path().rglob("*") if p.is_file() and p.suffix != ".pyc")
seen["home"] = sorted(p.name for p in pathlib.Path.home().iterdir())
print(json.dumps(seen))
(pathlib.Path.home() / "left").write_text("x")
print(json.dumps({"score": 1, "ok": True}))
"""


def run(sweep: Sweep, **given: Any) -> Result:
    return carry_out(cell, sweep.context(cell_given(**given)))


def found(result: Result) -> CellFound:
    assert result.outcome == "completed", result
    return CellFound.model_validate(result.payload)


def one(result: Result) -> ArmFound:
    (arm_found,) = found(result).arms
    return arm_found


def bench(root: Path, text: str) -> Sweep:
    return new_sweep(root, {**FILES, "bench.py": text})


def test_the_incumbent_is_measured_and_asked_by_the_oracle(tmp_path: Path) -> None:
    whole = found(run(new_sweep(tmp_path)))
    (arm_found,) = whole.arms
    assert (arm_found.arm, arm_found.word, arm_found.success, arm_found.overlay) == ("incumbent", "measured", True, "")
    assert arm_found.metrics == {"score": 13.0}
    assert (whole.cell, whole.task, whole.seed) == ("c0ffee", "toy", 3)
    assert whole.node
    assert arm_found.seconds > 0


def test_a_pair_runs_both_arms_and_the_candidate_has_its_overlay(tmp_path: Path) -> None:
    sweep = new_sweep(tmp_path)
    digest = sweep.freeze(solver="FACTOR = 2\n")
    arms = {one.arm: one for one in found(run(sweep, arms=BOTH, overlay=digest)).arms}
    assert arms["incumbent"].metrics["score"] == 13.0
    assert (arms["candidate"].metrics["score"], arms["candidate"].overlay) == (23.0, digest)


def test_a_candidate_without_an_overlay_is_the_incumbent_again(tmp_path: Path) -> None:
    arms = found(run(new_sweep(tmp_path), arms=BOTH)).arms
    assert {one.arm for one in arms} == set(BOTH)
    assert [one.metrics["score"] for one in arms] == [13.0, 13.0]


def test_a_command_sees_its_seed_and_nothing_that_tells_its_arm(tmp_path: Path) -> None:
    sweep = bench(tmp_path, LOOK)
    sweep.task(seed_env="MY_SEED")
    context = sweep.context(cell_given(arms=BOTH, overlay=sweep.freeze(solver="FACTOR = 2\n"), repeat=4))
    assert [arm.word for arm in found(carry_out(cell, context)).arms] == ["measured", "measured"]
    log = context.log.read_text(encoding="utf-8")
    first, second = (json.loads(line) for line in log.splitlines() if line.startswith('{"OL') or '"files"' in line)
    assert first.pop("OL_RESULT").replace("part-0", "part-1") == second.pop("OL_RESULT")
    assert first == second
    assert first["files"] == ["README", "bench.py", "solver.py"]
    assert first["home"] == []
    expected = {"OL_SEED": "3", "OL_REPEAT": "4", "OL_TASK": "toy", "MY_SEED": "3", "OMP_NUM_THREADS": "1"}
    assert {name: first[name] for name in expected} == expected


def test_nothing_is_left_but_one_log_in_which_both_arms_are(tmp_path: Path) -> None:
    sweep = bench(tmp_path, 'import sys; print("so I say", file=sys.stderr); print(\'{"score": 1, "ok": true}\')')
    sweep.task(setup=((sys.executable, "-c", "print('setting up')"),))
    context = sweep.context(cell_given(arms=BOTH, overlay=sweep.freeze(solver="FACTOR = 2\n")))
    found(carry_out(cell, context))
    assert sweep.left(context) == ["e0000.log"]
    log = context.log.read_text(encoding="utf-8")
    assert log.count("setting up") == 2
    assert log.count("so I say") == 2
    assert not list(context.scratch.glob("part-*"))


def test_the_oracles_files_and_words_are_nowhere_but_in_its_own_command(tmp_path: Path) -> None:
    sweep = bench(tmp_path, "import os\nprint(sorted(os.listdir()))\n" + FILES["bench.py"])
    context = sweep.context(cell_given())
    result = carry_out(cell, context)
    assert one(result).success is True
    kept = [*contents(context.log.parent).values(), *contents(context.scratch).values()]
    assert not any(b"answer is 42" in text or b"VERDICT" in text for text in kept)
    assert "checks" not in context.log.read_text(encoding="utf-8")
    assert "answer" not in json.dumps(result.payload)


def test_only_the_oracles_command_is_given_its_files_and_none_of_its_words_reach_a_log_even_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[Request, Enclosure]] = []

    def noted(request: Request, *, enclosure: Enclosure, **more: Any) -> Measurement:
        asked.append((request, enclosure))
        return measure(request, enclosure=enclosure, **more)

    monkeypatch.setattr(arm, "measure", noted)
    sweep = new_sweep(tmp_path)
    sweep.change(containment=UNCONTAINED.model_copy(update={"network": True}))
    sweep.task(setup=(("true",),))
    assert one(run(sweep)).success is True
    (_, setting_up), (command, measured), (oracle, judging) = asked
    assert [where.sandbox.network for where in (setting_up, measured, judging)] == [True, False, False]
    assert oracle.log is None
    assert command.log is not None
    shown = Path(oracle.env["OL_ORACLE"])
    assert [bind.source for bind in judging.sandbox.binds] == [shown]
    assert not any(bind.writable for bind in judging.sandbox.binds)
    assert not any(shown.is_relative_to(bind.source) for bind in measured.sandbox.binds)
    assert judging.sandbox.scratch != measured.sandbox.scratch
    assert not shown.exists()


@pytest.mark.parametrize(("verdict", "success"), [(0, True), (1, False), (3, False)])
def test_the_oracle_has_the_last_word_by_its_exit_status(tmp_path: Path, verdict: int, success: bool) -> None:
    sweep = new_sweep(tmp_path)
    digest = sweep.freeze(solver=f"FACTOR = 2\nVERDICT = {verdict}\n")
    assert one(run(sweep, arms=["candidate"], overlay=digest)).success is success


@pytest.mark.parametrize("words", [("verify.py",), ("-B", "-m", "verify")])
def test_a_candidate_that_writes_over_the_program_that_judges_it_has_failed(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    sweep = new_sweep(tmp_path, {**FILES, "verify.py": "import sys; sys.exit(open(sys.argv[1]).read() != 'right')\n"})
    sweep.task(
        oracle=Oracle(command=(sys.executable, *words, "{oracle}/checks/hidden.py"), files=("checks/hidden.py",))
    )
    assert one(run(sweep)).success is False
    found_wrong = sweep.freeze(solver="FACTOR = 2\nopen('verify.py', 'w').write('')\n")
    arm_found = one(run(sweep, arms=["candidate"], overlay=found_wrong))
    assert (arm_found.word, arm_found.success) == ("failed", None)
    assert "changed 'verify.py', which is to judge it" in arm_found.reason


def test_what_an_oracle_reads_may_be_written_by_the_run(tmp_path: Path) -> None:
    sweep = new_sweep(tmp_path, {**FILES, "out": "old\n", "bench.py": "open('out', 'w')\n" + FILES["bench.py"]})
    sweep.task(oracle=Oracle(command=("cp", "out", "{oracle}/../copy"), files=("checks/hidden.py",)))
    assert one(run(sweep)).success is True


def test_an_oracle_that_asks_to_be_tried_later_decides_nothing(tmp_path: Path) -> None:
    sweep = new_sweep(tmp_path)
    result = run(sweep, arms=["candidate"], overlay=sweep.freeze(solver="FACTOR = 2\nVERDICT = 75\n"))
    assert result.outcome == "infrastructure"
    assert "42" not in result.reason


def test_an_oracle_that_does_not_end_says_no(tmp_path: Path) -> None:
    sweep = new_sweep(tmp_path)
    sleepy = Oracle(command=("sleep", "60"), files=("checks/hidden.py",), timeout_s=0.3)
    sweep.task(oracle=sleepy)
    assert one(run(sweep)).success is False


def test_setup_runs_on_the_base_files_of_both_arms(tmp_path: Path) -> None:
    sweep = bench(tmp_path, "print(open('copy').read())\nprint('{\"score\": 1, \"ok\": true}')\n")
    sweep.task(setup=(("cp", "solver.py", "copy"),))
    context = sweep.context(cell_given(arms=BOTH, overlay=sweep.freeze(solver="FACTOR = 2\n")))
    found(carry_out(cell, context))
    log = context.log.read_text(encoding="utf-8")
    assert log.count("FACTOR = 1") == 2
    assert "FACTOR = 2" not in log


def test_a_setup_that_fails_says_nothing_about_an_arm(tmp_path: Path) -> None:
    sweep = new_sweep(tmp_path)
    sweep.task(setup=(("true",), ("sh", "-c", "echo no compiler >&2; exit 2")))
    result = run(sweep)
    assert result.outcome == "infrastructure"
    assert "setup 2" in result.reason
    assert "no compiler" in result.reason


def test_a_setup_that_changes_an_evolved_file_stops_the_sweep(tmp_path: Path) -> None:
    sweep = new_sweep(tmp_path)
    sweep.task(setup=(("sh", "-c", "echo FACTOR = 9 > solver.py"),))
    result = run(sweep)
    assert result.outcome == "refused"
    assert "'solver.py'" in result.payload["integrity"]


@pytest.mark.parametrize(
    ("solver", "reason"),
    [
        ("raise SystemExit('it broke')", "it broke"),
        ("import time; time.sleep(60)", "did not end within 1 s"),
        ("FACTOR = float('nan')", "not finite"),
        ("import os; os.kill(os.getpid(), 11)", "SIGSEGV"),
        ("FACTOR = 2; open('solver.py', 'a').write('#')", "changed 'solver.py'"),
        ("FACTOR = 2; import os; open(os.environ['OL_RESULT'], 'w').write('[]')", "OL_RESULT is not an object"),
        ("FACTOR = 2; import os; os.symlink('/etc/passwd', os.environ['OL_RESULT'])", "OL_RESULT is not JSON"),
        ("FACTOR = 2; import os; os.mkdir(os.environ['OL_RESULT'])", "OL_RESULT is not JSON"),
    ],
    ids=["exit", "own limit", "nan", "signal", "rewrites itself", "bad file", "link", "folder"],
)
def test_what_a_candidate_does_wrong_is_its_measured_failure(tmp_path: Path, solver: str, reason: str) -> None:
    sweep = new_sweep(tmp_path)
    # Only who sleeps is to reach the limit, however late the others begin.
    sweep.task(timeout_s=1 if "sleep" in solver else 100)
    arm_found = one(run(sweep, arms=["candidate"], overlay=sweep.freeze(solver=f"{solver}\n")))
    assert (arm_found.word, arm_found.metrics, arm_found.success) == ("failed", {}, None)
    assert reason in arm_found.reason


def test_the_other_arm_of_a_failed_one_is_measured_all_the_same(tmp_path: Path) -> None:
    sweep = new_sweep(tmp_path)
    arms = found(run(sweep, arms=BOTH, overlay=sweep.freeze(solver="raise SystemExit(1)\n"))).arms
    assert {one.arm: one.word for one in arms} == {"incumbent": "measured", "candidate": "failed"}


def test_one_node_without_a_container_runtime_does_not_halt_a_sweep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A refusal of one cell of thousands ended the sweep for good, and nothing was decided on all that was measured."""
    sweep = new_sweep(tmp_path)
    sweep.change(containment=Containment())
    monkeypatch.setenv("PATH", str(tmp_path))
    result = run(sweep)
    assert (result.outcome, result.node_unfit) == ("infrastructure", True)
    assert "no container runtime" in result.reason


def test_an_image_that_is_not_the_frozen_one_halts_the_sweep(tmp_path: Path) -> None:
    context = new_sweep(tmp_path).context(cell_given())
    image = tmp_path / "image.sif"
    image.write_bytes(b"another one")
    spec = context.spec.model_copy(update={"image": Image(path=str(image), sha256="0" * 64)})
    result = carry_out(cell, replace(context, spec=spec))
    assert result.outcome == "refused"
    assert "another image" in result.reason


def test_exit_status_75_is_nobodys_failure(tmp_path: Path) -> None:
    sweep = new_sweep(tmp_path)
    result = run(sweep, arms=["candidate"], overlay=sweep.freeze(solver="raise SystemExit(75)\n"))
    assert (result.outcome, result.payload) == ("infrastructure", {})


def test_a_cell_says_which_arm_it_was_lost_with(tmp_path: Path) -> None:
    sweep = new_sweep(tmp_path)
    result = run(sweep, arms=BOTH, overlay=sweep.freeze(solver="raise SystemExit(75)\n"))
    assert (result.outcome, result.part) == ("infrastructure", "candidate")


def test_a_file_of_results_counts_more_than_what_is_printed(tmp_path: Path) -> None:
    text = (
        "import os\nopen(os.environ['OL_RESULT'], 'w').write('{\"score\": 7,\\n \"ok\": false}')\n" + FILES["bench.py"]
    )
    arm_found = one(run(bench(tmp_path, text)))
    assert (arm_found.metrics, arm_found.success) == ({"score": 7.0}, False)


def test_an_overlay_that_was_changed_after_it_was_frozen_halts_the_sweep(tmp_path: Path) -> None:
    sweep = new_sweep(tmp_path)
    digest = sweep.freeze(solver="FACTOR = 2\n")
    file = sweep.candidates / digest / "solver.py"
    file.chmod(0o600)
    file.write_text("FACTOR = 99\n", encoding="utf-8")
    result = run(sweep, arms=["candidate"], overlay=digest)
    assert result.outcome == "refused"
    assert digest[:16] in result.payload["integrity"]


def test_a_task_whose_commit_holds_another_tree_halts_the_sweep(tmp_path: Path) -> None:
    sweep = new_sweep(tmp_path)
    sweep.task(tree="0" * 40)
    result = run(sweep)
    assert result.outcome == "refused"
    assert "tree" in result.payload["integrity"]


def test_a_stop_in_the_middle_leaves_no_word_about_an_arm(tmp_path: Path) -> None:
    marker = tmp_path / "running"
    sweep = bench(tmp_path, f"import pathlib, time\npathlib.Path({str(marker)!r}).touch()\ntime.sleep(60)\n")
    context = sweep.context(cell_given())
    results: list[Result] = []
    thread = threading.Thread(target=lambda: results.append(carry_out(cell, context)))
    thread.start()
    while not marker.exists() and thread.is_alive():
        thread.join(0.05)
    context.stop.ask("SIGTERM")
    thread.join()
    assert (results[0].outcome, results[0].payload) == ("infrastructure", {})
    assert "SIGTERM" in results[0].reason


@pytest.mark.parametrize(("memory_mb", "outcome"), [(500, "out_of_memory"), (1000, "completed"), (None, "completed")])
def test_an_arm_without_memory_has_one_more_try_and_then_its_own_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, memory_mb: int | None, outcome: str
) -> None:
    def killed(request: Request, **_: object) -> Measurement:
        fixed = {"node": "n", "cpu_model": "m", "runtime": "none", "network": "off", "metric": request.metric}
        return Measurement(outcome=Outcome.OUT_OF_MEMORY, reason="killed", command=("x",), **fixed)

    monkeypatch.setattr(arm, "measure", killed)
    sweep = new_sweep(tmp_path)
    ask = ResourceAsk(minutes=5, memory_mb=memory_mb)
    result = carry_out(cell, sweep.context(cell_given(), ask=ask))
    assert result.outcome == outcome
    if outcome == "completed":
        assert one(result).word == "out-of-memory"


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed here")
def test_a_contained_cell_finds_neither_the_oracle_nor_the_mirror_nor_a_network(tmp_path: Path) -> None:
    text = f"""\
import json, os, pathlib, solver
there = [p for p in ("/outerloop/result", {str(tmp_path)!r}, "checks") if os.path.exists(p)]
links = [line.split(":")[0].strip() for line in open("/proc/self/net/dev") if ":" in line]
table = len(os.listdir("/outerloop"))
seen = {{"score": solver.FACTOR, "ok": True, "there": len(there), "links": len(links), "table": table}}
pathlib.Path(os.environ["OL_RESULT"]).write_text(json.dumps(seen))
"""
    sweep = bench(tmp_path, text)
    sweep.change(containment=Containment(runtime="bubblewrap"))
    sweep.task(
        command=("python3", "bench.py"),
        oracle=Oracle(command=("python3", "{oracle}/checks/hidden.py"), files=("checks/hidden.py",)),
    )
    digest = sweep.freeze(solver="FACTOR = 2\n")
    arms = {one.arm: one for one in found(run(sweep, arms=BOTH, overlay=digest)).arms}
    assert {one.word for one in arms.values()} == {"measured"}, arms
    assert {one.success for one in arms.values()} == {True}
    assert arms["candidate"].metrics == {"score": 2.0, "there": 1.0, "links": 1.0, "table": 1.0}
