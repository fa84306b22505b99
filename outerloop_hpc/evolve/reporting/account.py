"""An account of a sweep for people: why it ended, what was proposed, measured, decided and used. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta

from outerloop_hpc.engine.kind import view_of
from outerloop_hpc.engine.spec import RunSpec, stamp
from outerloop_hpc.engine.state import RunState
from outerloop_hpc.evolve import pilot
from outerloop_hpc.evolve.course import confirming_key, screening_key
from outerloop_hpc.evolve.gate.decision import GateDecision
from outerloop_hpc.evolve.gate.differences import shown
from outerloop_hpc.evolve.gate.evidence import Row
from outerloop_hpc.evolve.gate.screening import Screened
from outerloop_hpc.evolve.generation import Generation, generations
from outerloop_hpc.evolve.promotion import PROMOTED, binding
from outerloop_hpc.evolve.reporting import gatetables
from outerloop_hpc.evolve.reporting.section import Section, Table
from outerloop_hpc.evolve.reporting.spending import ArmSpent, Spent, arm_spending, spending
from outerloop_hpc.evolve.work import EvolveWork, work_of

_UNMEASURED = "not measured"
_NEXT: Mapping[str, str] = {
    PROMOTED: "The candidate is better by the rule of this sweep. Look at it, then apply it with the command below.",
    "kept": "The incumbent stays: no gain was shown. How small a gain could have been seen is said below.",
    "insufficient": "Nothing was decided. Mend what is named above, or plan more pairs, and submit the sweep again.",
    "harness broken": "The incumbent is known to work, so the tasks, their commands or the image are broken. "
    "Replay one of its cells, mend the cause and submit the sweep again.",
    "proposer gave up": "The proposer brought no candidate several times in a row; its reasons are below.",
    "exhausted": "The proposer has no more ideas. The incumbent stays.",
    "out of budget": "The incumbent stays. What was measured so far is below; a larger budget needs a new sweep.",
    "past deadline": "The incumbent stays. What was measured so far is below.",
    "halted": "Something is not what was frozen at submission. Find out who changed it before you measure again.",
    "piloted": "Nothing was proposed: the incumbent was measured beside itself.",
}
#: Candidates of a generation whose screening pairs are listed.
_SCREENED = 8
#: Files of a candidate that are named.
_FILES = 8
_CONFIRMED = "Pairs that were confirmed; where the difference is above 0, the candidate is better"
_TOGETHER = "one array holds cells of both arms, and accounting is added up by arrays"


def account(spec: RunSpec, state: RunState) -> tuple[Section, ...]:
    """Return all parts of the report, in their order."""
    work = work_of(spec)
    past = generations(work, view_of(lambda: spec, state, spec.made_at))
    found = [_verdict(work, state, past)]
    for one in past:
        found += _generation(one)
    if (lost := gatetables.missing(_stages(past))) is not None:
        found.append(Section("Missing", tables=(lost,)))
    return (*found, _spend(state), _bound(spec, work, state), _again(spec, state, past))


# --- the verdict ----------------------------------------------------------------------------------------------------


def _verdict(work: EvolveWork, state: RunState, past: Sequence[Generation]) -> Section:
    primary = work.gate.primary
    scale, way = primary.scale, {"min": "smaller", "max": "larger"}[primary.direction]
    tasks = "one task" if len(work.tasks) == 1 else f"{len(work.tasks)} tasks"
    rule = f"by {work.gate.kind} with a level of {work.gate.level:g} for the whole sweep"
    least = shown(scale, primary.min_effect)
    lines = [
        f"{primary.name} should become {way}: a gain of at least {least} is asked for, over {tasks}, {rule}.",
        *_outcome(work, state),
        f"What the plan can see: {_power(work, state, past)}.",
    ]
    return Section(f"Sweep {work.name}", tuple(lines))


def _outcome(work: EvolveWork, state: RunState) -> Iterator[str]:
    ended = state.ended
    if ended is None:
        yield f"It is {state.phase}; nothing below is a verdict yet."
        return
    if ended.ending == PROMOTED:
        gain = gatetables.gained(work.gate.primary.scale, ended.result.get("gain"))
        overlay, number = ended.result.get("overlay"), ended.result.get("generation")
        yield f"Promoted is overlay {overlay} of generation {number}, with an estimated gain of {gain}."
    yield _NEXT.get(ended.ending, "The sweep was ended before it had a verdict. The incumbent stays.")


def _power(work: EvolveWork, state: RunState, past: Sequence[Generation]) -> str:
    if (known := state.conclusions.get(pilot.KEY)) is not None:
        return pilot.told(known, work.gate)
    looks = [look.power for one in past for look in one.decisions if look.power is not None]
    return looks[-1].text if looks else "not known, since no look had enough pairs"


# --- generations ----------------------------------------------------------------------------------------------------


def _generation(one: Generation) -> Iterator[Section]:
    refused = tuple(f"Refused: {reason}" for reason in one.refusals())
    more = ("The proposer had no more ideas.",) if one.found.exhausted else ()
    cost = (f"Proposing cost {one.found.money:.2f} by its own account.",) if one.found.money else ()
    yield Section(f"Generation {one.number}", (*refused, *more, *cost), _candidates(one))
    if one.screened is not None:
        tables = (gatetables.screening(one.screened), *_screened(one.screened))
        lines = (f"{one.screened.decision}: {one.screened.reason}", _document(screening_key(one.number)))
        yield Section(f"Screening of generation {one.number}", lines, tables, deep=True)
    for decision in one.decisions:
        yield _look(one, decision, last=decision is one.decisions[-1])


def _screened(found: Screened) -> Iterator[Table]:
    """Yield the pairs of each candidate, the chosen one first."""
    ordered = sorted(found.candidates, key=lambda one: one.digest != found.chosen)
    for known in ordered[:_SCREENED]:
        caption = f"Pairs of {known.digest[:12]} in screening, which never enter a decision"
        yield gatetables.pairs(found.policy, known.rows, caption)


def _candidates(one: Generation) -> tuple[Table, ...]:
    rows = [
        (
            known.digest,
            known.origin,
            ", ".join(f"{name} = {value}" for name, value in known.values.items()) or "none",
            _few(known.files),
            str(known.bytes),
        )
        for known in one.found.candidates
    ]
    return (Table("Candidates", ("digest", "from", "values", "files", "bytes"), tuple(rows)),) if rows else ()


def _few(files: Sequence[str]) -> str:
    more = len(files) - _FILES
    return ", ".join(files[:_FILES]) + (f" and {more} more" if more > 0 else "")


def _look(one: Generation, found: GateDecision, *, last: bool) -> Section:
    success = found.success
    lines = [f"{found.decision}: {reason}" for reason in found.reasons] + [f"Note: {note}" for note in found.notes]
    lines.append(
        f"Gain {gatetables.gained(found.policy.primary.scale, found.gain)}, interval {gatetables.interval(found)} at "
        f"{100 * (1 - found.policy.level):g} %; p {gatetables.number(found.p)}, level {gatetables.number(found.level)}."
    )
    if success is not None and success.pairs:
        bound = "" if success.bound is None else f"; the difference of the rates is at least {success.bound:.4g}"
        lines.append(
            f"Of {success.pairs} pairs the incumbent solved {success.incumbent_solved} and the candidate "
            f"{success.candidate_solved}; {success.won} only the candidate, {success.lost} only the incumbent{bound}."
        )
    lines.append(_document(confirming_key(one.number, found.look)))
    tables = [gatetables.tasks(found)] if found.found else []
    tables += [gatetables.guardrails(found)] if found.guardrails else []
    # The pairs of an earlier look are among those of a later one.
    tables += [gatetables.pairs(found.policy, found.rows, _CONFIRMED)] if last else []
    title = f"Confirmation of {one.chosen[:12]}, look {found.look} of {found.looks}"
    return Section(title, tuple(lines), tuple(tables), plot=found, deep=True)


def _document(key: str) -> str:
    return f"All of it, every pair included, is in the document {key}.json."


def _stages(past: Sequence[Generation]) -> Iterator[tuple[str, Sequence[Row]]]:
    for one in past:
        for known in one.screened.candidates if one.screened else ():
            yield f"screening of {known.digest[:12]}, generation {one.number}", known.rows
        for decision in one.decisions[-1:]:
            yield f"confirmation, generation {one.number}", decision.rows


# --- spend, digests, commands ---------------------------------------------------------------------------------------


def _spend(state: RunState) -> Section:
    jobs, arms = spending(state), arm_spending(state)
    lines = [f"Where both arms are named, {_TOGETHER}."] if any(" and " in one.arms for one in jobs) else []
    columns = ("stage", "arms", "submissions", "CPU hours", "GPU hours")
    tables = [Table("What jobs held, by accounting, all tries together", columns, tuple(map(_spent, jobs)))]
    columns = ("stage", "arm", "executions", "CPU seconds", "seconds")
    tables.append(Table("What the commands took, by the cells' own records", columns, tuple(map(_arm, arms))))
    return Section("Spend", tuple(lines), tuple(table for table in tables if table.rows))


def _spent(one: Spent) -> tuple[str, ...]:
    return one.stage, one.arms or "none", str(one.submissions), _hours(one, one.cpu_s), _hours(one, one.gpu_s)


def _hours(one: Spent, seconds: float | None) -> str:
    if seconds is None:
        return _UNMEASURED
    said = f"{seconds / 3600:.4g}"
    return f"{said}, and {one.unmeasured} of {one.submissions} {_UNMEASURED}" if one.unmeasured else said


def _arm(one: ArmSpent) -> tuple[str, ...]:
    taken = (_UNMEASURED if value is None else f"{value:.4g}" for value in (one.cpu_s, one.seconds))
    return one.stage, one.arm, str(one.executions), *taken


def _bound(spec: RunSpec, work: EvolveWork, state: RunState) -> Section:
    ended = state.ended
    promoted = ended is not None and ended.ending == PROMOTED
    bound = binding(spec, work, str(ended.result.get("overlay", "")) if ended and promoted else "")
    rows = [
        ("sweep", bound.document),
        ("overlay", bound.overlay or "none was promoted"),
        ("target", f"{bound.target} at {bound.commit}"),
        ("image", bound.image.sha256 or "none"),
        ("policy", bound.policy),
        *((f"task {name}", digest) for name, digest in bound.tasks.items()),
        *((f"hidden checks of {name}", digest) for name, digest in bound.oracles.items()),
        *((f"base of {path}", digest) for path, digest in bound.base.items()),
    ]
    lines = ["With another digest of any of these, what was decided here says nothing."]
    if ended is not None and promoted:
        until = stamp(ended.at + timedelta(days=work.expires_days))
        lines.append(f"It may be applied until {until}, {work.expires_days} days after it was decided.")
    more = len(rows) - gatetables.MOST_ROWS
    note = f"{more} more are in spec.json." if more > 0 else ""
    table = Table("Digests", ("what", "digest"), tuple(rows[: gatetables.MOST_ROWS]), note)
    return Section("What the evidence is bound to", tuple(lines), (table,))


def _again(spec: RunSpec, state: RunState, past: Sequence[Generation]) -> Section:
    cells = [row.pair.candidate.cell for _, rows in _stages(past) for row in rows if row.pair.candidate.cell]
    commands = [f"outerloop-hpc evolve replay {spec.run} {cells[-1] if cells else 'CELL'}"]
    commands.append(f"outerloop-hpc evolve gate {spec.run} --recompute")
    if state.ended is not None and state.ended.ending == PROMOTED:
        commands.append(f"outerloop-hpc evolve apply {spec.run}")
    lines = (
        "Measure a cell again on this machine (any id of the columns cells and cell will do), and decide again:",
        f"Documents are in results/evolve/{spec.target}/{spec.run} of the state folder.",
    )
    return Section("Again", lines, commands=tuple(commands))
