"""The benchmark kind's part of the story: each new head is measured once, and solvers are compared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from stage import EXAMPLES, TARGET, Demo, DemoError

SEEDS = 5
#: What a run's archive notes on a cluster without accounting storage.
NO_ACCOUNTS = "accounting is switched off here: not measured"
BY_HEART, HONEST = (EXAMPLES / "improvements" / name for name in ("iris-by-heart.py", "iris-solver.py"))


def tick(demo: Demo, kind: str) -> str:
    """Tick once and return the one run of a kind that this made.

    Raises:
        DemoError: it made none, or several.
    """
    before = demo.runs(kind)
    demo.run("tick")
    made = demo.runs(kind) - before
    if len(made) != 1:
        raise DemoError(f"the tick made {len(made)} {kind} runs, one was expected")
    return made.pop()


def measure_head(demo: Demo) -> str:
    """Tick, wait until the new head has been measured, look at it; returns the run's id."""
    run = tick(demo, "benchmark")
    demo.run("advance", run, "--wait", demo.patience, follow=True)
    demo.run("runs", "show", run)
    tries = demo.rows("runs", "show", run)
    demo.check(
        len(tries) == SEEDS and all(row["rule"] == "record.final" for row in tries),
        f"{run}: each of the five seeds was measured once, and each try was settled by its own record",
    )
    accounted(demo, run, {row["job_id"] for row in tries})
    return run


def accounted(demo: Demo, run: str, jobs: set[str]) -> None:
    """Look at what was kept of a run's accounting; a cluster may keep none, and then nothing may look measured."""
    reported = demo.rows("report", "jobs", "--run", run)
    archives = (demo.root / "state").glob(f"runs/*/{run}/accounting/*.json")
    if {json.loads(path.read_bytes())["note"] for path in archives} == {NO_ACCOUNTS}:
        blank = all(row["elapsed_s"] is None and row["cpu_s"] is None for row in reported)
        told = blank and {row["job_id"] for row in reported} == jobs
        demo.check(told, f"{run}: no accounts are kept here, and the reports say `not measured`, never 0")
        return
    measured = {row["job_id"] for row in reported if row["elapsed_s"] is not None and Path(row["source"]).is_file()}
    demo.check(measured == jobs, f"{run}: every try has its accounting rows in the run's archive")


def quiet_tick(demo: Demo) -> None:
    """Tick again: nothing has changed, so nothing may be bought."""
    before = demo.runs(), demo.submissions()
    demo.run("tick")
    demo.check(before == (demo.runs(), demo.submissions()), "a second tick on the same head launches nothing")


def commit_solver(demo: Demo, solver: Path, message: str) -> None:
    """Commit another solver, as a person would."""
    demo.copy(solver, f"{TARGET}/solver.py")
    demo.git("-C", TARGET, "commit", "--quiet", "-a", "-m", message)
    demo.git("-C", TARGET, "push", "--quiet", "origin", "main")


def compare(demo: Demo, old: str, new: str, what: str) -> None:
    """Compare two runs in pairs of equal seeds; the newer one must be better."""
    demo.run("bench", "compare", old, new)
    found = demo.rows("bench", "compare", old, new)
    demo.check([row["verdict"] for row in found] == ["better"], f"{what} gets the verdict `better`")


def ledger(demo: Demo) -> dict[str, Any]:
    """Show the ledger and return its one row."""
    demo.run("bench", "ledger", TARGET)
    document = json.loads((demo.root / "state" / "results" / TARGET / "leader.json").read_bytes())
    (row,) = document["rows"]
    return dict(row)
