"""The evolve kind's plan: propose, screen, confirm, and end with a verdict or go on to the next generation. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from outerloop_hpc.documents import Document, kept
from outerloop_hpc.engine.kind import Ask, Cancel, Conclude, Decision, End, Hold, Outcome, Post, Submit, View
from outerloop_hpc.engine.spec import RunSpec, StepSpec, step_spec
from outerloop_hpc.engine.state import RunState
from outerloop_hpc.errors import UsageError
from outerloop_hpc.evolve import pilot, promotion, selection
from outerloop_hpc.evolve.allowance import again, allowance
from outerloop_hpc.evolve.cells import JOB, Measured, Stage
from outerloop_hpc.evolve.course import (
    PROPOSE,
    confirming_key,
    filled,
    lacking,
    outdated,
    proposals,
    proposed,
    screening_key,
    stage_of,
)
from outerloop_hpc.evolve.gate import levels
from outerloop_hpc.evolve.gate.decide import decide
from outerloop_hpc.evolve.gate.screening import Screened, screen
from outerloop_hpc.evolve.given import PROPOSE_BODY
from outerloop_hpc.evolve.reporting import page, report
from outerloop_hpc.evolve.work import KIND, EvolveWork, work_of

#: So many generations in a row without a candidate end a sweep.
_MOST_FAILED = 3
#: Executions lost in a row that stop a sweep: so many, or this share of its present stage, whichever is more.
_LOST, _LOST_SHARE = 5, 0.2


class EvolveKind:
    """Propose, measure, decide."""

    name = KIND

    def plan(self, view: View) -> tuple[Decision, ...]:
        """Say what the sweep needs now."""
        if view.under_way and _lost(view) < _LOST and not view.waiting and not _stopped(view):
            # Cells run for hours: a pass that finds nothing new need not read the sweep.
            return ()
        return _Planner.of(view).decisions()

    def farewell(self, spec: RunSpec, state: RunState) -> tuple[Post, ...]:  # noqa: ARG002 - the port's
        """Nobody waits on a forge for a sweep."""
        return ()

    def report(self, spec: RunSpec, state: RunState) -> str:
        """Return the sweep's part of ``report.md``."""
        return report.report(spec, state)

    def pages(self, spec: RunSpec, state: RunState) -> Mapping[str, str]:
        """Return the report once more as a page with plots."""
        return {page.NAME: page.page(spec, state)}

    def documents(self, spec: RunSpec, state: RunState) -> Mapping[str, bytes]:
        """Return every conclusion, and the promotion if there is one."""
        return promotion.documents(spec, state)


def _stopped(view: View) -> bool:
    """Whether a person cancelled a job, or one found something that is not what was frozen."""
    return any(one.word == "cancelled by a person" or _refused(one) for one in view.outcomes.values())


def _lost(view: View) -> int:
    """Executions in a row that the machines lost; a candidate that always asks to be tried later is not one of them."""
    return sum(number for part, number in view.lost_in_a_row.items() if part != "candidate")


def _refused(outcome: Outcome) -> bool:
    return outcome.word == "record" and outcome.record_outcome == "refused"


#: What a generation needs now: decisions, nothing but time, or ``None`` when it is over and was not promoted.
_Need = tuple[Decision, ...] | None


@dataclass
class _Planner:
    """One look at a sweep: the generations are gone through, and the first that is not over says what is needed.

    ``word`` and ``last`` are the verdict so far; no word before a gate has spoken.
    """

    view: View
    spec: RunSpec
    work: EvolveWork
    known: set[str] = field(default_factory=set)
    failed: int = 0
    word: str = ""
    exhausted: bool = False
    last: str = "no generation came to a gate"

    @classmethod
    def of(cls, view: View) -> _Planner:
        """Read the sweep."""
        return cls(view, view.spec, work_of(view.spec))

    def decisions(self) -> tuple[Decision, ...]:
        """Return what is wanted."""
        if troubles := tuple(self._troubles()):
            return troubles
        if unwanted := tuple(self._again()):
            return unwanted
        if self.view.under_way:
            return ()
        if self.work.pilot:
            return self._piloted()
        for generation in range(self.work.gate.generations):
            need = self._generation(generation)
            if need is not None:
                return need
        return (End(self.word or "proposer gave up", self.last, {}),)

    def _troubles(self) -> Iterator[Decision]:
        """Yield what stops a sweep whatever its generations say."""
        refused = [(key, one) for key, one in self.view.outcomes.items() if _refused(one)]
        if refused:
            # At once: what is under way measures what nobody froze, and its end would change nothing.
            (key, one), more = refused[0], len(refused) - 1
            also = f" (and {more} more jobs)" if more else ""
            said = f"{key} ({self.view.steps[key].cause}): {one.reason or 'it was refused'}{also}"
            yield End("halted", f"{said}; nothing is decided on this evidence", {})
        yield from self._losing()
        cancelled = [one for one in self.view.outcomes.values() if one.word == "cancelled by a person"]
        if cancelled:
            which = "a job of it" if len(cancelled) == 1 else f"{len(cancelled)} jobs of it"
            yield Ask(f"somebody cancelled {which}: {self._resume()}", cancelled[0].reason)

    def _losing(self) -> Iterator[Decision]:
        """Stop a stage whose executions are lost one after the other, before its cells use up their tries."""
        view, lost = self.view, _lost(self.view)
        if lost < _LOST:
            return
        open_ = [key for key in view.steps if key not in view.outcomes]
        # Where cells have one try only, a stage may be lost before anything of it can be cancelled.
        given_up = [key for key, one in view.outcomes.items() if one.word == "tries exhausted"]
        stages = {view.steps[key].cause for key in open_ or given_up}
        cells = sum(1 for step in view.steps.values() if step.job == JOB and step.cause in stages)
        most = max(_LOST, math.ceil(_LOST_SHARE * cells))
        if lost < most or not (open_ or len(given_up) >= most):
            return
        reason = f"{lost} executions in a row were lost to the machines"
        if open_:
            yield Cancel(tuple(open_), reason)
        rest = "; the rest was cancelled" if open_ else ""
        yield Ask(f"{reason}{rest}. Mend the cause, then {self._resume()}", reason)

    def _again(self) -> Iterator[Decision]:
        """Look at steps that would get another try: budgets and the deadline are theirs, too."""
        view = self.view
        if old := outdated(view, view.waiting):
            # A person's resume lets every step go on that has no result, also where its loss was borne long ago.
            yield Cancel(old, "what it was for is decided without it")
            return
        allowed = again(self.work.budget, view, view.waiting)
        if allowed.word == "go":
            return
        others = len(view.steps) - len(view.outcomes) - len(view.waiting)
        if allowed.word == "over" and (self._late() or not others):
            yield Cancel(tuple(view.waiting), f"no further try of it: {allowed.reason}")
        else:
            # What is under way counts by its walltime, and will have taken less.
            yield Hold(tuple(view.waiting), allowed.reason)

    def _late(self) -> bool:
        return bool(self.work.budget.late(self.view.now))

    def _resume(self) -> str:
        run = self.spec.run
        return f"`outerloop-hpc evolve resume {run} --reason …` to go on, or `outerloop-hpc runs end {run} --reason …`"

    def _piloted(self) -> tuple[Decision, ...]:
        """Measure the incumbent beside itself: what of all that varies is not the candidate's doing."""
        known = self.view.conclusions.get(pilot.KEY)
        if known is None:
            try:
                return self._concluded(pilot.stage(self.work), pilot.KEY, "measure the spread", self._pilot)
            except UsageError as thin:
                return (End("insufficient", str(thin), {}),)
        return (End(pilot.ENDING, pilot.told(known, self.work.gate), {"conclusion": pilot.KEY}),)

    def _pilot(self, _generation: int, found: Measured) -> tuple[Document, str]:
        said = pilot.conclude(self.spec, self.work, found)
        return said, said.text(self.work.gate)

    def _generation(self, generation: int) -> _Need:
        step = proposals(self.view).get(generation)
        if step is None:
            return self._exhausted(generation) if self.exhausted else self._propose(generation)
        found = proposed(self.view.outcomes[step.key], frozenset(self.known))
        if found.failed:
            self.failed += 1
            self.last = f"generation {generation}: {found.failed}"
            if self.failed < _MOST_FAILED:
                return None
            return (End("proposer gave up", f"{self.failed} in a row brought no candidate; {self.last}", {}),)
        if not found.candidates:
            return self._exhausted(generation)
        self.failed, self.exhausted = 0, found.exhausted
        self.known |= {one.digest for one in found.candidates}
        return self._screened(generation, [one.digest for one in found.candidates])

    def _exhausted(self, generation: int) -> _Need:
        word = self.word if self.word == "insufficient" else "exhausted"
        return (End(word, f"the proposer had no more ideas for generation {generation}; {self.last}", {}),)

    def _propose(self, generation: int) -> _Need:
        given = selection.given(self.work, self.view, generation)
        step = step_spec(
            self.spec,
            job=PROPOSE,
            cause=f"generation {generation}",
            body=PROPOSE_BODY,
            resources=self.work.proposing,
            parameters=given.model_dump(mode="json", exclude_none=True),
            max_tries=self.work.proposing_tries,
            round_=generation,
        )
        return self._submit([step], f"propose {given.count} for generation {generation}")

    def _submit(self, steps: Sequence[StepSpec], reason: str) -> tuple[Decision, ...]:
        allowed = allowance(self.work.budget, self.view, steps)
        if allowed.word == "wait":
            return ()
        if allowed.word == "go":
            return (Submit(tuple(steps), reason),)
        return (End("past deadline" if self._late() else "out of budget", f"{allowed.reason}; {self.last}", {}),)

    def _screened(self, generation: int, digests: Sequence[str]) -> _Need:
        key = screening_key(generation)
        known = self.view.conclusions.get(key)
        if known is None:
            stage = stage_of(self.work, generation, "screen", digests)
            return self._concluded(stage, key, f"screen {len(digests)} of generation {generation}", self._screen)
        if known["decision"] == "harness_broken":
            return (End("harness broken", str(known["reason"]), {"conclusion": key}),)
        if known["decision"] == "confirm":
            return self._confirmed(generation, str(known["chosen"]))
        self.word = "insufficient" if lacking(kept(Screened, known, key)) else "kept"
        self.last = f"generation {generation}: {known['reason']}"
        return None

    def _confirmed(self, generation: int, digest: str) -> _Need:
        for look in range(1, levels.looks(self.work.gate) + 1):
            key = confirming_key(generation, look)
            known = self.view.conclusions.get(key)
            if known is None:
                stage = stage_of(self.work, generation, "confirm", [digest], look)
                why = f"confirm {digest[:12]} of generation {generation}, look {look}"
                return self._concluded(stage, key, why, partial(self._decide, digest, look))
            word, reasons = str(known["decision"]), "; ".join(map(str, known["reasons"]))
            if word == "promote":
                result = {"overlay": digest, "generation": generation, "gain": known.get("gain"), "conclusion": key}
                return (End("promoted", f"generation {generation}: {reasons}", result),)
            if word == "harness_broken":
                return (End("harness broken", reasons, {"conclusion": key}),)
            self.word = "insufficient" if word == "insufficient_evidence" else "kept"
            self.last = f"generation {generation}: {reasons}"
            if word != "extend":
                break
        return None

    def _concluded(
        self, stage: Stage, key: str, reason: str, conclude: Callable[[int, Measured], tuple[Document, str]]
    ) -> tuple[Decision, ...]:
        """Measure a stage, then conclude."""
        whole = filled(self.spec, self.work, stage, self.view)
        if whole.found is None:
            return self._submit(whole.steps, reason)
        if whole.found.broken:
            return (End("halted", _broken(whole.found), {}),)
        document, said = conclude(stage.generation, whole.found)
        return (Conclude(key, document.model_dump(mode="json", by_alias=True), said),)

    def _screen(self, generation: int, found: Measured) -> tuple[Document, str]:
        said = screen(self.work.gate, found.pairs, tasks=self._tasks(), generation=generation, salt=self.work.document)
        return said, said.reason

    def _decide(self, digest: str, look: int, generation: int, found: Measured) -> tuple[Document, str]:
        said = decide(
            self.work.gate,
            found.pairs[digest],
            tasks=self._tasks(),
            generation=generation,
            look=look,
            salt=self.work.document,
        )
        return said, f"{said.decision}: {'; '.join(said.reasons)}"

    def _tasks(self) -> list[str]:
        return [task.id for task in self.work.tasks]


def _broken(found: Measured) -> str:
    more = f" (and {len(found.broken) - 1} more cells)" if len(found.broken) > 1 else ""
    return f"{found.broken[0]}{more}; nothing is decided on this evidence"
