"""The ``dirs`` proposer: overlays that were prepared by people and frozen when the sweep was submitted."""

from __future__ import annotations

from functools import partial

from outerloop_hpc.evolve.overlays.candidates import candidates
from outerloop_hpc.evolve.overlays.frozen import load
from outerloop_hpc.evolve.proposers.proposed import Draft, Occasion, Proposed
from outerloop_hpc.evolve.work import Dirs


def propose(occasion: Occasion, proposer: Dirs) -> Proposed:
    """Return the next prepared overlays; a generation begins where the one before it ended."""
    begin = occasion.given.generation * occasion.work.candidates
    end = begin + occasion.given.count
    folder = candidates(occasion.context)
    drafts = tuple(
        Draft(f"dirs[{number}]", partial(load, folder / digest))
        for number, digest in enumerate(proposer.digests)
        if begin <= number < end
    )
    return Proposed(drafts, exhausted=end >= len(proposer.digests))
