"""``python -m tests.bench [--only NAME]``: a table on stdout, ``build/bench.json`` beside it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.bench import (
    cell_overhead,
    forge_calls,
    gate,
    help_latency,
    job_overhead,
    journal_commit,
    machine,
    passes,
    reconcile_pass,
    reconcile_vs_reference,
    scheduler_calls,
)
from tests.bench.figure import Figure, write
from tests.bench.processes import CHECKOUT
from tests.bench.table import render

BENCHMARKS: Mapping[str, Callable[[], list[Figure]]] = {
    "help_latency": help_latency.measure,
    "reconcile_pass": reconcile_pass.measure,
    "reconcile_vs_reference": reconcile_vs_reference.measure,
    "pass": passes.measure,
    "scheduler_calls_per_pass": scheduler_calls.measure,
    "forge_calls_per_tick": forge_calls.measure,
    "journal_commit": journal_commit.measure,
    "job_overhead": job_overhead.measure,
    "cell_overhead": cell_overhead.measure,
    "gate": gate.measure,
}


def main(arguments: Sequence[str]) -> int:
    """Run what was asked for; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description="Benchmarks of the tool itself.")
    parser.add_argument("--only", choices=BENCHMARKS, help="run one of them")
    parser.add_argument("--out", type=Path, default=CHECKOUT / "build" / "bench.json", help="where the JSON goes")
    given = parser.parse_args(arguments)
    print("\n".join(machine.describe()), end="\n\n")
    figures: list[Figure] = []
    for name in [given.only] if given.only else BENCHMARKS:
        print(f"{name} …", file=sys.stderr, flush=True)
        figures += BENCHMARKS[name]()
    print(render(figures), end="")
    write(given.out, figures)
    print(f"\n{len(figures)} figures in {given.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
