"""What an ended benchmark run adds to the history. Pure."""

from __future__ import annotations

from outerloop_hpc.benchmark.work import work_of
from outerloop_hpc.engine.spec import RunSpec
from outerloop_hpc.engine.state import RunState
from outerloop_hpc.measure.history import Point, Sample
from outerloop_hpc.measure.statistics import summarize


def point_of(spec: RunSpec, state: RunState) -> Point | None:
    """Return what an ended run adds to the history; ``None`` when its verdict holds no number. Deterministic.

    Only numbers of the verdict: after a person ended a run, jobs that still ran may leave records, and a document
    that is published may not change.
    """
    if state.ended is None:
        return None
    work = work_of(spec)
    judged = state.ended.result.get("values", {})
    payloads = {
        step.spec.parameters["seed"]: step.payload
        for step in state.steps.values()
        if str(step.spec.parameters["seed"]) in judged
    }
    samples = tuple(
        Sample(
            seed=seed,
            value=payload["value"],
            node=payload.get("node", ""),
            cpu_model=payload.get("cpu_model", ""),
            seconds=payload.get("seconds", 0.0),
        )
        for seed, payload in sorted(payloads.items())
    )
    if not samples:
        return None
    summary = summarize([sample.value for sample in samples])
    runtimes = sorted({payload.get("runtime", "") for payload in payloads.values()})
    return Point(
        run=spec.run,
        target=spec.target,
        benchmark=work.benchmark,
        metric=work.metric,
        direction=work.direction,
        commit=spec.commit,
        tree=work.tree,
        at=state.ended.at,
        samples=samples,
        median=summary.median,
        minimum=summary.minimum,
        maximum=summary.maximum,
        min_delta=work.min_delta,
        min_delta_rel=work.min_delta_rel,
        display_digits=work.display_digits,
        image=spec.image.path,
        image_sha256=spec.image.sha256,
        runtime=",".join(runtimes),
        head=work.head,
        picked=work.picked,
    )
