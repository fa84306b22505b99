"""The bodies that try a candidate, each in fresh checkouts that no session ever touched: validation, measurement."""

from __future__ import annotations

from pathlib import Path

from outerloop_hpc.clock import SystemClock
from outerloop_hpc.engine import measuring
from outerloop_hpc.engine.body import Context, Result
from outerloop_hpc.engine.enclose import enclosure
from outerloop_hpc.engine.ruler import Ruler, seeds_of
from outerloop_hpc.measure.command import split_command
from outerloop_hpc.measure.measurement import Outcome
from outerloop_hpc.measure.run import Request
from outerloop_hpc.measure.run import measure as measure_once
from outerloop_hpc.steward.findings import ValidationFound
from outerloop_hpc.steward.work import StewardWork, work_of
from outerloop_hpc.supervision.child import Ended, Limits, run_child, signal_name

_OUTPUT = 4_000


def measure(context: Context) -> Result:
    """Measure the candidate once, with the solver that it has and a fresh seed."""
    work, given = work_of(context.spec), context.element.step.parameters
    ask = work.measure.resources
    subject = measuring.Subject(given["commit"], given["tree"], int(given["seed"]), cpus=ask.cpus, gpus=ask.gpus)
    return measuring.measure(context, work.ruler, subject, work.measure.containment)


def validate(context: Context) -> Result:
    """Run the target's validation command, then every other benchmark once; the first that fails ends it."""
    work = work_of(context.spec)
    if work.validation and (done := _command(context, work)) is not None:
        return done
    for number, sibling in enumerate(work.siblings):
        if (done := _sibling(context, work, sibling, f"sibling-{number}")) is not None:
            return done
    checks = len(work.siblings) + bool(work.validation)
    return _said(ValidationFound(passed=True, what=f"{checks} checks"))


def _command(context: Context, work: StewardWork) -> Result | None:
    """Run the validation command; None when it passed."""
    where = enclosure(context, work.validate_.containment, gpus=work.validate_.resources.gpus)
    checkout = _checkout(context, "validation")
    launch = where.command(split_command(work.validation), {}, checkout)
    ended = run_child(
        launch.argv,
        env=launch.env,
        cwd=launch.cwd,
        limits=Limits(wall_s=60.0 * work.validation_minutes),
        log=context.log,
        clock=SystemClock(),
        stop=context.stop,
    )
    if failure := where.start_failure(ended.status, ended.stderr):
        return Result("infrastructure", failure, node_unfit=True)
    if ended.ended_by == "stop":
        return _stopped(context)
    if ended.status == 0:
        return None
    return _said(ValidationFound(passed=False, what="validation command", reason=_how(ended), output=_output(ended)))


def _sibling(context: Context, work: StewardWork, ruler: Ruler, folder: str) -> Result | None:
    """Measure another benchmark once, for whether it still can be; None when it can."""
    where = enclosure(context, work.validate_.containment, gpus=work.validate_.resources.gpus)
    request = Request(
        command=ruler.command,
        metric=ruler.metric,
        checkout=_checkout(context, folder),
        limits=Limits(wall_s=60.0 * ruler.eval_minutes),
        seed=seeds_of(1, context.spec.run, ruler.benchmark)[0],
        seed_env=ruler.seed_env,
        cpus=work.validate_.resources.cpus,
        log=context.log.with_name(f"{context.log.name}.{folder}"),
    )
    found = measure_once(request, enclosure=where, clock=SystemClock(), stop=context.stop)
    match found.outcome:
        case Outcome.MEASURED:
            return None
        case Outcome.INFRASTRUCTURE:
            return Result("infrastructure", found.reason)
        case Outcome.INTERRUPTED:
            return _stopped(context)
        case _:
            reason = f"it can no longer be measured: {found.reason}"
            return _said(ValidationFound(passed=False, what=f"benchmark {ruler.benchmark}", reason=reason))


def _stopped(context: Context) -> Result:
    return Result("infrastructure", f"the validation was stopped: {context.stop.reason}")


def _checkout(context: Context, name: str) -> Path:
    """Return a fresh checkout of the candidate."""
    given, folder = context.element.step.parameters, context.scratch / name
    measuring.check_out(context, given["commit"], given["tree"], folder)
    return folder


def _said(found: ValidationFound) -> Result:
    return Result("completed", found.reason, found.model_dump(mode="json"))


def _how(ended: Ended) -> str:
    if ended.ended_by == "limit":
        return "it did not end in time"
    if ended.status is None:
        return ended.problem or "nobody could tell how it ended"
    return (
        f"it was ended by {signal_name(ended.status)}" if ended.status < 0 else f"it ended with status {ended.status}"
    )


def _output(ended: Ended) -> str:
    return (ended.stdout[-_OUTPUT:].decode("utf-8", errors="replace") + ended.stderr[-_OUTPUT:])[-_OUTPUT:]
