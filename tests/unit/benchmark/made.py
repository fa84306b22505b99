"""The work of a benchmark run, made for tests."""

from __future__ import annotations

from typing import Any

from outerloop_hpc.benchmark.work import BenchmarkWork
from outerloop_hpc.engine.spec import ResourceAsk


def any_work(**more: Any) -> BenchmarkWork:
    """A benchmark of one metric; ``seeds`` must be given, anything else may."""
    given = {
        "benchmark": "accuracy",
        "command": "python evaluate.py",
        "metric": "acc",
        "direction": "max",
        "eval_minutes": 5,
        "tree": "7ree",
        "contract_digest": "d",
        "resources": ResourceAsk(minutes=10),
    }
    return BenchmarkWork(**{**given, **more})
