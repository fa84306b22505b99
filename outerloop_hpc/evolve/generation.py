"""One generation of a sweep, read from its steps and conclusions: what was proposed and what was decided. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from outerloop_hpc.documents import kept
from outerloop_hpc.engine.kind import View
from outerloop_hpc.engine.spec import StepSpec
from outerloop_hpc.evolve.course import Proposal, confirming_key, proposals, proposed, screening_key
from outerloop_hpc.evolve.findings import ProposalFound, proposal_found
from outerloop_hpc.evolve.gate import levels
from outerloop_hpc.evolve.gate.decision import GateDecision
from outerloop_hpc.evolve.gate.screening import CandidateScreened, Screened
from outerloop_hpc.evolve.work import EvolveWork


@dataclass(frozen=True, slots=True)
class Generation:
    """One generation.

    Attributes:
        number: from 0.
        proposal: what was new of what its proposer brought, and what went wrong with that.
        found: all that it brought.
        screened: its screening, once there is one. decisions: its looks, in their order.
    """

    number: int
    proposal: Proposal
    found: ProposalFound
    screened: Screened | None = None
    decisions: tuple[GateDecision, ...] = ()

    @property
    def chosen(self) -> str:
        """The overlay that was to be confirmed; empty when none was."""
        return "" if self.screened is None else self.screened.chosen

    def best(self) -> CandidateScreened | None:
        """Return the candidate that was chosen, else the one that came closest to that."""
        if self.screened is None or not self.screened.candidates:
            return None
        ranked = sorted(self.screened.candidates, key=lambda one: (one.gain is None, -(one.gain or 0.0)))
        return next((one for one in ranked if one.digest == self.chosen), ranked[0])

    def refusals(self) -> tuple[str, ...]:
        """Return why proposals of it were no candidates."""
        return tuple(one.reason for one in self.found.refused) or tuple(filter(None, (self.proposal.failed,)))


def generations(work: EvolveWork, view: View) -> tuple[Generation, ...]:
    """Return the generations that were begun; one whose proposal is not settled says nothing yet."""
    steps = proposals(view)
    return tuple(_generation(work, view, steps, number) for number in sorted(steps))


def _generation(work: EvolveWork, view: View, steps: Mapping[int, StepSpec], number: int) -> Generation:
    outcome = view.outcomes.get(steps[number].key)
    if outcome is None:
        return Generation(number, Proposal(), ProposalFound())
    brought = outcome.word == "record" and outcome.record_outcome == "completed"
    screening = view.conclusions.get(screening_key(number))
    keys = [confirming_key(number, look) for look in range(1, levels.looks(work.gate) + 1)]
    return Generation(
        number,
        proposed(outcome, _known(view, steps, number)),
        proposal_found(outcome.payload) if brought else ProposalFound(),
        None if screening is None else kept(Screened, screening, screening_key(number)),
        tuple(kept(GateDecision, view.conclusions[key], key) for key in keys if key in view.conclusions),
    )


def _known(view: View, steps: Mapping[int, StepSpec], number: int) -> frozenset[str]:
    """Return the overlays that earlier generations brought."""
    keys = [step.key for earlier, step in steps.items() if earlier < number]
    found = [view.outcomes[key].payload for key in keys if key in view.outcomes]
    return frozenset(one.digest for payload in found for one in proposal_found(payload).candidates)
