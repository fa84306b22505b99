"""The benchmark kind's plan: one array, an element a seed, then a verdict. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from outerloop_hpc.benchmark.work import KIND, BenchmarkWork, work_of
from outerloop_hpc.engine.kind import Ask, Decision, End, Outcome, Post, Submit, View
from outerloop_hpc.engine.plain import plain
from outerloop_hpc.engine.points import point_of
from outerloop_hpc.engine.spec import RunSpec, StepSpec, step_spec
from outerloop_hpc.engine.state import RunState
from outerloop_hpc.measure.history import Point, measured, path_of
from outerloop_hpc.measure.statistics import compare, summarize

_BODY = "outerloop_hpc.benchmark.job:measure"
_JOB = "measure"


class BenchmarkKind:
    """Measure, wait, conclude."""

    name = KIND

    def plan(self, view: View) -> tuple[Decision, ...]:
        """Say what the run needs now."""
        if not view.steps:
            work = work_of(view.spec)
            seeds = f"{len(work.seeds)} seed{'s' if len(work.seeds) > 1 else ''}"
            why = f"measure {work.benchmark} at {view.spec.commit[:12]} with {seeds}"
            return (Submit(_steps(view.spec, work), why),)
        cancelled = [outcome for outcome in view.outcomes.values() if outcome.word == "cancelled by a person"]
        if cancelled:
            return (_ask(view.spec.run, cancelled),)
        if view.under_way:
            return ()
        # All steps were wanted at once, in the order of the seeds.
        outcomes = {step.parameters["seed"]: view.outcomes[key] for key, step in view.steps.items()}
        return (_conclude(work_of(view.spec), outcomes),)

    def farewell(self, spec: RunSpec, state: RunState) -> tuple[Post, ...]:  # noqa: ARG002 - the port's
        """Nobody waits on a forge for a measurement."""
        return ()

    def report(self, spec: RunSpec, state: RunState) -> str:
        """Return the numbers of ``report.md``."""
        work = work_of(spec)
        lines = ["## Numbers", "", f"| seed | {plain(work.metric)} |", "|---:|---:|"]
        result = state.ended.result if state.ended else {}
        for seed in work.seeds:
            value = result.get("values", {}).get(str(seed))
            shown = plain(result.get("failed", {}).get(str(seed), "not measured")) if value is None else repr(value)
            lines.append(f"| {seed} | {shown} |")
        if result.get("values"):
            lines += ["", plain(_summary_line(work, result["values"]))]
            lines += _comparison_lines(work, result["values"])
        return "\n".join(lines)

    def pages(self, spec: RunSpec, state: RunState) -> Mapping[str, str]:  # noqa: ARG002 - the port's
        """The report says all."""
        return {}

    def documents(self, spec: RunSpec, state: RunState) -> Mapping[str, bytes]:
        """Return the history document; a run that measured nothing has none."""
        point = history_point(spec, state)
        return {} if point is None else {path_of(spec.target, point.benchmark, spec.run): point.encoded()}


def history_point(spec: RunSpec, state: RunState) -> Point | None:
    """Return what an ended run adds to the history; ``None`` when its verdict holds no number."""
    work = work_of(spec)
    return point_of(spec, state, work, commit=spec.commit, tree=work.tree, head=work.head, picked=work.picked)


def _steps(spec: RunSpec, work: BenchmarkWork) -> tuple[StepSpec, ...]:
    return tuple(
        step_spec(
            spec,
            job=_JOB,
            cause=f"tree {work.tree}",
            body=_BODY,
            resources=work.resources,
            parameters={"seed": seed},
            max_tries=work.max_tries,
        )
        for seed in work.seeds
    )


def _ask(run: str, cancelled: Sequence[Outcome]) -> Ask:
    which = "the measurement" if len(cancelled) == 1 else f"{len(cancelled)} measurements"
    return Ask(
        question=f"somebody cancelled {which}: `outerloop-hpc runs resume {run} --reason …` to measure again, "
        f"or `outerloop-hpc runs end {run} --reason …`",
        reason=cancelled[0].reason,
    )


def _conclude(work: BenchmarkWork, outcomes: Mapping[int, Outcome]) -> End:
    values: dict[str, float] = {}
    failed: dict[str, str] = {}
    for seed, outcome in outcomes.items():
        value = measured(outcome.record_outcome, outcome.payload)
        if value is None:
            failed[str(seed)] = outcome.reason or outcome.word
        else:
            values[str(seed)] = value
    result: dict[str, Any] = {"values": values, "failed": failed}
    if not values:
        word = "refused" if all(o.record_outcome == "refused" for o in outcomes.values()) else "failed"
        return End(word, f"no seed could be measured; the first: {next(iter(failed.values()))}", result)
    ending = "measured" if not failed else "partly measured"
    return End(ending, f"{len(values)} of {len(outcomes)} seeds measured: {_summary_line(work, values)}", result)


def _summary_line(work: BenchmarkWork, values: Mapping[str, float]) -> str:
    summary, digits = summarize(values.values()), work.display_digits
    return (
        f"{work.metric}: median {summary.median:.{digits}g}, "
        f"from {summary.minimum:.{digits}g} to {summary.maximum:.{digits}g}"
    )


def _comparison_lines(work: BenchmarkWork, values: Mapping[str, float]) -> list[str]:
    if work.earlier is None:
        return ["", "There was no earlier commit to compare with."]
    compared = compare(
        work.earlier.values,
        {int(seed): value for seed, value in values.items()},
        direction=work.direction,
        min_delta=work.min_delta,
        min_delta_rel=work.min_delta_rel,
    )
    return ["", f"Against commit `{work.earlier.commit[:12]}`: **{compared.verdict}**. {plain(compared.reason)}"]
