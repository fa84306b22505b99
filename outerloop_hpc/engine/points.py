"""The point that an ended run adds to the history of a benchmark. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from outerloop_hpc.engine.ruler import Ruler
from outerloop_hpc.engine.spec import RunSpec
from outerloop_hpc.engine.state import RunState
from outerloop_hpc.measure.history import Point, Sample
from outerloop_hpc.measure.statistics import summarize

#: The kind of step whose records are measurements.
MEASURE = "measure"


def point_of(
    spec: RunSpec,
    state: RunState,
    ruler: Ruler,
    *,
    commit: str,
    tree: str,
    head: bool = False,
    picked: bool = False,
    rebased: bool = False,
) -> Point | None:
    """Return what an ended run adds to the history; ``None`` when its verdict holds no number. Deterministic.

    Only numbers of the verdict: after a person ended a run, jobs that still ran may leave records, and a document
    that is published may not change. ``commit`` with its ``tree`` is what was measured; ``head``: it was the branch's
    newest; ``picked``: a person picked the seeds; ``rebased``: a new ruler begins with it.
    """
    if state.ended is None:
        return None
    judged = state.ended.result.get("values", {})
    payloads = {
        int(step.spec.parameters["seed"]): step.payload
        for step in state.steps.values()
        if step.spec.job == MEASURE and str(step.spec.parameters["seed"]) in judged
    }
    if not payloads:
        return None
    samples = tuple(_sample(seed, payload) for seed, payload in sorted(payloads.items()))
    summary = summarize([sample.value for sample in samples])
    runtimes = sorted({payload.get("runtime", "") for payload in payloads.values()})
    return Point(
        run=spec.run,
        target=spec.target,
        benchmark=ruler.benchmark,
        metric=ruler.metric,
        direction=ruler.direction,
        commit=commit,
        tree=tree,
        at=state.ended.at,
        samples=samples,
        median=summary.median,
        minimum=summary.minimum,
        maximum=summary.maximum,
        min_delta=ruler.min_delta,
        min_delta_rel=ruler.min_delta_rel,
        display_digits=ruler.display_digits,
        image=spec.image.path,
        image_sha256=spec.image.sha256,
        runtime=",".join(runtimes),
        head=head,
        picked=picked,
        rebased=rebased,
    )


def _sample(seed: int, payload: Mapping[str, Any]) -> Sample:
    return Sample(
        seed=seed,
        value=payload["value"],
        node=payload.get("node", ""),
        cpu_model=payload.get("cpu_model", ""),
        seconds=payload.get("seconds", 0.0),
    )
