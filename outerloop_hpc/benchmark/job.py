"""The body of a benchmark's measurement, inside the allocation."""

from __future__ import annotations

from outerloop_hpc.benchmark.work import work_of
from outerloop_hpc.engine import measuring
from outerloop_hpc.engine.body import Context, Result


def measure(context: Context) -> Result:
    """Measure one seed."""
    work = work_of(context.spec)
    subject = measuring.Subject(
        commit=context.spec.commit,
        tree=work.tree,
        seed=int(context.element.step.parameters["seed"]),
        cpus=work.resources.cpus,
        gpus=work.resources.gpus,
    )
    return measuring.measure(context, work, subject, work.containment)
