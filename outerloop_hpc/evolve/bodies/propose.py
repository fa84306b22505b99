"""The body of a proposal: ask the sweep's proposer, check what it brings, and freeze what may be measured."""

from __future__ import annotations

from outerloop_hpc import fsio
from outerloop_hpc.engine.body import Context, Result
from outerloop_hpc.engine.measuring import OtherTree
from outerloop_hpc.evolve.findings import Candidate, ProposalFound, Refused
from outerloop_hpc.evolve.given import INTEGRITY, ProposeGiven
from outerloop_hpc.evolve.overlays.candidates import candidates, proposal_file
from outerloop_hpc.evolve.overlays.frozen import freeze
from outerloop_hpc.evolve.overlays.overlay import IntegrityFault, InvalidOverlay, check
from outerloop_hpc.evolve.proposers import agent, asktell, command, dirs, grid
from outerloop_hpc.evolve.proposers.bundle import MOST_TEXT
from outerloop_hpc.evolve.proposers.proposed import Draft, Occasion, Proposed
from outerloop_hpc.evolve.work import Agent, AskTell, Command, Dirs, Grid, work_of


def propose(context: Context) -> Result:
    """Bring about what the step is given (``ProposeGiven``).

    Returns:
        ``completed`` with a ``ProposalFound``, refusals of the proposer's own fault included; ``refused`` with the
        payload ``{"integrity": …}`` when a prepared overlay is not what was frozen; else why this try says nothing.

    Raises:
        NodeUnfit: this node lacks what is needed.
        ConfigError: what was asked for cannot be.
        TryLater: a disk or the mirror does not answer.
    """
    work = work_of(context.spec)
    given = ProposeGiven.model_validate(context.element.step.parameters)
    occasion = Occasion(context, work, given)
    try:
        proposed = _asked(occasion)
        if isinstance(proposed, Result):
            return proposed
        found = _frozen(occasion, proposed)
    except (IntegrityFault, OtherTree) as fault:
        return Result("refused", str(fault), {INTEGRITY: str(fault)})
    reason = "; ".join(one.reason for one in found.refused)
    return Result("completed", reason, found.model_dump(mode="json", exclude_none=True))


def _asked(occasion: Occasion) -> Proposed | Result:
    match occasion.work.proposer:
        case Dirs() as proposer:
            return dirs.propose(occasion, proposer)
        case Grid() as proposer:
            return grid.propose(occasion, proposer)
        case AskTell() as proposer:
            return asktell.propose(occasion, proposer)
        case Command() as proposer:
            return command.propose(occasion, proposer)
        case Agent() as proposer:
            return agent.propose(occasion, proposer)


def _frozen(occasion: Occasion, proposed: Proposed) -> ProposalFound:
    found: dict[str, Candidate] = {}
    refused = list(proposed.refused)
    for draft in proposed.drafts:
        try:
            candidate = _candidate(occasion, draft, proposed.text)
        except InvalidOverlay as invalid:
            reason = f"{draft.origin}: {invalid}"
            refused.append(Refused(reason=reason, kind="invalid-overlay", values=dict(draft.values)))
        else:
            found.setdefault(candidate.digest, candidate)
    return ProposalFound(
        candidates=tuple(found.values()),
        refused=tuple(refused),
        exhausted=proposed.exhausted,
        money=proposed.money,
    )


def _candidate(occasion: Occasion, draft: Draft, text: str) -> Candidate:
    """Check and freeze one draft; raises InvalidOverlay when it breaks the rules."""
    overlay = draft.take()
    check(overlay, occasion.work.overlay, occasion.work.base, occasion.work.copies)
    folder = candidates(occasion.context)
    freeze(overlay, folder)
    if text:
        # The first proposal of an overlay stays: its text is part of why it was measured.
        fsio.publish(proposal_file(folder, overlay.digest), text.encode("utf-8", "replace")[:MOST_TEXT])
    return Candidate(
        digest=overlay.digest,
        files=tuple(overlay.files),
        bytes=overlay.size,
        values=dict(draft.values),
        proposal=proposal_file(folder, overlay.digest).exists(),
        origin=draft.origin,
    )
