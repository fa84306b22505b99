"""The body of every measurement: a fresh checkout of a commit, one contained command, one number."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from outerloop_hpc.clock import SystemClock
from outerloop_hpc.engine.body import Context, Result
from outerloop_hpc.engine.enclose import Containment, enclosure
from outerloop_hpc.engine.ruler import Ruler
from outerloop_hpc.errors import ConfigError, NodeUnfit, UsageError
from outerloop_hpc.measure.measurement import Measurement, Outcome
from outerloop_hpc.measure.run import Request
from outerloop_hpc.measure.run import measure as measure_once
from outerloop_hpc.supervision.child import Limits
from outerloop_hpc.target.mirror import Mirror


@dataclass(frozen=True, slots=True)
class Subject:
    """What is measured: a commit of the target's mirror, which must have this tree, with one seed."""

    commit: str
    tree: str
    seed: int
    cpus: int = 1
    gpus: int = 0


def measure(context: Context, ruler: Ruler, subject: Subject, containment: Containment) -> Result:
    """Measure once."""
    try:
        where = enclosure(context, containment, gpus=subject.gpus)
    except NodeUnfit as error:
        return Result("infrastructure", str(error), node_unfit=True)
    except ConfigError as error:
        return Result("refused", str(error))
    checkout = context.scratch / "checkout"
    if refusal := check_out(context, subject.commit, subject.tree, checkout):
        return refusal
    request = Request(
        command=ruler.command,
        metric=ruler.metric,
        checkout=checkout,
        limits=Limits(wall_s=60.0 * ruler.eval_minutes),
        seed=subject.seed,
        seed_env=ruler.seed_env,
        cpus=subject.cpus,
        log=context.log,
    )
    found = measure_once(request, enclosure=where, clock=SystemClock(), stop=context.stop)
    return _result(ruler, subject, found)


def check_out(context: Context, commit: str, tree: str, folder: Path) -> Result | None:
    """Write a committed tree into a fresh folder; returns why the job must end when that cannot be."""
    mirror = Mirror(context.layout.mirrors / f"{context.spec.target}.git")
    try:
        found = mirror.export(commit, folder)
    except UsageError as error:
        if not mirror.has(commit):
            # The pass that wanted this step saw it there: this node looks at an old listing, or at no mount at all.
            why = f"the commit is not in the mirror as this node sees it: {error}"
            return Result("infrastructure", why, node_unfit=True)
        return Result("refused", str(error))
    if found != tree:
        return Result("refused", f"commit {commit} has tree {found}, the run was made for {tree}")
    return None


def _result(ruler: Ruler, subject: Subject, found: Measurement) -> Result:
    payload: dict[str, Any] = {
        **found.model_dump(mode="json", exclude_none=True),
        "benchmark": ruler.benchmark,
        "commit": subject.commit,
        "tree": subject.tree,
        "pid": os.getpid(),
    }
    if found.outcome is Outcome.MEASURED:
        return Result("completed", "", payload)
    if found.outcome is Outcome.INFRASTRUCTURE:
        # The runtime was seen to work here just before: what is known now is what the command said, and how it ended.
        return Result("infrastructure", found.reason, payload)
    if found.outcome is Outcome.OUT_OF_MEMORY:
        return Result("out_of_memory", found.reason, payload)
    return Result("failed", found.reason, payload)
