"""The body of a measurement, inside the allocation: a fresh checkout of a commit, one contained command, one number."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath
from typing import Any

from outerloop_hpc.benchmark.work import BenchmarkWork, work_of
from outerloop_hpc.clock import SystemClock
from outerloop_hpc.container.choose import choose
from outerloop_hpc.container.enclosure import Enclosure
from outerloop_hpc.container.image import ImageRef, require
from outerloop_hpc.container.runtime import NotWorkingHere, Sandbox, make_scratch
from outerloop_hpc.engine.body import Context, Result
from outerloop_hpc.errors import ConfigError, NodeUnfit, UsageError
from outerloop_hpc.measure.measurement import Measurement, Outcome
from outerloop_hpc.measure.run import Request
from outerloop_hpc.measure.run import measure as measure_once
from outerloop_hpc.supervision.child import Limits
from outerloop_hpc.target.mirror import Mirror

#: How Slurm tells a job its GPUs, and what their libraries obey.
_DEVICES = ("CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK")


def measure(context: Context) -> Result:
    """Measure one seed."""
    work = work_of(context.spec)
    try:
        enclosure = _enclosure(context, work)
    except NodeUnfit as error:
        return Result("infrastructure", str(error), node_unfit=True)
    except ConfigError as error:
        return Result("refused", str(error))
    checkout = context.scratch / "checkout"
    mirror = Mirror(context.layout.mirrors / f"{context.spec.target}.git")
    try:
        tree = mirror.export(context.spec.commit, checkout)
    except UsageError as error:
        if not mirror.has(context.spec.commit):
            # The pass that made the run saw it there: this node looks at an old listing, or at no mount at all.
            why = f"the commit is not in the mirror as this node sees it: {error}"
            return Result("infrastructure", why, node_unfit=True)
        return Result("refused", str(error))
    if tree != work.tree:
        return Result("refused", f"commit {context.spec.commit} has tree {tree}, the run was made for {work.tree}")
    request = Request(
        command=work.command,
        metric=work.metric,
        checkout=checkout,
        limits=Limits(wall_s=60.0 * work.eval_minutes),
        seed=int(context.element.step.parameters["seed"]),
        seed_env=work.seed_env,
        cpus=work.resources.cpus,
        log=context.log,
    )
    found = measure_once(request, enclosure=enclosure, clock=SystemClock(), stop=context.stop)
    return _result(context, work, found)


def _enclosure(context: Context, work: BenchmarkWork) -> Enclosure:
    image: ImageRef | None = None
    if context.spec.image.path:
        # Read whole each time, no kept sum: attributes may be stale on this node, and nothing checks after this does.
        image = require(Path(context.spec.image.path), context.spec.image.sha256)
    scratch = context.scratch / "sandbox"
    try:
        make_scratch(scratch)
    except OSError as error:
        raise NotWorkingHere(f"{scratch}: no scratch space on this node: {error.strerror}") from error
    runtime = choose(
        work.containment.runtime,
        image=image.path if image else None,
        uncontained=work.containment.uncontained,
        environ=context.environ,
        scratch=context.scratch,
    )
    sandbox = Sandbox(
        binds=(),
        workdir=PurePosixPath("/work"),
        scratch=scratch,
        env={"LANG": "C.UTF-8", **_devices(context, work)},
        network=work.containment.network,
        gpus=work.resources.gpus > 0,
    )
    return Enclosure(runtime, sandbox, image)


def _devices(context: Context, work: BenchmarkWork) -> dict[str, str]:
    """Say which GPUs are this job's: where no cgroup hides the others, every job would take the first one."""
    return {name: context.environ[name] for name in _DEVICES if work.resources.gpus and name in context.environ}


def _result(context: Context, work: BenchmarkWork, found: Measurement) -> Result:
    payload: dict[str, Any] = {
        **found.model_dump(mode="json", exclude_none=True),
        "benchmark": work.benchmark,
        "commit": context.spec.commit,
        "tree": work.tree,
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
