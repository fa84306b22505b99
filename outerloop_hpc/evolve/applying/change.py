"""A promoted candidate as a change on the forge: one commit on the sweep's commit, its branch, and its words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from outerloop_hpc.engine.spec import RunSpec
from outerloop_hpc.engine.state import RunState
from outerloop_hpc.errors import UsageError
from outerloop_hpc.evolve.applying.apply import ApplyRefused, places
from outerloop_hpc.evolve.applying.destination import Difference
from outerloop_hpc.evolve.overlays.overlay import IntegrityFault, Overlay, check, content_digest
from outerloop_hpc.evolve.promotion import NotApplicable, Promotion
from outerloop_hpc.evolve.reporting.gatetables import gained
from outerloop_hpc.evolve.reporting.report import report
from outerloop_hpc.evolve.work import EvolveWork, work_of
from outerloop_hpc.forge.port import Change, Forge, Proposal
from outerloop_hpc.forge.text import capped, visible
from outerloop_hpc.target.compose import Signature, commit_on
from outerloop_hpc.target.repository import Repository

_EMAIL = "noreply@localhost"
#: Characters; a forge takes some more.
_LONGEST_BODY, _LONGEST_NAME = 60_000, 60


def branch_of(run: str) -> str:
    """Name the branch of a sweep's change."""
    return f"outerloop/evolve-{run[-8:]}"


@dataclass(frozen=True)
class Offer:
    """What is to be proposed.

    Attributes:
        state: of the ended sweep, for its report.
        promotion: applicable now.
        overlay: loaded from where it was frozen.
        onto: the target's branch; ``head`` is its newest commit.
    """

    spec: RunSpec
    state: RunState
    promotion: Promotion
    overlay: Overlay
    onto: str
    head: str

    @property
    def work(self) -> EvolveWork:
        """The sweep, resolved."""
        return work_of(self.spec)


def compared(offer: Offer, repository: Repository) -> tuple[str, ...]:
    """Compare every place with what it was at submit; return the paths that a change would bring to the branch.

    None are returned when the branch holds all of the candidate already.

    Args:
        offer: what is to be proposed.
        repository: has the sweep's commit and the branch's head.

    Raises:
        InvalidOverlay: the candidate breaks the rules of the sweep.
        IntegrityFault: the sweep's commit does not hold what was measured.
        ApplyRefused: the branch has other files by now than at submit; the text says which.
    """
    check(offer.overlay, offer.work.overlay, offer.work.base, offer.work.copies)
    wanted = places(offer.overlay, offer.work)
    expected = {path: was for path, (_, was) in wanted.items()}
    if different := _different(expected, repository.digests(offer.spec.commit, wanted)):
        named = ", ".join(f"{path!a}" for paths in different.values() for path in paths)
        raise IntegrityFault(
            f"{repository.folder}: commit {offer.spec.commit[:12]} does not hold what {offer.spec.run} measured: "
            f"{named}; nothing is proposed, find out who changed the specification or the mirror"
        )
    now = repository.digests(offer.head, wanted)
    missing = tuple(path for path, (data, _) in wanted.items() if now.get(path) != content_digest(data))
    if missing and (moved := _different(expected, now)):
        text = "; ".join(f"{kind}: {', '.join(map(ascii, paths))}" for kind, paths in moved.items())
        raise ApplyRefused(
            f"{offer.onto} of {offer.spec.target} is at {offer.head[:12]} now and has other files there than at submit "
            f"({offer.spec.commit[:12]}): {text}. Nothing is proposed; the evidence stays valid for what was measured. "
            "Bring the files back there, or submit a sweep on the new ones",
            moved,
        )
    return missing


def propose(offer: Offer, repository: Repository, forge: Forge) -> Change:
    """Make the commit and the branch and open the change, or find the one that is there.

    The commit follows from the sweep alone, so that a repetition makes the same. Look with ``compared`` first.

    Raises:
        NotApplicable: the files cannot be put on the sweep's commit.
        Fault: somebody else moved the branch.
        TryLater: forge, mirror or filesystem do not answer; nothing is half done that a repetition would not finish.
    """
    files = {path: data for path, (data, _) in places(offer.overlay, offer.work).items()}
    signature = Signature(forge.identity, _EMAIL, offer.promotion.decided_at)
    run, title = offer.spec.run, _title(offer)
    message = f"{title}\n\nPromoted by {run} in generation {offer.promotion.generation}.\n"
    try:
        commit = commit_on(repository, offer.spec.commit, files, message=message, signature=signature)
    except UsageError as refused:
        raise NotApplicable(f"{run}: its files cannot be put on {offer.spec.commit[:12]}: {refused}") from refused
    branch = branch_of(run)
    forge.push(repository.folder, commit, branch)
    return forge.propose(Proposal(branch, offer.onto, commit, "", title=title, body=_body(offer)))


def _different(expected: Mapping[str, str | None], found: Mapping[str, str]) -> dict[Difference, list[str]]:
    """Return the paths that are not as expected, by what is the matter."""
    different: dict[Difference, list[str]] = {}
    for path, was in expected.items():
        if (now := found.get(path)) != was:
            kind: Difference = "unexpected" if was is None else "missing" if now is None else "drifted"
            different.setdefault(kind, []).append(path)
    return different


def _title(offer: Offer) -> str:
    gain = gained(offer.work.gate.primary.scale, offer.promotion.decision.gain)
    name = " ".join(visible(offer.work.name).split())[:_LONGEST_NAME]
    return f"Sweep {name}: {offer.work.gate.primary.name} better by {gain}"


def _body(offer: Offer) -> str:
    run, bound = offer.spec.run, offer.promotion.binding
    head = (
        f"Sweep `{run}` promoted overlay `{bound.overlay}`, measured at commit `{bound.commit}`. The evidence may be "
        f"used until {offer.promotion.expires_at:%Y-%m-%d}; `outerloop-hpc evolve gate {run} --recompute` decides it "
        "again from its pairs."
    )
    return capped(f"{head}\n\n{report(offer.spec, offer.state)}", _LONGEST_BODY)
