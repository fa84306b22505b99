"""The whole loop on real data: a benchmark that can be learnt by heart, an order to mend it, and honest numbers after.

Every step is a command that a person would type; its output is shown as it came. Leaves everything in ``build/demo``.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import benchmark
import steward
from place import contained, set_up
from stage import CHECKOUT, TARGET, Demo, DemoError, finish, fresh, say


def story(demo: Demo) -> None:
    """Tell it from beginning to end."""
    set_up(demo)
    best = saturated(demo)
    run, new = mended(demo, best)
    again(demo, new)
    conclude(demo, run)


def saturated(demo: Demo) -> float:
    """Measure two solvers on a ruler that can be learnt by heart; returns the best number."""
    say("First tick: the head was never measured, so one array of five seeds is submitted.")
    say("On a site cron ticks on; here we wait for this one run (it shows its passes on a terminal).")
    first = benchmark.measure_head(demo)
    say("Second tick: the head is the same.")
    benchmark.quiet_tick(demo)
    say("Somebody looks at the flowers that are named wrongly, and commits a solver that knows them.")
    benchmark.commit_solver(demo, benchmark.BY_HEART, "Difficult flowers")
    say("Third tick: the head has moved.")
    second = benchmark.measure_head(demo)
    say("Is it better? The same five seeds, in pairs.")
    benchmark.compare(demo, first, second, "the solver that knows the test flowers")
    say("The ledger: the best known number per benchmark, computed from the history. Nothing is left to gain.")
    row = benchmark.ledger(demo)
    demo.check((row["best"], row["best_run"]) == (1, second), "the ledger's best number is 1, by heart")
    return float(row["best"])


def mended(demo: Demo, before: float) -> tuple[str, str]:
    """Order a new ruler and get it; returns the steward's run, and the first one that was measured with it.

    Args:
        before: the best number of the ledger until then.
    """
    say("Five seeds, five times the same number: the ruler is broken, and somebody writes an order.")
    number = steward.order(demo)
    say("The first steward has its own idea of a better number.")
    steward.refused(demo, number)
    say("Another program for the role. The order has attempts left, so the next tick takes it again.")
    demo.replace("cheating", "resample", "outerloop.toml")
    run, change = steward.proposed(demo)
    say("A person agrees.")
    steward.merge(demo, change)
    say("The next tick sees the merge, starts the row of the ledger anew, and measures the new head.")
    new = benchmark.measure_head(demo)
    demo.run("orders", "list", TARGET, "--all")
    row = benchmark.ledger(demo)
    good = row["baseline"] <= row["best"] < before
    demo.check(good, f"the ledger has begun anew: it was {before:g}, it is {row['best']:.4g}")
    return run, new


def again(demo: Demo, old: str) -> None:
    """Measure an honest solver on the new ruler."""
    say("On the new ruler there is something to gain again, for a solver that has learnt and not memorised.")
    benchmark.commit_solver(demo, benchmark.HONEST, "Linear discriminants")
    newest = benchmark.measure_head(demo)
    benchmark.compare(demo, old, newest, "on the new ruler the honest solver")
    row = benchmark.ledger(demo)
    demo.check(row["best_run"] == newest, "the ledger's best number is the honest solver's")


def conclude(demo: Demo, run: str) -> None:
    """Look at everything that was kept."""
    demo.run("bench", "history", TARGET)
    history = demo.rows("bench", "history", TARGET)
    used = sorted({row["runtime"] for row in history})
    allowed = {"none"} if demo.uncontained else {"apptainer", "singularity"} if demo.image else {"bubblewrap"}
    demo.check(len(used) == 1 and set(used) <= allowed, f"the records name the containment: {', '.join(used)}")
    say("What ran and what it cost, from the archived accounting rows.")
    demo.run("report", "runs")
    demo.run("report", "jobs", "-o", "job_id,state,elapsed_s,cpu_s,cpu_efficiency,memory_used_bytes,nodes")
    say("Why it ended as it did: every decision of the steward's run, by which rule, on which evidence.")
    demo.run("explain", run)


def chosen(arguments: argparse.Namespace) -> Demo:
    """Turn the command line into a demo.

    Raises:
        DemoError: Slurm was asked for and is not here.
    """
    if arguments.slurm and shutil.which("sbatch") is None:
        raise DemoError("--slurm: sbatch is not on PATH; load your site's Slurm module")
    root = arguments.root.absolute()
    fresh(root)
    if arguments.image:
        say(f"containment: {arguments.image}, through apptainer or singularity")
        uncontained = False
    elif arguments.uncontained:
        say("containment: NONE, as asked for: benchmarks and agents see the whole machine that they run on")
        uncontained = True
    else:
        uncontained = not contained()
    return Demo(root, "slurm" if arguments.slurm else "local", arguments.image, uncontained)


def parsed(words: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="demo", description=(__doc__ or "").partition("\n")[0])
    add: Callable[..., Any] = parser.add_argument
    add("--slurm", action="store_true", help="run the jobs on the cluster whose sbatch is on PATH")
    add("--root", type=Path, default=CHECKOUT / "build" / "demo", help="where; on a cluster a folder that nodes see")
    add("--image", default="", help="Apptainer image with Python and git for benchmarks and agents")
    add("--uncontained", action="store_true", help="run benchmarks and agents without any container")
    return parser.parse_args(words)


def main(words: Sequence[str]) -> int:
    """Run the demo; exit status 0 when everything was as expected."""
    begun = time.monotonic()
    arguments = parsed(words)
    try:
        demo = chosen(arguments)
        story(demo)
    except (DemoError, subprocess.CalledProcessError) as failure:
        print(f"demo: {failure}; what there is lies in {arguments.root}", file=sys.stderr)
        return 1
    return finish(demo, time.monotonic() - begun)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
