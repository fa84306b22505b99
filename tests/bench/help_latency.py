"""How long ``--help`` takes, beside importing submitit in the same run."""

from __future__ import annotations

from functools import partial

from tests.bench.figure import Figure, beside
from tests.bench.processes import seconds
from tests.bench.samples import in_turn

_ROUNDS = 15
_GOAL = "ratio ≤ 1.5"
_PEER = "python -c 'import submitit'"
_CLI = ("-m", "outerloop_hpc.cli.main")


def measure() -> list[Figure]:
    """Measure the main help and a subcommand's: to convert options, typer imports pydantic before any command."""
    taken = in_turn(
        {
            "help": partial(seconds, (*_CLI, "--help")),
            "submitit": partial(seconds, ("-c", "import submitit")),
            "subcommand": partial(seconds, (*_CLI, "bench", "run", "--help")),
        },
        _ROUNDS,
    )
    return [
        beside("help_latency", "s", taken["help"], _PEER, taken["submitit"], goal=_GOAL),
        beside("help_latency.bench_run", "s", taken["subcommand"], _PEER, taken["submitit"]),
    ]
