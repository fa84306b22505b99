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
from outerloop_hpc.errors import ConfigError, NodeUnfit, TryLater, UsageError
from outerloop_hpc.measure.measurement import Measurement, Outcome
from outerloop_hpc.measure.run import Request
from outerloop_hpc.measure.run import measure as measure_once
from outerloop_hpc.supervision.child import Limits
from outerloop_hpc.target.mirror import Mirror


class NotSeenHere(TryLater, NodeUnfit):
    """A commit that the pass saw is not there for this node: it looks at an old listing, or at no mount at all."""


class OtherTree(ConfigError):  # noqa: N818 - states the finding
    """A commit holds something else than what the run was made for."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What is measured: a commit of the target's mirror, which must have this tree, with one seed."""

    commit: str
    tree: str
    seed: int
    cpus: int = 1
    gpus: int = 0


def measure(context: Context, ruler: Ruler, subject: Subject, containment: Containment) -> Result:
    """Measure once.

    Raises:
        NodeUnfit: this node lacks what is needed.
        ConfigError: what was asked for cannot be.
    """
    where = enclosure(context, containment, gpus=subject.gpus)
    checkout = context.scratch / "checkout"
    check_out(context, subject.commit, subject.tree, checkout)
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


def check_out(context: Context, commit: str, tree: str, folder: Path) -> None:
    """Write a committed tree into a fresh folder.

    Raises:
        NotSeenHere: the mirror has no such commit, as this node sees it.
        OtherTree: the commit has another tree.
        ConfigError: it cannot be written safely.
    """
    mirror = Mirror(context.layout.mirrors / f"{context.spec.target}.git")
    try:
        found = mirror.export(commit, folder)
    except UsageError as error:
        if not mirror.has(commit):
            raise NotSeenHere(f"the commit is not in the mirror as this node sees it: {error}") from error
        raise ConfigError(str(error)) from error
    if found != tree:
        raise OtherTree(f"commit {commit} has tree {found}, the run was made for {tree}")


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
