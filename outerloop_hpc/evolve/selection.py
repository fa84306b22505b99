"""What of a sweep's evidence the next proposer is given: few rows, the telling ones first, and what was left out. Pure.

Only generations before the next one speak. What machines lost says nothing about a candidate and is never a row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from outerloop_hpc.documents import Value
from outerloop_hpc.engine.kind import Outcome, View
from outerloop_hpc.evolve.cells import JOB
from outerloop_hpc.evolve.findings import ArmFound, cell_found
from outerloop_hpc.evolve.generation import Generation, generations
from outerloop_hpc.evolve.given import CellGiven, Prior, ProposeGiven, Told
from outerloop_hpc.evolve.work import AskTell, EvolveWork

MOST_ROWS = 12
#: Characters of a row's reason (its end), and of why the last proposal lost.
_REASON, _WHY = 600, 4000
#: Reasons of one decision, newest decisions, and metrics of one row.
_REASONS, _GATES, _METRICS = 3, 64, 32


class LogPlace(Value):
    """Where a cell's log is: the submission's folder, and the element's number in it."""

    submission: str
    index: int


class EvidenceRow(Value):
    """One arm's execution as a proposer reads it; ``kind`` is its task's, ``overlay`` the candidate's digest."""

    task: str
    kind: str
    arm: str
    overlay: str
    generation: int
    stage: str
    repeat: int
    seed: int
    word: str
    success: bool | None
    metrics: dict[str, float]
    seconds: float
    cpu_s: float
    reason: str
    log: LogPlace

    @property
    def solved(self) -> bool:
        """Whether it ended well with its numbers, and was not found wrong."""
        return self.word == "measured" and self.success is not False

    @property
    def cost(self) -> float:
        """CPU seconds of its commands, else seconds."""
        return self.cpu_s or self.seconds


def given(work: EvolveWork, view: View, generation: int) -> ProposeGiven:
    """Return what the proposal of a generation is given.

    Args:
        work: the sweep.
        view: of its run; everything before ``generation`` is settled.
        generation: counted from 0.
    """
    past = [one for one in generations(work, view) if one.number < generation]
    rows, left_out = _rows(work, view, generation)
    gates = [said for one in past for said in _gates(one)]
    if len(gates) > _GATES:
        left_out.append(f"{len(gates) - _GATES} earlier decisions: only the newest {_GATES} have room")
    return ProposeGiven(
        generation=generation,
        count=work.candidates,
        told=tuple(_told(past)) if isinstance(work.proposer, AskTell) else (),
        rows=tuple(one.model_dump(mode="json") for one in rows),
        gates=tuple(gates[-_GATES:]),
        prior=next((prior for one in reversed(past) if (prior := _prior(one)) is not None), Prior()),
        dropped=tuple(left_out),
    )


# --- rows -----------------------------------------------------------------------------------------------------------


def _rows(work: EvolveWork, view: View, generation: int) -> tuple[list[EvidenceRow], list[str]]:
    """Return the rows, the most telling first, and what was left out."""
    found: list[EvidenceRow] = []
    silent = crowded = 0
    for key, step in view.steps.items():
        if step.job != JOB or step.round >= generation or (outcome := view.outcomes.get(key)) is None:
            continue
        cell = CellGiven.model_validate(step.parameters)
        arms = _arms(cell, outcome)
        silent += not arms
        crowded += sum(len(arm.metrics) > _METRICS for arm in arms)
        found += [_row(work, cell, step.round, outcome, arm) for arm in arms]
    unsolved = sorted((one for one in found if not one.solved), key=_place)
    solved = sorted((one for one in found if one.solved), key=lambda one: (-one.cost, *_place(one)))
    ordered = [*unsolved, *solved]
    left_out = []
    if silent:
        left_out.append(f"{silent} cells without a result: the machines lost them, which says nothing about an overlay")
    if more := max(0, len(ordered) - MOST_ROWS):
        left_out.append(f"{more} more rows: {MOST_ROWS} have room, first what was not solved, then what took longest")
    if crowded:
        left_out.append(f"in {crowded} executions all metrics beyond {_METRICS}; the gate's own were kept")
    return ordered[:MOST_ROWS], left_out


def _place(row: EvidenceRow) -> tuple[object, ...]:
    """Order rows by task, arm and repeat; of equal ones the newest first."""
    return (row.task, row.arm, row.repeat, -row.generation, row.stage, row.overlay)


def _arms(cell: CellGiven, outcome: Outcome) -> tuple[ArmFound, ...]:
    """Return what a settled cell says of its arms; nothing where only the machines are to blame."""
    if outcome.word == "record" and outcome.record_outcome == "completed":
        found = cell_found(outcome.payload)
        return () if found is None else found.arms
    if outcome.word == "out of memory" and cell.arms == ("candidate",):
        return (ArmFound(arm="candidate", overlay=cell.overlay, word="out-of-memory", reason=outcome.reason),)
    return ()


def _row(work: EvolveWork, cell: CellGiven, generation: int, outcome: Outcome, arm: ArmFound) -> EvidenceRow:
    return EvidenceRow(
        task=cell.task,
        kind=work.task(cell.task).kind,
        arm=arm.arm,
        overlay=cell.overlay if arm.arm == "candidate" else "",
        generation=generation,
        stage=cell.stage,
        repeat=cell.repeat,
        seed=cell.seed,
        word=arm.word,
        success=arm.success,
        metrics=_metrics(work, arm.metrics),
        seconds=arm.seconds,
        cpu_s=arm.cpu_s,
        reason=arm.reason[-_REASON:],
        log=LogPlace(submission=outcome.submission, index=outcome.index),
    )


def _metrics(work: EvolveWork, metrics: Mapping[str, float]) -> dict[str, float]:
    """Return a row's numbers, those that the gate looks at first; a command may print thousands."""
    wanted = [work.gate.primary.name, *(one.name for one in work.gate.guardrails)]
    names = [*(name for name in wanted if name in metrics), *sorted(set(metrics) - set(wanted))]
    return {name: metrics[name] for name in names[:_METRICS]}


# --- decisions ------------------------------------------------------------------------------------------------------


def _gates(one: Generation) -> Iterator[dict[str, Any]]:
    """Yield a summary of each decision of a generation, and of what was refused without one."""
    if refused := one.refusals():
        yield {"generation": one.number, "stage": "propose", "decision": "refused", **_few(refused)}
    if one.screened is not None:
        said = [f"{known.digest[:12]}: {known.reason}" for known in one.screened.candidates]
        yield {
            "generation": one.number,
            "stage": "screen",
            "decision": one.screened.decision,
            "overlay": one.chosen,
            "gain": None if (best := one.best()) is None else best.gain,
            **_few([one.screened.reason, *said]),
        }
    for decision in one.decisions:
        yield {
            "generation": one.number,
            "stage": "confirm",
            "look": decision.look,
            "decision": decision.decision,
            "overlay": one.chosen,
            "gain": decision.gain,
            "gain_low": decision.gain_low,
            "gain_high": decision.gain_high,
            "p": decision.p,
            **_few(decision.reasons),
        }


def _prior(one: Generation) -> Prior | None:
    """Return a generation's proposal and why it lost; None when nothing was proposed."""
    if one.decisions:
        return Prior(digest=one.chosen, reason="; ".join(one.decisions[-1].reasons)[:_WHY])
    if (best := one.best()) is not None:
        return Prior(digest=best.digest, reason=best.reason[:_WHY])
    return Prior(reason=one.proposal.failed[:_WHY]) if one.proposal.failed else None


def _few(reasons: Sequence[str]) -> dict[str, Any]:
    more = len(reasons) - _REASONS
    return {"reasons": [one[:_REASON] for one in reasons[:_REASONS]], **({"more_reasons": more} if more > 0 else {})}


def _told(past: Sequence[Generation]) -> Iterator[Told]:
    """Yield every point of a search that was proposed, oldest first, and what it gained in screening."""
    screened = [known for one in past if one.screened for known in one.screened.candidates]
    gains = {known.digest: known.gain for known in screened}
    seen: set[str] = set()
    for one in past:
        for candidate in one.found.candidates:
            if candidate.values and candidate.digest not in seen:
                seen.add(candidate.digest)
                yield Told(values=candidate.values, gain=gains.get(candidate.digest))
        # A point that is no candidate would be refused again.
        yield from (Told(values=refused.values) for refused in one.found.refused if refused.values)
