"""Benchmarks that misbehave, as jobs of a real Slurm: each run ends with a clear outcome and reason."""

from __future__ import annotations

from outerloop_hpc.engine import events as ev
from tests.slurm.project import Project, outcomes_of

_HOW = ("garbage", "nan", "two_lines", "ten_megabytes", "exit_1", "later")
_EVALUATE = """\
import json, sys
how = sys.argv[1]
print(json.dumps({"score": 1.5}) if how == "two_lines" else "warming up", flush=True)
if how == "garbage":
    sys.stdout.buffer.write(bytes(range(256)) * 40)
elif how == "nan":
    print('{"score": NaN}')
elif how == "two_lines":
    print(json.dumps({"score": 2.5}))
elif how == "ten_megabytes":
    for number in range(10_000):
        print(f"{number:06d} " + 1016 * "x")
    print(json.dumps({"score": 3.5}))
elif how == "exit_1":
    print("could not load the data", file=sys.stderr)
    sys.exit(1)
elif how == "later":
    print("licence server is away", file=sys.stderr)
    sys.exit(75)
"""
#: Ending, value of the only seed, tries, and a part of the reason that a person reads.
_EXPECTED: dict[str, tuple[str, float | None, list[str | None], str]] = {
    "garbage": ("failed", None, ["done"], "score"),
    "nan": ("failed", None, ["done"], "finite"),
    "two_lines": ("measured", 2.5, ["done"], "1 of 1 seeds"),
    "ten_megabytes": ("measured", 3.5, ["done"], "1 of 1 seeds"),
    "exit_1": ("failed", None, ["done"], "could not load the data"),
    "later": ("failed", None, ["lost", "lost", "lost"], "licence server is away"),
}


def test_each_ends_with_a_clear_outcome_and_reason(project: Project) -> None:
    named = [
        f"  - {{name: {how}, command: python3 evaluate.py {how}, metric: score, direction: max, eval_minutes: 2}}"
        for how in _HOW
    ]
    contract = "\n".join(["benchmarks:", *named, "scope: {allowed: [solver.py]}", "steward: {allowed: [evaluate.py]}"])
    project.make({".outerloop.yaml": contract + "\n", "evaluate.py": _EVALUATE, "solver.py": ""})
    runs = {how: project.bench(7, benchmark=how) for how in _HOW}
    states = dict(zip(runs, project.settle(*runs.values()), strict=True))
    for how, (ending, value, tries, reason) in _EXPECTED.items():
        state = states[how]
        assert state.ended is not None
        assert (how, state.ended.ending, outcomes_of(state)) == (how, ending, [tries])
        assert state.ended.result["values"] == ({} if value is None else {"7": value}), how
        assert reason in state.ended.reason, (how, state.ended.reason)
        assert reason in project.cluster.read(f"{project.run_folder(runs[how])}/report.md")
    (flood,) = states["ten_megabytes"].submissions
    log = f"{project.run_folder(runs['ten_megabytes'])}/tries/{flood}/e0000.log"
    assert int(project.cluster.check(["stat", "-c", "%s", log])) < 9 * 2**20


def test_an_unreadable_journal_file_blocks_its_own_run_only(project: Project) -> None:
    project.make()
    broken, sound = project.bench(1), project.bench(2)
    project.wait_patients(2)
    path = f"{project.run_folder(broken)}/journal/00000002.json"
    kept = project.cluster.read(path)
    project.cluster.check(["rm", "-f", f"{project.run_folder(broken)}/snapshot.json"], user="alice")
    project.cluster.write(path, '{"schema": "transaction/1", "seq": ', user="alice")
    project.release(2)
    project.settle(sound, statuses=(0, 4))
    finished = project.tool("reconcile")
    assert finished.status == 4
    assert path in finished.stderr
    (row,) = [row for row in project.rows("runs", "list") if row["run"] == broken]
    assert row["phase"] == "faulty"
    project.cluster.write(path, kept, user="alice")
    (state,) = project.settle(broken)
    assert outcomes_of(state) == [["done"]]
    assert len(project.events(broken, ev.SubmissionIntended)) == 1
