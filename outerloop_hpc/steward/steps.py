"""The steps of a steward run and their keys. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from outerloop_hpc.engine.spec import RunSpec, StepSpec, step_spec
from outerloop_hpc.steward.findings import SessionFound
from outerloop_hpc.steward.work import StepAsk, StewardWork

SESSION, VALIDATE, MEASURE = "session", "validate", "measure"
_BODY = "outerloop_hpc.steward.{module}:{name}"


def session_step(spec: RunSpec, work: StewardWork) -> StepSpec:
    """Return the session: caused by the base tree."""
    return _step(spec, work.session, SESSION, f"tree {work.tree}", {})


def trial_steps(spec: RunSpec, work: StewardWork, found: SessionFound) -> tuple[StepSpec, ...]:
    """Return validation and measurements of a candidate: caused by its tree, and each in a checkout of its own."""
    cause = f"tree {found.tree}"
    subject = {"commit": found.candidate, "tree": found.tree}
    measured = (_step(spec, work.measure, MEASURE, cause, {**subject, "seed": seed}) for seed in work.seeds)
    return (_step(spec, work.validate_, VALIDATE, cause, subject), *measured)


def _step(spec: RunSpec, ask: StepAsk, job: str, cause: str, parameters: Mapping[str, Any]) -> StepSpec:
    return step_spec(
        spec,
        job=job,
        cause=cause,
        body=_BODY.format(module="session" if job == SESSION else "trial", name=job),
        resources=ask.resources,
        parameters=dict(parameters),
        max_tries=ask.max_tries,
    )
